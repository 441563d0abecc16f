"""Write the pages of docs/ that are drawn from the result files in results/, and their figures."""

from pathlib import Path

from torchsite.files import write_atomically
from torchsite.paper.drawing import save_public_figures
from torchsite.paper.pages import generators_page, results_page
from torchsite.paper.reliability import reliability_page
from torchsite.paper.scaling import scaling_page
from torchsite.results import Result

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "results", ROOT / "docs"

if __name__ == "__main__":
    for path in sorted(RESULTS.glob("*.json")):
        save_public_figures(Result.load(path), RESULTS, DOCS / "pictures")
    write_atomically(DOCS / "results.md", results_page(RESULTS).encode())
    write_atomically(DOCS / "scaling.md", scaling_page(RESULTS).encode())
    for place, page in (
        ("design/generators.md", generators_page(RESULTS)),
        ("reliability.md", reliability_page(RESULTS)),
    ):
        if page is not None:
            write_atomically(DOCS / place, page.encode())
