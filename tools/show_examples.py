"""Write the files of `examples/` into the pages that show them: `python tools/show_examples.py`.

A page names a file in a comment, `<!-- examples/NAME.py -->`; the code block that follows is that file.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("docs/templates/leaderboard.md.j2", "docs/examples.md")
BLOCK = re.compile(r"(<!-- (examples/[\w/]+\.py) -->\n\n)```python\n.*?```\n", re.DOTALL)


def filled(text: str) -> str:
    """The page with every example as it stands in its file."""
    return BLOCK.sub(lambda found: f"{found[1]}```python\n{(ROOT / found[2]).read_text()}```\n", text)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text()))
