"""A result is a JSON file: values, configuration, seed, versions, machine, time.

Every table and figure is drawn from such a file, never from numbers in memory, so that what is shown can
be traced to what was run. Files are written to a neighbour first and renamed, so a reader never sees half.
"""

import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torchsite.errors import DataError
from torchsite.files import write_atomically
from torchsite.version import __version__

# Settings that keep torch, and the library beneath it, from what the processor could do.
LIMITS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
PACKAGES = ("torch", "numpy", "lightning", "torchmetrics", "captum")


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"torchsite": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What it ran on, as far as timings depend on it; the instructions are those in use, not those there."""
    import torch

    found = {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "native_bf16": torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    }
    return found | {name: os.environ[name] for name in LIMITS if name in os.environ}


@dataclass(frozen=True)
class Result:
    """What one experiment found, and everything needed to find it again."""

    name: str
    values: Mapping[str, Any]
    config: Mapping[str, Any]
    seed: int
    seconds: float
    versions: Mapping[str, str] = field(default_factory=versions)
    machine: Mapping[str, Any] = field(default_factory=machine)
    time: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

    def save(self, path: Path | str) -> Path:
        """Write the result atomically."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        return write_atomically(Path(path), text)

    @classmethod
    def load(cls, path: Path | str) -> "Result":
        """Read a result file; a damaged one is an error that names it."""
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise DataError(f"no result file at {path}: run the experiment that writes it first") from None
        except (ValueError, TypeError, RecursionError) as error:  # ValueError: no JSON, or no text
            raise DataError(
                f"{path} is not a torchsite result file ({error}): delete it and run again"
            ) from error
