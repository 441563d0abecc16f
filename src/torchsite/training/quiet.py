"""Lightning's chatter, kept out of a library that says nothing unless asked.

Only what says nothing about the run is silenced, and only while `fit` runs: tips and hardware lines (below
the level of warnings), and warnings about Lightning's own insides.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("lightning.pytorch", "lightning.fabric")
EXPECTED_WARNINGS = (
    r".*LeafSpec.* is deprecated",  # Lightning's use of torch
    r"Experiment logs directory .* exists and is not empty",  # a resumed run keeps its earlier logs
)


@contextmanager
def quiet() -> Iterator[None]:
    """Lightning's loggers at the level of warnings, its known false alarms off; all as before at the end."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        for message in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        try:
            for logger in loggers:
                logger.setLevel(max(logging.WARNING, logger.level))
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
