"""Steps that are done once: a result file that is there, made with the same settings, is taken as it is."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torchsite.errors import ConfigError
from torchsite.results import Result

log = logging.getLogger(__name__)


def step(
    path: Path, config: Mapping[str, Any], find: Callable[[], Mapping[str, Any]], seed: int = 0
) -> Result:
    """What `find` finds, kept in the file; a file made with other settings is refused, not mixed."""
    if path.exists():
        found = Result.load(path)
        if (found.config, found.seed) != (dict(config), seed):
            raise ConfigError(
                f"{path} was made with other settings ({found.config}, not {dict(config)}): "
                "delete it, or name another folder"
            )
        return found
    started = time.monotonic()
    result = Result(path.stem, find(), dict(config), seed, time.monotonic() - started)
    result.save(path)
    log.info("%s: %.0f s", path.stem, result.seconds)
    return result
