"""Image classifiers that explain themselves, with explanations that move with the picture.

    import torchsite as ts

    model = ts.load("mnist")
    explanation = model.explain("digit.png")

The names below are all that most users type; each is imported when it is first used, so importing the
package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from torchsite.version import __version__

if TYPE_CHECKING:
    from torchsite import attribution, metrics, transforms
    from torchsite.autotrain.conversion import convert
    from torchsite.data import as_images, load_dataset
    from torchsite.evaluation.audit import audit
    from torchsite.evaluation.compare import compare
    from torchsite.evaluation.evaluate import evaluate
    from torchsite.model import SITE, BlackBox, Explanation, list_models, load
    from torchsite.training import TrainingConfig, fit
    from torchsite.transforms import TransformFamily

__all__ = [
    "SITE",
    "BlackBox",
    "Explanation",
    "TrainingConfig",
    "TransformFamily",
    "__version__",
    "as_images",
    "attribution",
    "audit",
    "compare",
    "convert",
    "evaluate",
    "fit",
    "list_models",
    "load",
    "load_dataset",
    "metrics",
    "transforms",
]

_HOMES = {
    "SITE": "model",
    "BlackBox": "model",
    "Explanation": "model",
    "TrainingConfig": "training",
    "TransformFamily": "transforms",
    "as_images": "data",
    "audit": "evaluation.audit",
    "compare": "evaluation.compare",
    "convert": "autotrain.conversion",
    "evaluate": "evaluation.evaluate",
    "fit": "training",
    "list_models": "model",
    "load": "model",
    "load_dataset": "data",
}
_MODULES = ("attribution", "metrics", "transforms")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"torchsite.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'torchsite' has no attribute {name!r}")
    value = getattr(import_module(f"torchsite.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
