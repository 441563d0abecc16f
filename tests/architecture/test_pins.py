"""`make` installs what was tested: all direct dependencies are pinned, as pyproject.toml allows."""

import re
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
VERSIONS = {canonicalize_name(name): Version(version) for name, version in PINS.items()}


@pytest.mark.parametrize("text", DIRECT)
def test_every_direct_dependency_is_pinned(text):
    requirement = Requirement(text)
    assert VERSIONS[canonicalize_name(requirement.name)] in requirement.specifier


def test_each_package_is_pinned_once():
    assert len(VERSIONS) == len(PINS)


def test_extras_are_the_ones_that_make_installs():
    (installed,) = re.findall(r"'\.\[([\w,]+)\]'", (ROOT / "Makefile").read_text())
    assert set(installed.split(",")) == set(EXTRAS)
