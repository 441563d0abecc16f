"""Build wheel and sdist, install the wheel alone in an empty environment, and run the quick start from it.

Command:  make package          (minutes: torch is installed once more, in build/package)

`make` sets the constraints, so that the build takes the pinned hatchling and the empty environment the pinned
versions of the core. The package must be found there, not in this checkout: Python runs isolated, elsewhere.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST, ENVIRONMENT = ROOT / "dist", ROOT / "build" / "package"
MOST_BYTES = 40e6

# What a package without its data would lack, and no import would notice.
NEEDED = (
    "torchsite/py.typed",
    "torchsite/data/mnist_sample.png",
    "torchsite/recipes/mnist.yaml",
    "torchsite/report/templates/",
    "torchsite/web/static/",
    "torchsite/weights/mnist/config.json",
    "torchsite/weights/mnist/model.safetensors",
    "torchsite/weights/mnist/README.md",
)


def quick_start(readme: str) -> str:
    """The first code of the README."""
    return re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)[0]


def missing(names: list[str]) -> list[str]:
    """What is needed and not among the files of an archive."""
    return [needed for needed in NEEDED if not any(needed in name for name in names)]


def listed(path: Path) -> list[str]:
    """The names of the files in a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        return sdist.getnames()


def check(path: Path) -> str:
    """The size of an archive in words; an error if it is too large or lacks something."""
    names, size = listed(path), path.stat().st_size
    if missing(names):
        sys.exit(f"{path.name} lacks {', '.join(missing(names))}: see [tool.hatch.build] in pyproject.toml")
    if size > MOST_BYTES:
        sys.exit(
            f"{path.name} has {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}: "
            "let the larger weights be a download of their own"
        )
    return f"{path.name}: {size / 1e6:.1f} MB, {len(names):,} files"


def build() -> list[Path]:
    """Wheel and sdist, new."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True, capture_output=True)
    return [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]


def install(wheel: Path) -> Path:
    """The Python of an empty environment that has the wheel and what it needs."""
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    python = ENVIRONMENT / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", wheel], check=True)
    return python


def try_out(python: Path) -> str:
    """Run the quick start, and a command, where the checkout cannot be seen."""
    where = "import torchsite; print(torchsite.__file__)\n"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "docs" / "pictures" / "cat.jpg", folder)
        code = where + quick_start((ROOT / "README.md").read_text())
        done = subprocess.run(
            [python, "-I", "-c", code], cwd=folder, check=True, capture_output=True, text=True
        )
        subprocess.run([python.parent / "torchsite", "models"], cwd=folder, check=True, capture_output=True)
        if not Path(folder, "why.png").stat().st_size:
            sys.exit("the quick start has drawn nothing")
    if str(ENVIRONMENT) not in done.stdout.splitlines()[0]:
        sys.exit(f"the quick start ran from {done.stdout.splitlines()[0]}, not from the wheel")
    return done.stdout


def main() -> None:
    """All of it."""
    archives = build()
    said = [check(path) for path in archives]
    (wheel,) = (path for path in archives if path.suffix == ".whl")
    try_out(install(wheel))
    sys.stdout.write("\n".join([*said, f"the quick start runs from the wheel alone ({ENVIRONMENT})"]) + "\n")


if __name__ == "__main__":
    main()
