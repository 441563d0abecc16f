"""Models for other runtimes: ONNX, its int8 form, and torch.export programs.

What is exported takes pictures in [0, 1], any number at once, and gives `logits` and, for a model that
explains itself, `heatmaps` of the pictures' size that sum to them. Other outputs are `evidence`, `features`
and `prototypes`, in the cells of the features. Every export is run beside the model it came from before it
gets its name; the largest difference is kept in its metadata.
"""

import copy
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torchsite.errors import ConfigError, WeightsError, did_you_mean
from torchsite.extras import needed
from torchsite.files import write_atomically
from torchsite.model.base import dtype_of
from torchsite.model.black_box import BlackBox
from torchsite.model.explanation import enlarge
from torchsite.model.site import SITE, Forward
from torchsite.randomness import make_rng
from torchsite.shapes import Images
from torchsite.version import __version__

HEATMAPS = ("logits", "heatmaps")  # what is exported unless told
TOLERANCE = 1e-3
CHECKED_BATCHES = (1, 5)
OPSET = 20
# Only these are worth eight bits; the product of features and prototypes and the sums stay exact.
QUANTISED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
OUTPUTS: Mapping[str, Callable[[Forward, Images], Tensor]] = {
    "logits": lambda run, images: run.logits,
    "heatmaps": lambda run, images: enlarge(run.evidence, (images.shape[-2], images.shape[-1])),
    "evidence": lambda run, images: run.evidence,
    "features": lambda run, images: run.features,
    "prototypes": lambda run, images: run.prototypes,
}


@dataclass(frozen=True)
class Exported:
    """A finished file and its largest difference from the model."""

    path: Path
    max_difference: float


class ExportedForward(nn.Module):
    """What an exported model computes: logits, and the named outputs if the model explains itself."""

    def __init__(self, model: SITE | BlackBox, outputs: Sequence[str] = HEATMAPS) -> None:
        super().__init__()
        unknown = [name for name in outputs if name not in OUTPUTS]
        if unknown:
            raise ConfigError(f"no output {unknown[0]!r}: {did_you_mean(unknown[0], OUTPUTS)}")
        self.outputs = tuple(outputs) if isinstance(model, SITE) else HEATMAPS[:1]
        plain = copy.deepcopy(model).requires_grad_(False)
        self.model = plain.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.eval()

    def forward(self, images: Images) -> tuple[Tensor, ...]:
        """In the order of `outputs`."""
        if isinstance(self.model, BlackBox):
            return (self.model(images),)
        run = self.model.answer(images)
        return tuple(OUTPUTS[name](run, images) for name in self.outputs)


class OnnxModel:
    """An exported model, run by ONNX Runtime: `model(images)` are its outputs by name."""

    def __init__(self, path: Path | str, threads: int = 0) -> None:
        runtime = _needs("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self.session = runtime.InferenceSession(
                str(path), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the runtime has a class of errors for each of its reasons
            raise WeightsError(f"{path} cannot be run as an ONNX model: {error}") from error

    def __call__(self, images: Images) -> dict[str, Tensor]:
        """Logits and, where there are any, heatmaps."""
        found = self.session.run(None, {"images": images.numpy()})
        names = [output.name for output in self.session.get_outputs()]
        return {name: torch.from_numpy(values) for name, values in zip(names, found, strict=True)}

    @property
    def metadata(self) -> dict[str, str]:
        """Classes, shape of the pictures, version, largest difference."""
        return dict(self.session.get_modelmeta().custom_metadata_map)


def export_onnx(model: SITE | BlackBox, path: Path | str, outputs: Sequence[str] = HEATMAPS) -> Exported:
    """Write an ONNX file of opset 20 with a free batch axis, checked by ONNX Runtime."""
    path, answers = Path(path), ExportedForward(model, outputs)
    onnx = _needs("onnx")
    _needs("onnxscript")
    differences: list[float] = []

    def write(part: Path) -> None:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                answers,
                (_noise(model, 2),),
                dynamo=True,
                opset_version=OPSET,
                input_names=["images"],
                output_names=list(answers.outputs),
                dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
                verbose=False,
            )
        assert program is not None
        proto = program.model_proto
        onnx.save(proto, part)
        differences.append(_checked(answers, lambda images: tuple(OnnxModel(part, 1)(images).values())))
        onnx.helper.set_model_props(proto, metadata(model, {"max_difference": differences[0]}))
        onnx.save(proto, part)

    write_atomically(path, write)
    return Exported(path, differences[0])


