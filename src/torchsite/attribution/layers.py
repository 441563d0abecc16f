"""Watch a layer of a network, and bring its maps to the size of the picture."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn import functional as F

from torchsite.errors import NotApplicableError
from torchsite.layers import is_spatial
from torchsite.shapes import Heatmaps


@contextmanager
def watched(model: nn.Module, name: str) -> Iterator[nn.Module]:
    """The layer, under guard: an output that is not spatial, a second run or no run at all is an error.

    The output of the layer is copied, so that it is the layer's own even if the layer returns its input.
    """
    ran: list[str] = []

    def guard(module: nn.Module, inputs: object, output: object) -> Tensor:
        n_images = len(output) if isinstance(output, Tensor) and output.ndim else 0
        if not is_spatial(output, n_images):
            came = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise NotApplicableError(
                f"layer {name!r}: expected (batch, depth, rows, cols), got {came}: name another"
            )
        if ran:
            raise NotApplicableError(f"layer {name!r} runs more than once in a pass: name one that runs once")
        ran.append("layer")
        return output.clone()

    layer = model.get_submodule(name)
    handles = [
        layer.register_forward_hook(guard),
        model.register_forward_hook(lambda *_: ran.append("model")),
    ]
    try:
        yield layer
    except (RuntimeError, LookupError, AssertionError) as error:
        if ran == ["model"]:
            raise NotApplicableError(f"layer {name!r} does not run in a pass: name one that does") from error
        if "not have been used" in str(error) or "does not require grad" in str(error):
            raise NotApplicableError(f"the logits do not depend on layer {name!r}: name another") from error
        raise
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def captured(layer: nn.Module) -> Iterator[list[Tensor]]:
    """The output of the layer; the model goes on with a copy, so that nothing overwrites it."""
    found: list[Tensor] = []

    def keep(_: nn.Module, inputs: object, output: Tensor) -> Tensor:
        found.append(output)
        return output.clone()

    handle = layer.register_forward_hook(keep)
    try:
        yield found
    finally:
        handle.remove()


def resized(maps: Heatmaps, size: Sequence[int]) -> Heatmaps:
    """Maps brought to the size of the picture, bilinearly, `align_corners=False`."""
    if tuple(maps.shape[-2:]) == tuple(size):
        return maps
    return F.interpolate(maps[:, None], size=tuple(size), mode="bilinear", align_corners=False)[:, 0]
