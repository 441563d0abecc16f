"""Optional packages: imported where they are needed, with an error that names what to install."""

import sys
from importlib import import_module
from types import ModuleType

from torchsite.errors import MissingExtraError


def needed(module: str, *, who: str, install: str, package: str = "") -> ModuleType:
    """An optional module; without it an error that names its user, the package, and what to install.

    A module that is installed but fails on import (compiled for another version) gets another error.
    """
    library = module.partition(".")[0]
    package = package or library
    try:
        return import_module(module)
    except (ImportError, RuntimeError, OSError) as error:
        if isinstance(error, ModuleNotFoundError) and sys.modules.get(library) is None:
            raise MissingExtraError(
                f"{who} needs {package}, which is not installed: pip install '{install}'"
            ) from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingExtraError(
            f"{who} needs {package}, which is installed but cannot be imported ({reason}): "
            f"pip install '{install}' for versions that fit each other and torch"
        ) from error
