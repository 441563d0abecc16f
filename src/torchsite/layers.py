"""Find a layer of any network: by module, by dotted name, or the spatial ones by trying a picture.

A layer is *spatial* when it outputs a tensor (batch, depth, rows, cols) of more than one position. When no
layer is named, the last spatial layer is taken through which everything passes on its way to the logits.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeGuard

from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge

from torchsite.errors import NotApplicableError, did_you_mean
from torchsite.shapes import Images

Layer = nn.Module | str
Shape = tuple[int, int, int]


def name_of(model: nn.Module, layer: Layer) -> str:
    """The dotted name of a layer of the model; an unknown one is an error that names the nearest."""
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
    logits only; one of those is taken if there is no other. A container that ends with a layer outputs the
    same tensor and runs a moment later, so the outermost of the two is named: `layer4`, not `layer4.1.relu`.
    """
    found = _one_pass(model, images)
    last_first = found.leading[::-1]
    for layer in chain(filter(found.is_passed_by_all, last_first), last_first):
        return layer.name
    raise NotApplicableError(
        f"{type(model).__name__} has no spatial layer: no module on the way to its logits answers "
        "(batch, depth, rows, cols) with more than one position. Use a method that works on the pictures"
    )


def spatial_layers(model: nn.Module, images: Images) -> dict[str, Shape]:
    """All spatial layers that everything passes through, in the order of completion.

    Each with the shape of its output for one picture: depth, rows, columns.
    """
    found = _one_pass(model, images)
    return {layer.name: layer.shape for layer in found.leading if found.is_passed_by_all(layer)}


class SpatialLayer(NamedTuple):
    """A layer, the shape of its output for one picture, and the node of that output in the graph."""

    name: str
    shape: Shape
    node: Node


class Pass(NamedTuple):
    """What one pass found: the spatial layers that lead from the pictures (`end`) to the logits (`start`)."""

    leading: list[SpatialLayer]
    start: Node | None = None
    end: Node | None = None

    def is_passed_by_all(self, layer: SpatialLayer) -> bool:
        """Whether no way from the pictures to the logits goes around the layer."""
        return self.start is not None and self.end not in ancestors(self.start, without=layer.node)


def _one_pass(model: nn.Module, images: Images) -> Pass:
    twins = images[:1].detach().expand(2, -1, -1, -1).clone().requires_grad_()
    calls: list[tuple[str, object]] = []
    with _listening(model, calls):
        logits = model(twins.clone())
    if not (isinstance(logits, Tensor) and logits.requires_grad):
        return Pass([])
    counts = Counter(name for name, _ in calls)
    layers = [
        SpatialLayer(
            name, (output.shape[1], output.shape[2], output.shape[3]), get_gradient_edge(output).node
        )
        for name, output in calls
        if is_spatial(output, 2) and counts[name] == 1 and output.requires_grad
    ]
    start, end = get_gradient_edge(logits).node, get_gradient_edge(twins).node
    on_the_way = ancestors(start)
    return Pass([layer for layer in layers if layer.node in on_the_way], start, end)


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
