"""Split pictures into two halves with a seed: every class in proportion, groups never torn apart."""

from collections import Counter
from collections.abc import Hashable, Sequence

import torch

from torchsite.randomness import Rng


def held_out(labels: Sequence[int], groups: Sequence[Hashable], share: float, rng: Rng) -> frozenset[int]:
    """The rows that go to the test half.

    Each class gives `share` of its pictures, at least one, and keeps at least one. Groups (pictures that show
    the same thing) come in random order; one is held out if none of its classes gives more than its share.
    """
    totals = Counter(labels)
    room = Counter({label: min(n - 1, max(1, round(share * n))) for label, n in totals.items()})
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    rows_of = list(members.values())
    chosen: set[int] = set()
    for which in torch.randperm(len(rows_of), generator=rng).tolist():
        wanted = Counter(labels[row] for row in rows_of[which])
        if wanted <= room:
            room -= wanted
            chosen.update(rows_of[which])
    return frozenset(chosen)
