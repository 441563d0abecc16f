"""Weights on disk: `model.safetensors` and `config.json` in one folder, read strictly, never unpickled.

A card, `README.md`, lies beside them for people to read, and a gallery where there is one.

`from_pretrained` takes the name of a model shipped with the package, a folder, or a hub id. Unknown fields,
missing or additional tensors, wrong shapes and damaged files are errors; files are written atomically.
"""

import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from huggingface_hub import ModelHubMixin, snapshot_download
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from torchsite.configs import to_mapping
from torchsite.errors import ConfigError, WeightsError, did_you_mean
from torchsite.files import regular, write_atomically
from torchsite.model.card import CARD_FILE, model_card, write_card
from torchsite.model.config import CUSTOM, ModelConfig, arguments, read_mapping
from torchsite.model.gallery import GALLERY_FILE

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
HUB_ID = r"\w[\w.-]*/\w[\w.-]*"
HUB_ARGUMENTS = ("config", "model_card_kwargs")
HUB_OPTIONS = ("revision", "cache_dir", "local_files_only", "token", "force_download")


class Pretrained(nn.Module, ModelHubMixin, library_name="torchsite", tags=["explainability", "equivariance"]):
    """A model that can be saved to a folder or the hub and comes back bit for bit."""

    config_class: ClassVar[type[ModelConfig]]
    config: ModelConfig

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the logits."""
        return self.config.classes

    @classmethod
    def from_config(cls, config: ModelConfig, *, pretrained: bool = True, **modules: nn.Module) -> Self:
        """Build the model that a configuration describes; custom parts are passed as `modules`.

        Its weights are new; those of a pretrained extractor are loaded, unless `pretrained` is False.
        """
        if not isinstance(config, cls.config_class):
            raise ConfigError(
                f"expected a configuration of {cls.config_class.TITLE}, got one of {config.TITLE}"
            )
        return cls(**arguments(config, modules), pretrained=pretrained)

    def save_pretrained(  # type: ignore[override]
        self, save_directory: Path | str, *, dtype: torch.dtype | None = None, **of_the_hub: None
    ) -> Path:
        """Write weights (in `dtype`, if given), configuration, and a card where there is none yet.

        Each file appears whole or not at all. `push_to_hub` also passes `config` and `model_card_kwargs`:
        both are the model's own here.
        """
        given = [name for name, value in of_the_hub.items() if value is not None or name not in HUB_ARGUMENTS]
        if given:
            raise ConfigError(f"save_pretrained takes no {given[0]!r}: {did_you_mean(given[0], ['dtype'])}")
        folder = save_weights(Path(save_directory), self.config, self.state_dict(), dtype=dtype)
        self._save_beside(folder / WEIGHTS_FILE)
        if not (folder / CARD_FILE).exists():
            write_card(folder, model_card(self.config))
        return folder

    def _save_beside(self, weights: Path) -> None:
        """Write what a model has beside its weights; an older gallery was of other weights."""
        weights.with_name(GALLERY_FILE).unlink(missing_ok=True)

    def _load_beside(self, weights: Path) -> None:
        """Read the files beside the weights that this kind of model has."""

    def _save_pretrained(self, save_directory: Path) -> None:
        """What the hub mixin calls before it uploads."""
        self.save_pretrained(save_directory)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Path | str, **options: Any) -> Self:
        """Load a shipped model by name, a folder, or a hub id.

        Modules that the configuration calls "custom" are passed by name (`feature_extractor=…`); all
        other options (`revision`, `cache_dir`, `local_files_only`, `token`) go to the hub.
        """
        modules = {name: options.pop(name) for name in list(options) if isinstance(options[name], nn.Module)}
        folder = find_weights(pretrained_model_name_or_path, **options)
        config = read_config(folder)
        for name in modules:
            _check_module(name, config)
        if not modules:
            with torch.device("meta"):  # a small file must not make a huge model: compare before building
                check_shapes(folder, dict(cls.from_config(config, pretrained=False).state_dict()))
        model = cls.from_config(config, pretrained=False, **modules)
        model.load_state_dict(read_tensors(folder, dict(model.state_dict())))
        model._load_beside(folder / WEIGHTS_FILE)
        return model.eval()


def save_weights(
    folder: Path, config: ModelConfig, weights: Mapping[str, Tensor], *, dtype: torch.dtype | None = None
) -> Path:
    """Write a model's weights and its configuration, as `save_pretrained` does."""
    tensors = {name: _stored(tensor, dtype) for name, tensor in weights.items()}
    text = json.dumps(to_mapping(config), indent=2, ensure_ascii=False) + "\n"

    def write_both(path: Path) -> None:
        """Whatever can fail comes before the first of the two renames."""
        save_file(tensors, path, metadata={"format": "pt"})
        write_atomically(folder / CONFIG_FILE, text)

    write_atomically(folder / WEIGHTS_FILE, write_both)
    return folder


