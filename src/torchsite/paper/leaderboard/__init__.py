"""Self-explaining models and post-hoc methods under one protocol, several seeds, one board."""

from torchsite.paper.leaderboard.entries import ENTRIES, Entry, given, with_method
from torchsite.paper.leaderboard.experiment import run
from torchsite.paper.leaderboard.steps import measure

__all__ = ["ENTRIES", "Entry", "given", "measure", "run", "with_method"]
