"""timm and torchvision for tests, also where torchvision's compiled part does not load beside torch.

`make` puts the two into a folder of their own beside the environment: other libraries look for torchvision
when they are imported, and would break where it cannot be. The two operators that torchvision looks for are
defined here if its own are not there; nothing in the tests calls them.
"""

import contextlib
import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

FOLDER = Path(sys.prefix) / "backbones"
SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_OPERATORS = []


def backbone_library(name):
    """The library, or the test is skipped."""
    with _folder_on_path():
        if find_spec(name) is None:
            pytest.skip("the extra `timm` is not installed")
        _define_operators()
        return importlib.import_module(name)


@contextlib.contextmanager
def _folder_on_path():
    """The folder can be imported from, for as long as the libraries are: other processes inherit the path."""
    import torchmetrics  # noqa: F401  # has looked for torchvision now, and found none

    sys.path.append(str(FOLDER))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))


def _define_operators():
    try:
        importlib.import_module("torchvision")
    except RuntimeError:  # operator torchvision::nms does not exist
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(operator + SIGNATURE)
        _OPERATORS.append(library)  # what is defined lives as long as this does
        for part in [part for part in sys.modules if part.split(".")[0] == "torchvision"]:
            del sys.modules[part]
        importlib.import_module("torchvision")
