"""What a user types is `import torchsite as ts`, then a few names."""

import dataclasses
import inspect
import subprocess
import sys
import types

import pytest

import torchsite as ts
from torchsite.model import SiteConfig
from torchsite.version import __version__


def fresh(code):
    """What a new process prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_the_names_are_few_and_stand_for_what_they_say():
    assert all(getattr(ts, name) is not None for name in ts.__all__)
    assert dir(ts) == sorted(ts.__all__)
    assert len(ts.__all__) < 20
    assert ts.__version__ == __version__
    assert isinstance(ts.metrics, types.ModuleType)
    assert ts.SITE.__module__ == "torchsite.model.site"
    assert ts.TransformFamily is ts.TransformFamily


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'SIET'"):
        _ = ts.SIET
    assert not hasattr(ts, "_HOME")


def test_names_can_be_imported():
    assert fresh("from torchsite import SITE, metrics; print(SITE.__name__, metrics.__name__)") == (
        "SITE torchsite.metrics"
    )


def test_importing_the_package_imports_nothing_heavy():
    heavy = "('torch', 'lightning', 'numpy', 'matplotlib')"
    assert fresh(f"import sys, torchsite; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_transforms_and_models_come_without_lightning():
    code = "import sys, torchsite as ts; ts.SITE, ts.TransformFamily; print('lightning' in sys.modules)"
    assert fresh(code) == "False"


def test_importing_is_quick():
    empty, ours = (min(seconds(code) for _ in range(3)) for code in ("pass", "import torchsite"))
    assert ours - empty < 0.3


def seconds(code):
    """Processor time of a new process: what else the machine does is not its fault."""
    clock = "import time; print(time.process_time())"
    return float(fresh(f"{code}\n{clock}"))


def test_models_are_listed_and_loaded_by_name_or_folder(tmp_path):
    assert "mnist" in ts.list_models()
    model = ts.load("mnist")
    assert isinstance(model, ts.SITE)
    again = ts.load(model.save_pretrained(tmp_path / "mine"))
    assert all(tensor.equal(again.state_dict()[name]) for name, tensor in model.state_dict().items())


def test_the_fields_of_a_model_stand_in_its_signature():
    fields = {field.name for field in dataclasses.fields(SiteConfig)} - {"kind", "version"}
    given = set(inspect.signature(ts.SITE).parameters)
    assert fields <= given
    assert given - fields == {"n_classes", "pretrained"}


@pytest.mark.parametrize("function", [ts.fit, ts.convert])
def test_who_writes_files_is_told_where(function):
    assert inspect.signature(function).parameters["folder"].default is inspect.Parameter.empty
