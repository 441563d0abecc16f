"""Ranks of the rows by each measure, and how far the measures agree on them (Kendall's W).

    W = 12 Σ_i (R_i - R̄)² / (m² (n³ - n) - m Σ_j T_j),    R_i = Σ_j rank of row i by measure j

of n rows by m measures; equal scores share the mean of their ranks, T_j = Σ (t³ - t) over the groups of t
equal ranks. 1: all measures rank alike; 1/m is what measures without any relation give on average.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

Scores = Sequence[float | None]


def ranks(scores: Scores, better: int) -> list[float | None]:
    """1 for the best; equal scores share the mean of their ranks, a row without a score has none."""
    there = torch.tensor([better * s for s in scores if s is not None], dtype=torch.float64)
    above = (there[None, :] > there[:, None]).sum(1)
    equal = (there[None, :] == there[:, None]).sum(1)
    found = iter((1 + above + (equal - 1) / 2).tolist())
    return [None if score is None else next(found) for score in scores]


def kendalls_w(table: Float[Tensor, "measures rows"]) -> float:
    """The agreement of measures on rows, from ranks."""
    m, n = table.shape
    if m < 1 or n < 2:
        return float("nan")
    sums = table.double().sum(0)
    spread = (sums - sums.mean()).square().sum()
    counts = (table[:, :, None] == table[:, None, :]).sum(2).double()
    ties = (counts.square() - 1).sum()  # each of t equal ranks brings t² - 1, together t³ - t
    most = m**2 * (n**3 - n) - m * ties
    return float(12 * spread / most) if most > 0 else float("nan")


def agreement(by_measure: Mapping[str, Sequence[float | None]]) -> tuple[float, int, int]:
    """Kendall's W over the rows that all measures rank, how many these are, and how many measures."""
    columns = [column for column in by_measure.values() if any(rank is not None for rank in column)]
    n_rows = len(columns[0]) if columns else 0
    whole = [row for row in range(n_rows) if all(column[row] is not None for column in columns)]
    kept = [[float(column[row] or 0) for row in whole] for column in columns]
    again = [[rank or 0.0 for rank in ranks([-r for r in column], 1)] for column in kept]  # among those alone
    table = torch.tensor(again, dtype=torch.float64).reshape(len(columns), len(whole))
    return kendalls_w(table), len(whole), len(columns)
