"""Image classifiers that explain themselves, with explanations that move with the picture.

    import torchsite as ts

The names below are all that most users type; each is imported when it is first used, so importing the
package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from torchsite.version import __version__

if TYPE_CHECKING:
    from torchsite import attribution, metrics
    from torchsite.conversion import convert
    from torchsite.data import as_images, load_dataset
    from torchsite.evaluation.compare import compare
    from torchsite.model import SITE, BlackBox, Explanation
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
    "compare",
    "convert",
    "fit",
    "load_dataset",
    "metrics",
]

_HOMES = {
    "SITE": "torchsite.model",
    "BlackBox": "torchsite.model",
    "Explanation": "torchsite.model",
    "TrainingConfig": "torchsite.training",
    "TransformFamily": "torchsite.transforms",
    "as_images": "torchsite.data",
    "compare": "torchsite.evaluation.compare",
    "convert": "torchsite.conversion",
    "fit": "torchsite.training",
    "load_dataset": "torchsite.data",
}
_MODULES = ("attribution", "metrics")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"torchsite.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'torchsite' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
