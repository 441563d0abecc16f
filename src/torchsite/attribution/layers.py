"""Find a layer by module or dotted name, watch it, and bring its maps to the size of the picture.

A layer is *spatial* when it answers a tensor (batch, depth, rows, cols) of more than one position. When no
layer is named, the last spatial layer is taken through which everything passes on its way to the logits.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TypeGuard

from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge
from torch.nn import functional as F

from torchsite.errors import NotApplicableError, did_you_mean
from torchsite.shapes import Heatmaps, Images

Layer = nn.Module | str


def name_of(model: nn.Module, layer: Layer) -> str:
    """The dotted name of a layer of the model; a stranger is an error that names the nearest layer."""
    names: dict[str, nn.Module] = {name: module for name, module in model.named_modules() if name}
    if isinstance(layer, str):
        if layer not in names:
            raise NotApplicableError(f"the model has no layer {layer!r}: {did_you_mean(layer, names)}")
        return layer
    for name, module in names.items():
        if module is layer:
            return name
    raise NotApplicableError(f"{type(layer).__name__} is no layer of the model: pass one of its own modules")


def is_spatial(output: object, n_images: int) -> TypeGuard[Tensor]:
    """Whether a module's output is (batch, depth, rows, cols) with more than one position."""
    return (
        isinstance(output, Tensor)
        and output.ndim == 4
        and output.is_floating_point()
        and len(output) == n_images
        and output.shape[-2] * output.shape[-1] > 1
    )


def last_spatial_layer(model: nn.Module, images: Images) -> str:
    """The name of the last layer with rows and columns that everything passes through, found by one pass.

    A layer that is by-passed (a branch of a block, a decoder beside the features) explains a part of the
    logits only; one of those is taken if there is no other. A container that ends with a layer answers the
    same tensor and runs a moment later, so the outermost of the two is named: `layer4`, not `layer4.1.relu`.
    """
    twins = images[:1].detach().expand(2, -1, -1, -1).clone().requires_grad_()
    calls: list[tuple[str, object]] = []
    with _listening(model, calls):
        logits = model(twins.clone())
    counts = Counter(name for name, _ in calls)
    spatial = [
        (name, get_gradient_edge(output).node)
        for name, output in calls
        if is_spatial(output, 2) and counts[name] == 1 and output.requires_grad
    ]
    if isinstance(logits, Tensor) and logits.requires_grad:
        start, end = get_gradient_edge(logits).node, get_gradient_edge(twins).node
        on_the_way = ancestors(start)
        leading = [(name, node) for name, node in reversed(spatial) if node in on_the_way]
        through_all = (name for name, node in leading if end not in ancestors(start, without=node))
        for name in chain(through_all, (name for name, _ in leading)):
            return name
    raise NotApplicableError(
        f"{type(model).__name__} has no spatial layer: no module on the way to its logits answers "
        "(batch, depth, rows, cols) with more than one position. Use a method that works on the pictures"
    )


def ancestors(start: Node, without: Node | None = None) -> set[Node]:
    """All nodes of the autograd graph that `start` depends on, itself included, if one were not there."""
    found: set[Node] = set()
    queue: list[Node | None] = [start]
    while queue:
        node = queue.pop()
        if node is not None and node is not without and node not in found:
            found.add(node)
            queue.extend(child for child, _ in node.next_functions)
    return found


@contextmanager
def _listening(model: nn.Module, calls: list[tuple[str, object]]) -> Iterator[None]:
    """Write down every named module's output, in the order of completion."""

    def note(name: str, module: nn.Module, inputs: object, output: object) -> object:
        calls.append((name, output))
        # The model goes on with a copy, so that an in-place operation further on spares what was noted.
        return output.clone() if is_spatial(output, 2) else output

    handles = [
        module.register_forward_hook(partial(note, name)) for name, module in model.named_modules() if name
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watched(model: nn.Module, name: str) -> Iterator[nn.Module]:
    """The layer, under guard: an output that is not spatial, a second run or no run at all is an error.

    What the layer answers is copied, so that it is the layer's own even if it hands on what it was given.
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
    """What the layer answers; the model goes on with a copy, so that nothing overwrites it."""
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
