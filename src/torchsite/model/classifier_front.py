"""A classifier of the user's own, trained elsewhere, as a feature extractor: cut at some of its layers.

The network's weights are kept, and tuned at a small rate or not at all. Lateral sums make `depth` features of
its maps.

torch.fx traces the modules that hold one of the layers; every other module is called as it is. Weights keep
their names; what comes after the last layer is gone. The result is an ordinary module, which can be copied,
saved and exported.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from torchsite.errors import ConfigError, NotApplicableError
from torchsite.layers import Layer, last_spatial_layer, name_of, spatial_layers
from torchsite.model.extractor import ImageShape
from torchsite.model.fine_tuned import FineTuned
from torchsite.modes import evaluating

USUAL_STRIDE = 8


class ClassifierFront(FineTuned):
    """A copy of a classifier up to one layer or several from fine to coarse: modules or dotted names.

    By default these are the last layers of each stride of 8 pixels or more that lie on every path to the
    logits. The network gets pictures in [0, 1]; if it was trained on normalised ones, give the model mean and
    std.
    """

    def __init__(
        self,
        classifier: nn.Module,
        image_shape: ImageShape,
        layer: Layer | Sequence[Layer] | None = None,
        depth: int = 16,
        fine_tuning: float = 0.1,
        common: int = 64,
    ) -> None:
        channels = image_shape[0]
        images = _like(classifier, image_shape)
        if layer is None:
            with torch.enable_grad(), evaluating(classifier):
                names = usual_layers(classifier, images)
        else:
            asked = [layer] if isinstance(layer, nn.Module | str) else layer
            names = [name_of(classifier, one) for one in asked]
        try:
            body = cut(copy.deepcopy(classifier), names)
        except NotApplicableError:
            if layer is not None or len(names) == 1:
                raise
            names = names[-1:]  # the finer ones are optional
            body = cut(copy.deepcopy(classifier), names)
        with torch.no_grad(), evaluating(body):
            answers = dict(zip(names, body(images), strict=True))
        for name, maps in answers.items():
            if not isinstance(maps, Tensor) or maps.ndim != 4:
                came = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
                raise ConfigError(
                    f"layer {name!r}: expected (batch, depth, rows, cols), got {came}: name another"
                )
        widths = [maps.shape[1] for maps in answers.values()]
        super().__init__(body, widths, depth, common, fine_tuning)
        self.layers = tuple(names)
        self.mean, self.std = (0.0,) * channels, (1.0,) * channels


def usual_layers(classifier: nn.Module, images: Tensor) -> list[str]:
    """The last layer of each resolution of an eighth of the picture or less, from fine to coarse.

    The last of all is always there: it is the only one of a network that stays finer.
    """
    shapes = spatial_layers(classifier, images)
    if not shapes:  # every layer is by-passed
        return [last_spatial_layer(classifier, images)]
    last, height = list(shapes)[-1], images.shape[-2]
    coarse = {rows: name for name, (_, rows, _) in shapes.items() if round(height / rows) >= USUAL_STRIDE}
    coarse |= {shapes[last][1]: last}
    return [name for _, name in sorted(coarse.items(), reverse=True)]


def n_classes_of(classifier: nn.Module, image_shape: ImageShape) -> int:
    """How many logits the classifier gives to a picture."""
    if not isinstance(classifier, nn.Module):
        raise ConfigError(
            f"a classifier: expected a torch.nn.Module, got {type(classifier).__name__}: build it in Python "
            "and load its weights, files of networks are not read"
        )
    with torch.no_grad(), evaluating(classifier):
        logits = classifier(_like(classifier, image_shape))
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ConfigError(f"a classifier must answer logits (batch, classes), this one answers {came}")
    return logits.shape[1]


def _like(classifier: nn.Module, image_shape: ImageShape) -> Tensor:
    """A picture of the classifier's type, where it is."""
    like = next(iter(classifier.parameters()), torch.zeros(()))
    return torch.zeros(1, *image_shape, dtype=like.dtype, device=like.device)


class _Reader(fx.Tracer):
    """Looks into modules that hold one of the layers, and into no other."""

    def __init__(self, layers: Sequence[str]) -> None:
        super().__init__()
        self._layers = layers
        self.answers: dict[nn.Module, list[fx.Node]] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is called as it is."""
        return not any(layer.startswith(f"{module_qualified_name}.") for layer in self._layers)

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record the output of every module."""
        answer = super().call_module(m, forward, args, kwargs)
        self.answers.setdefault(m, []).append(getattr(answer, "node", answer))
        return answer


def cut(network: nn.Module, layers: Sequence[str]) -> fx.GraphModule:
    """A module that returns the outputs of the layers, in the order in which they run.

    It shares its weights with the network.
    """
    reader = _Reader(layers)
    try:
        with evaluating(network):
            graph = reader.trace(network)
    except Exception as error:  # code that depends on values fails in many ways
        raise NotApplicableError(
            f"{type(network).__name__} cannot be cut at {', '.join(layers)}, since its code cannot be read "
            f"({str(error).splitlines()[0]}): name another layer, or write a module of your own that answers "
            "what you want there, and pass it as the feature extractor"
        ) from error
    answers = [reader.answers.get(network.get_submodule(layer), []) for layer in layers]
    for layer, found in zip(layers, answers, strict=True):
        if len(found) != 1:
            raise NotApplicableError(
                f"layer {layer!r} runs {len(found)} times in a pass: name one that runs once"
            )
    (end,) = (node for node in graph.nodes if node.op == "output")
    end.args = ([found[0] for found in answers],)
    front = fx.GraphModule(network, graph, "Front")
    front.graph.eliminate_dead_code()
    front.recompile()
    front.delete_all_unused_submodules()
    return front.train(network.training)