def export_program(model: SITE | BlackBox, path: Path | str) -> Exported:
    """Write a torch.export program (`.pt2`) with a free batch axis, which runs without torchsite."""
    path, answers = Path(path), ExportedForward(model)
    batch = torch.export.Dim("batch")
    with _quiet(), torch.no_grad():
        program = torch.export.export(answers, (_noise(model, 2),), dynamic_shapes={"images": {0: batch}})
    run = program.module()
    difference = _checked(answers, lambda images: run(images))
    notes = {"about.json": json.dumps(metadata(model, {"max_difference": difference}))}

    def write(part: Path) -> None:
        with _quiet(), part.open("wb") as file:
            torch.export.save(program, file, extra_files=notes)

    write_atomically(path, write)
    return Exported(path, difference)


def quantise(source: Path | str, path: Path | str, pictures: Images, batch_size: int = 32) -> Path:
    """An int8 form of an exported ONNX model: weights per channel, activations by calibration pictures."""
    quantization = _needs("onnxruntime.quantization")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        """Hands out the pictures, batch by batch."""

        def __init__(self) -> None:
            self.parts: Iterator[Tensor] = iter(pictures.split(batch_size))

        def get_next(self) -> dict[str, np.ndarray] | None:
            part = next(self.parts, None)
            return None if part is None else {"images": part.numpy()}

    def write(part: Path) -> None:
        with _quiet():
            quantization.quantize_static(
                str(source),
                str(part),
                Reader(),
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=list(QUANTISED),
                per_channel=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
            )

    return write_atomically(Path(path), write)


def annotate(path: Path, notes: Mapping[str, Any]) -> None:
    """Add to the metadata of an ONNX file."""
    onnx = _needs("onnx")
    proto = onnx.load(path)
    kept = {entry.key: entry.value for entry in proto.metadata_props}
    onnx.helper.set_model_props(proto, kept | {key: str(value) for key, value in notes.items()})
    write_atomically(path, proto.SerializeToString())


def metadata(model: SITE | BlackBox, notes: Mapping[str, Any]) -> dict[str, str]:
    """What is needed to use an exported file, as text."""
    return {
        "classes": json.dumps(list(model.classes), ensure_ascii=False),
        "image_shape": json.dumps(list(model.config.image_shape)),
        "margin": f"{model.config.margin:g}",
        "kind": model.config.kind,
        "torchsite": __version__,
    } | {key: str(value) for key, value in notes.items()}


def _noise(model: SITE | BlackBox, n: int) -> Images:
    if dtype_of(model) != torch.float32:
        raise ConfigError(
            f"only float32 models are exported, this one is {dtype_of(model)}: use model.float()"
        )
    return torch.rand(n, *model.config.image_shape, generator=make_rng(n, "export"))


@torch.no_grad()
def _checked(answers: ExportedForward, run: Callable[[Images], tuple[Tensor, ...]]) -> float:
    """The largest absolute difference between an export and its model; an error if it is not rounding."""
    worst = 0.0
    for n in CHECKED_BATCHES:
        images = _noise(answers.model, n)
        for name, mine, theirs in zip(answers.outputs, answers(images), run(images), strict=True):
            difference = float((mine - theirs).abs().max())
            if not difference <= TOLERANCE * max(1.0, float(mine.abs().max())):
                raise WeightsError(
                    f"the exported model is not the model: its {name} differ by {difference:.3g} on {n} "
                    f"pictures; a part of the model cannot be exported faithfully"
                )
            worst = max(worst, difference)
    return worst


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' warnings about their internals and about optional packages."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "root")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _needs(package: str) -> ModuleType:
    """A package of the extra `export`."""
    return needed(package, who="exporting", install="torchsite[export]")
