"""Write docs/results.md and docs/design/generators.md from the result files in results/."""

from pathlib import Path

from torchsite.report.pages import generators_page, results_page
from torchsite.results import write_atomically

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    write_atomically(ROOT / "docs" / "results.md", results_page(ROOT / "results").encode())
    page = generators_page(ROOT / "results")
    if page is not None:
        write_atomically(ROOT / "docs" / "design" / "generators.md", page.encode())
