"""Self-explaining models and post-hoc methods under one protocol, several seeds, one board."""

from experiments.leaderboard.entries import ENTRIES, Entry, given, with_method
from experiments.leaderboard.experiment import run
from experiments.leaderboard.steps import measure

__all__ = ["ENTRIES", "Entry", "given", "measure", "run", "with_method"]
