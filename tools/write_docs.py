"""Draw the documentation from the files in results/: figures, and pages from docs/templates.

Command:  python tools/write_docs.py          (under a minute)

`torchsite reproduce NAME --publish` does the same for one result after its run.
"""

from pathlib import Path

from torchsite.paper.publish import write_docs

if __name__ == "__main__":
    write_docs(Path(__file__).resolve().parent.parent)
