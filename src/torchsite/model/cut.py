"""The front of any network, up to some layers: what it answers there, without what comes after.

The network's code is read by torch.fx, but only that of the modules which hold one of the layers; every
other module is called as it is, whatever its code does. Weights keep their names; what comes after the last
layer is gone. The result is an ordinary module, which can be copied, saved and exported.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx, nn

from torchsite.errors import NotApplicableError
from torchsite.modes import evaluating


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
        """Write down what every module answers."""
        answer = super().call_module(m, forward, args, kwargs)
        self.answers.setdefault(m, []).append(getattr(answer, "node", answer))
        return answer


def cut(network: nn.Module, layers: Sequence[str]) -> fx.GraphModule:
    """A module that answers what the layers do, as a list; the layers are named in the order they run.

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
