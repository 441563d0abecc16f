"""Write docs/results.md, its figures, and docs/design/generators.md from the result files in results/."""

from pathlib import Path

from torchsite.report.pages import generators_page, results_page
from torchsite.report.paper import save_public_figures
from torchsite.results import Result, write_atomically

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "results", ROOT / "docs"

if __name__ == "__main__":
    for path in sorted(RESULTS.glob("*.json")):
        save_public_figures(Result.load(path), RESULTS, DOCS / "pictures")
    write_atomically(DOCS / "results.md", results_page(RESULTS).encode())
    page = generators_page(RESULTS)
    if page is not None:
        write_atomically(DOCS / "design" / "generators.md", page.encode())
