"""`make` installs what was tested: all direct dependencies are pinned, as pyproject.toml allows."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
DIRECT = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(requirement for extra in EXTRAS.values() for requirement in extra),
]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE))
MAKEFILE = (ROOT / "Makefile").read_text()
VERSIONS = {canonicalize_name(name): Version(version) for name, version in PINS.items()}


def test_every_direct_dependency_is_pinned():
    wanted = map(Requirement, DIRECT)
    assert [str(r) for r in wanted if VERSIONS[canonicalize_name(r.name)] not in r.specifier] == []


def test_each_dependency_is_named_once():
    for requirements in (PROJECT["project"]["dependencies"], *EXTRAS.values()):
        names = [canonicalize_name(Requirement(text).name) for text in requirements]
        assert len(set(names)) == len(names)


def test_each_package_is_pinned_once():
    assert len(VERSIONS) == len(PINS)


def test_extras_are_the_ones_that_make_installs():
    (installed,) = re.findall(r"^EXTRAS := \.\[([\w,]+)\]$", MAKEFILE, flags=re.MULTILINE)
    assert set(installed.split(",")) == set(EXTRAS) - {"timm"}


def test_the_libraries_of_backbones_are_installed_apart():
    (apart,) = re.findall(r"^APART := (.+)$", MAKEFILE, flags=re.MULTILINE)
    assert set(apart.split()) == {Requirement(text).name for text in EXTRAS["timm"]}
    assert "--no-deps --upgrade --target .venv/backbones $(APART)" in MAKEFILE


def commands(target):
    """What `make` would do for a target in a fresh clone, and nothing is done."""
    made = ["make", "--dry-run", "--always-make", target]
    return subprocess.run(made, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("target", "wants_extras"),
    [
        ("demo", False),
        ("test", True),
        ("test-all", True),
        ("test-avx2", True),
        ("lint", True),
        ("docs", True),
        ("package", True),
    ],
)
def test_the_demo_installs_the_package_alone_and_all_else_comes_with_the_tests(target, wants_extras):
    said = commands(target)
    assert "--editable '.'" in said
    assert ("--editable '.[" in said) == wants_extras
    assert "PIP_CONSTRAINT=constraints.txt" in said
    assert "UV_CONSTRAINT=constraints.txt" in said


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_only_the_quick_run_leaves_tests_out():
    assert '-m "not slow"' in commands("test")
    assert not any("-m " in commands(target).split("pytest")[-1] for target in ("test-all", "test-avx2"))
    assert "make test-all" in (ROOT / ".ci" / "run").read_text()
