"""How the commands speak: lines that are never broken (paths stay whole), text that is never markup."""

from rich.console import Console


def terminal(*, stderr: bool = False) -> Console:
    """A console for results; square brackets in names and intervals are printed as they are."""
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False)
