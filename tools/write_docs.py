"""Draw the documentation from the files in results/: figures, and pages from docs/templates.

Command:  python tools/write_docs.py          (under a minute)

`torchsite reproduce NAME --publish` does the same for one result after its run.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # where the experiments are

from experiments.publish import write_docs

if __name__ == "__main__":
    write_docs(Path(__file__).resolve().parent.parent)
