"""Imports go one way: each part of the package stands only on the layers before its own."""

import runpy
from pathlib import Path

import pytest
from layers import (
    LAYERS,
    PACKAGE,
    first_layer_cycle,
    imports,
    imports_of_experiments,
    layer,
    sources,
    wrong_imports,
)

MODULES = [(name, text) for name, text in sources() if name != "__init__"]


def test_imports_go_one_way():
    assert [wrong for name, text in MODULES for wrong in wrong_imports(name, text)] == []


def test_the_package_never_imports_the_experiments():
    """Only `torchsite reproduce` looks for them, beside the `src` of a checkout."""
    assert [(name, lines) for name, text in MODULES if (lines := imports_of_experiments(text))] == []
    assert imports_of_experiments("import math\nfrom experiments.registry import EXPERIMENTS") == [2]
    assert imports_of_experiments("def late():\n    import experiments") == [2]


def test_the_first_layer_has_an_order():
    graph = {name: {t.split(".")[0] for _, t in imports(name, text)} for name, text in MODULES}
    assert first_layer_cycle({name: graph[name] for name in LAYERS[0]}) == []


def test_every_module_was_read():
    assert len(MODULES) > 50
    assert {"transforms.base", "transforms.__init__", "distributed"} <= {name for name, _ in MODULES}


def test_every_layer_is_described():
    text = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    undescribed = [part for parts in LAYERS for part in parts if f"`{part}`" not in text]
    assert undescribed == []


def test_the_picture_of_the_layers_is_theirs():
    tool = runpy.run_path(str(PACKAGE.parents[1] / "tools" / "draw_layers.py"))
    assert tool["PICTURE"].read_text() == tool["draw"](), "run python tools/draw_layers.py"


# The checker itself.

WRONG = [
    ("transforms.bad", "from torchsite.model import SITE"),
    ("transforms.bad", "import torchsite.model.site"),
    ("transforms.bad", "from torchsite import model"),
    ("transforms.bad", "from ..model import SITE"),
    ("transforms.bad", "from .. import model"),
    ("transforms.bad", "def late():\n    from torchsite.training import fit"),
    ("transforms.bad", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torchsite.cli"),
    ("transforms.bad", "from torchsite.data import Dataset"),
    ("objective", "from torchsite.metrics import METRICS"),
    ("metrics.bad", "from torchsite.attribution import METHODS"),
    ("attribution.bad", "from torchsite.model import SITE"),
    ("errors", "from torchsite.transforms import Transform"),
    ("model.bad", "import torchsite"),
    ("report.bad", "import math, torchsite.web.app"),
]
RIGHT = [
    ("transforms.good", "from torchsite.transforms.base import Transform"),
    ("transforms.good", "from .base import Transform"),
    ("transforms.__init__", "from . import base"),
    ("results", "from torchsite.version import __version__"),
    ("metrics.good", "from torchsite.model import SITE"),
    ("cli.good", "from torchsite.report import comparison\nimport torch, torchsitelike"),
]


def test_wrong_imports_are_found_and_right_ones_let_through():
    assert [case for case in WRONG if len(wrong_imports(*case)) != 1] == []
    assert [case for case in RIGHT if wrong_imports(*case)] == []


def test_a_part_without_a_layer_is_an_error():
    with pytest.raises(ValueError, match="cellar"):
        layer("cellar")
    with pytest.raises(ValueError, match="cellar"):
        wrong_imports("model.bad", "from torchsite.cellar import wine")


def test_a_circle_is_found():
    assert first_layer_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == list("abcd")
    assert first_layer_cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_the_package_is_where_we_look():
    assert Path(PACKAGE, "version.py").exists()
