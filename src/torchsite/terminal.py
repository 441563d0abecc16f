"""What people see at a terminal: text as it is, except for characters that would command the terminal."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.segment import Segment

from torchsite.files import visible


class Terminal(Console):
    """A console on which all text is `visible`, also inside tables and bars; rich's own colours remain."""

    def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
        """The pieces of what is printed."""
        for text, style, control in super().render(*given, **options):
            yield Segment(text if control else visible(text), style, control)


def terminal(*, stderr: bool = False) -> Terminal:
    """A console for results: lines are not broken; square brackets and colons in names stay as they are."""
    return Terminal(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
