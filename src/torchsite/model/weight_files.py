"""Files of tensors from elsewhere: safetensors, or torch's own format through its restricted reader.

A `.pth` is a pickle. `weights_only=True` builds tensors and plain containers from it and runs nothing else.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from torchsite.errors import WeightsError
from torchsite.files import regular

PICKLES = (".pth", ".pt", ".bin")
ENDINGS = (".safetensors", *PICKLES)
NESTED = ("state_dict", "model", "model_state_dict")  # where training scripts keep the weights in a file


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; whatever is no file of tensors is an error."""
    if path.suffix not in ENDINGS:
        raise WeightsError(f"{path}: expected a file of weights ({', '.join(ENDINGS)})")
    try:
        content = _read(regular(path))
    except FileNotFoundError:
        raise WeightsError(f"there is no file {path}: check `weights`") from None
    except Exception as error:  # damaged files, and pickles of more than tensors, fail in many ways
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WeightsError(
            f"{path} cannot be read as tensors alone ({reason}): save `model.state_dict()` anew, "
            "as safetensors if you can"
        ) from error
    while isinstance(content, Mapping) and (inner := next((n for n in NESTED if n in content), None)):
        content = content[inner]
    if not isinstance(content, Mapping) or not all(isinstance(v, Tensor) for v in content.values()):
        raise WeightsError(f"{path}: expected tensors by name, as `model.state_dict()` gives them")
    tensors = {str(name): tensor for name, tensor in content.items()}
    check_finite(path, tensors)
    return tensors


def _read(path: Path) -> object:
    if path.suffix in PICKLES:
        return torch.load(path, map_location="cpu", weights_only=True)
    return load_file(path)


def check_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Weights that are no finite numbers are an error: so would be every answer."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise WeightsError(f"{path}: {name} holds NaN or infinite values: fetch or train it again")
