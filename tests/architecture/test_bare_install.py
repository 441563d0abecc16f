"""With the core dependencies alone every module imports, and every command works or names its extra."""

import pytest
import typer
from bare_install import CORE, link, needed, run_bare
from PIL import Image

from torchsite.cli import app

pytestmark = pytest.mark.slow

COMMANDS = sorted(typer.main.get_command(app).commands)
WORKS = [
    *([name, "--help"] for name in COMMANDS),
    ["--help"],
    ["reproduce"],
    ["data"],
    ["data", "mnist_sample"],
    ["models"],
    ["explain", "digit.png"],
    ["evaluate", "mnist", "--limit", "4"],
    ["compare", "mnist", "--limit", "2", "--methods", "gradient", "--metrics", "accuracy,self_consistency"],
    ["export", "mnist_black_box", "--to", "torch-export"],
]
NEEDS = {
    ("audit", "mnist"): "pip install 'torchsite[audit]'",
    ("serve",): "which is not installed: pip install 'torchsite[web]'",
    ("export", "mnist", "--to", "onnx"): "pip install 'torchsite[export]'",
    ("reproduce", "baselines", "--quick"): "pip install 'torchsite[baselines]'",
}
HIDDEN = {"scikit-learn", "scikit-image", "scipy", "xgboost-cpu", "onnx", "onnxruntime", "onnxscript"}
HIDDEN |= {"fastapi", "uvicorn", "tensorboard", "kornia", "playwright", "pytest", "timm", "torchvision"}


@pytest.fixture(scope="module")
def names():
    return needed(CORE)


@pytest.fixture(scope="module")
def bare(names, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare") / "site-packages"
    folder.mkdir()
    Image.new("L", (28, 28)).save(folder.parent / "digit.png")
    link(folder, names)
    return run_bare(folder, [*WORKS, *map(list, NEEDS)])


def test_the_core_brings_none_of_the_extras(names):
    assert "torch" in names
    assert not HIDDEN & set(names)


def test_every_module_imports_and_only_the_page_asks_for_its_extra(bare):
    asked = {name: said for name, said in bare["modules"].items() if said}
    assert len(bare["modules"]) > 150
    assert list(asked) == ["torchsite.web"]
    assert asked["torchsite.web"].endswith("pip install 'torchsite[web]'")
    assert "\n" not in asked["torchsite.web"]


def test_a_command_works_or_says_in_one_line_which_extra_it_needs(bare):
    works, needs = bare["commands"][: len(WORKS)], bare["commands"][len(WORKS) :]
    for words, did in zip(WORKS, works, strict=True):
        assert (did["code"], did["err"]) == (0, ""), words
        assert did["out"], words
    for (words, extra), did in zip(NEEDS.items(), needs, strict=True):
        assert (did["code"], did["out"]) == (1, ""), words
        (line,) = did["err"].splitlines()
        assert extra in line


def test_a_backbone_of_a_library_says_in_one_line_which_extra_it_needs(bare):
    said = bare["extractors"]["timm/resnet18"]
    assert said.endswith("which is not installed: pip install 'torchsite[timm]'")
    assert "\n" not in said
