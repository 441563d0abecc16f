"""What a bare install has: a folder that holds the core dependencies, what they need, and nothing else."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

# Imports every module and runs every command line it is told to; what comes of it is its last line.
DRIVER = """
import contextlib, importlib, io, json, pkgutil, sys, traceback

sys.modules["resource"] = None  # as on Windows
import torchsite
from torchsite.errors import MissingExtraError

modules = {}
for found in pkgutil.walk_packages(torchsite.__path__, "torchsite.", onerror=lambda name: None):
    try:
        importlib.import_module(found.name)
        modules[found.name] = ""
    except MissingExtraError as error:
        modules[found.name] = str(error)
    except Exception:
        modules[found.name] = traceback.format_exc()

from torchsite.cli import main

def run(words):
    said, complained = io.StringIO(), io.StringIO()
    sys.argv = ["torchsite", *words]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            code = traceback.format_exc()
    return {"code": code, "out": said.getvalue(), "err": complained.getvalue()}

def build(extractor):
    try:
        torchsite.SITE(extractor)
        return ""
    except MissingExtraError as error:
        return str(error)

extractors = {name: build(name) for name in ("timm/resnet18",)}
commands = [run(words) for words in json.loads(sys.argv[1])]
print()
print(json.dumps({"modules": modules, "extractors": extractors, "commands": commands}))
"""


def needed(requirements):
    """The names of all distributions that the requirements bring, in the environment at hand."""
    found, queue = set(), [(Requirement(text), "") for text in requirements]
    while queue:
        requirement, extra = queue.pop()
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        for key in [(canonicalize_name(requirement.name), extra) for extra in ("", *requirement.extras)]:
            if wanted and key not in found:
                found.add(key)
                texts = distribution(key[0]).requires or []
                queue += [(Requirement(text), key[1]) for text in texts]
    return sorted({name for name, _ in found})


def link(folder, names):
    """Link what the distributions installed, and their own papers, into a folder."""
    for name in names:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            target = folder / top
            if not target.exists():
                target.symlink_to(Path(found.locate_file(top)).absolute())


def run_bare(folder, command_lines):
    """What the modules and the command lines do where only `folder` and the package can be imported."""
    environment = {name: value for name, value in os.environ.items() if not re.match("PYTHON|COV_", name)}
    environment |= {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")]), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-S", "-W", "ignore", "-c", DRIVER, json.dumps(command_lines)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder.parent,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