def shipped_models() -> dict[str, Path]:
    """The models that come with the package, by name."""
    root = Path(str(resources.files("torchsite"))) / "weights"
    return {folder.name: folder for folder in sorted(root.glob("*")) if (folder / CONFIG_FILE).is_file()}


def find_weights(name: Path | str, **options: Any) -> Path:
    """The folder of a shipped name, a path or a hub id; `options` are the hub's."""
    for option in options:
        if option not in HUB_OPTIONS:
            raise ConfigError(f"no option {option!r}: {did_you_mean(option, HUB_OPTIONS)}")
    shipped = shipped_models()
    if str(name) in shipped:
        return shipped[str(name)]
    if Path(name).is_dir():
        return Path(name)
    if not re.fullmatch(HUB_ID, str(name)):
        raise WeightsError(
            f"no model {str(name)!r}: it is neither a folder, nor of the form owner/name as on the hub, "
            f"nor shipped; {did_you_mean(str(name), shipped)}"
        )
    try:
        return Path(
            snapshot_download(str(name), allow_patterns=[CONFIG_FILE, WEIGHTS_FILE, GALLERY_FILE], **options)
        )
    except Exception as error:  # which ones a failing network raises depends on the hub's version
        reason = (str(error).strip() or "no reason given").splitlines()[0]
        raise WeightsError(
            f"no model {str(name)!r}: it is neither shipped ({', '.join(shipped) or 'none'}), nor a folder, "
            f"nor reachable on the hub ({type(error).__name__}: {reason})"
        ) from error


def read_config(folder: Path) -> ModelConfig:
    """The configuration in a folder; anything unexpected is an error that names the file."""
    path = folder / CONFIG_FILE
    try:
        return read_mapping(json.loads(regular(path).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise WeightsError(
            f"{folder} holds no {CONFIG_FILE}: expected a folder made by save_pretrained"
        ) from None
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # what JSON and configurations raise on all that is wrong
        raise WeightsError(f"{path} cannot be read: {error}") from error


def check_shapes(folder: Path, expected: dict[str, Tensor]) -> None:
    """The file must list exactly the expected tensors, in the expected shapes; none of them is read."""
    path = folder / WEIGHTS_FILE
    try:
        with safe_open(regular(path), "pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise WeightsError(
            f"{folder} holds no {WEIGHTS_FILE}: expected a folder made by save_pretrained"
        ) from None
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} is damaged ({error}): fetch or train it again") from error
    missing, additional = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing or additional:
        raise WeightsError(f"{path} does not fit its config: missing {missing}, not expected {additional}")
    for name, shape in found.items():
        if shape != tuple(expected[name].shape):
            raise WeightsError(f"{path}: {name} has shape {shape}, expected {tuple(expected[name].shape)}")


def read_tensors(folder: Path, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """Exactly the expected tensors, in the expected shapes and types."""
    path = folder / WEIGHTS_FILE
    check_shapes(folder, expected)
    try:
        found = load_file(path)
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} is damaged ({error}): fetch or train it again") from error
    for name, tensor in found.items():
        if tensor.is_floating_point() != expected[name].is_floating_point():
            raise WeightsError(f"{path}: {name} is of {tensor.dtype}, expected {expected[name].dtype}")
    check_finite(path, found)
    return {name: tensor.to(expected[name].dtype) for name, tensor in found.items()}


def check_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Fail with `WeightsError` if a weight is NaN or infinite."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise WeightsError(f"{path}: {name} holds NaN or infinite values: fetch or train it again")


def _check_module(name: str, config: ModelConfig) -> None:
    """A module is only welcome where the configuration has a place for one of the caller's own."""
    custom = [part for part in config.PARTS if getattr(config, part) == CUSTOM]
    if name not in custom:
        places = f"only {', '.join(custom)}" if custom else "all its parts are built by name"
        raise ConfigError(f"this model takes no {name!r} from outside: {places}")


def _stored(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    plain = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)  # parts may share weights
    return plain.to(dtype) if dtype is not None and plain.is_floating_point() else plain
