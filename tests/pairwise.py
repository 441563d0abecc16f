"""Fewer cases than a product: every two values of different lists meet at least once."""

from itertools import combinations, product


def pairwise(*lists):
    """Cases (one value of each list) in which every pair of values of two lists occurs; always the same."""
    cases = list(product(*lists))
    missing = {pair for case in cases for pair in _pairs(case, lists)}
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(missing & _pairs(case, lists)))
        missing -= _pairs(best, lists)
        chosen.append(best)
    return chosen


def _pairs(case, lists):
    places = [(n, lists[n].index(value)) for n, value in enumerate(case)]
    return set(combinations(places, 2))
