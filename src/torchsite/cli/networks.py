"""A user's own network as the commands name it: `module:function`, or a file that can be read without trust.

Files are read by `torchsite.model.program_reading`, which neither unpickles nor runs what is in them. A
function is the user's own code: naming it runs it.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchsite.errors import ConfigError

if TYPE_CHECKING:
    from torch import nn


def open_network(source: str, weights: Path | None = None) -> "nn.Module":
    """The network of a file, or what the function answers, with weights of a file if they are given."""
    from torchsite.model.program_reading import read_program_file
    from torchsite.model.weight_files import read_weights

    if ":" not in source or Path(source).exists():
        if weights is not None:
            raise ConfigError("--weights are for module:function: a file of a network holds its own")
        return read_program_file(Path(source))
    network = call(source)
    if weights is not None:
        try:
            network.load_state_dict(read_weights(weights))
        except RuntimeError as error:
            raise ConfigError(f"{weights} does not fit what {source} builds: {error}") from error
    return network.eval()


def call(source: str) -> "nn.Module":
    """What the function `module:function` answers; modules of the current directory are found as well."""
    from torch import nn

    module_name, _, name = source.partition(":")
    try:
        with _here():
            found: Any = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{source}: expected module:function as in `from module import function` ({error})"
        ) from error
    network = found if isinstance(found, nn.Module) else found() if callable(found) else found
    if not isinstance(network, nn.Module):
        raise ConfigError(f"{source}: expected a torch.nn.Module, got {type(network).__name__}")
    return network


@contextmanager
def _here() -> Iterator[None]:
    """With the current directory on the path, as `python -m` has it."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path.remove(str(Path.cwd()))
