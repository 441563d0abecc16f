"""Write docs/results.md from the result files in results/."""

from pathlib import Path

from torchsite.report.pages import results_page
from torchsite.results import write_atomically

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    write_atomically(ROOT / "docs" / "results.md", results_page(ROOT / "results").encode())
