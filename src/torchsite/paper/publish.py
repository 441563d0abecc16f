"""From result files to documentation: figures and pages of a checkout are drawn from its folder `results`.

    results/NAME.json, NAME.npz      what experiments and benchmarks found
    docs/templates/*.md.j2           the prose, and which results stand where
    docs/                            the pages, and docs/pictures their figures

The pictures of some data sets may not be published: their arrays stay in the folder of the run, and the
documentation shows what can be drawn without them.
"""

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from torchsite.errors import ConfigError
from torchsite.files import write_atomically
from torchsite.model.drawing import png
from torchsite.paper.cache import load_arrays
from torchsite.paper.experiment import EXPERIMENTS, Experiment, Figures
from torchsite.paper.section import Pictures
from torchsite.results import Result

# Which page each template gives.
PAGES = {
    "results.md.j2": "results.md",
    "scaling.md.j2": "scaling.md",
    "reliability.md.j2": "reliability.md",
    "generators.md.j2": "design/generators.md",
}


def find_checkout(place: Path) -> Path:
    """The checkout around a folder: the nearest one above it that has templates and results."""
    for folder in (place, *place.parents):
        if (folder / "docs" / "templates").is_dir() and (folder / "results").is_dir():
            return folder
    raise ConfigError(
        f"publishing needs a checkout of torchsite, with results/ and docs/templates/, and {place} "
        "lies in none: change to one, or leave --publish away"
    )


def publish(experiment: Experiment, folder: Path, checkout: Path) -> list[Path]:
    """Copy the result from the folder of its run into the checkout, and draw again what depends on it."""
    results, name = checkout / "results", experiment.result_name
    written = [_copy(folder / f"{name}.json", results)]
    if experiment.public and (folder / f"{name}.npz").is_file():
        written.append(_copy(folder / f"{name}.npz", results))
    return [*written, *draw_published(experiment, checkout), *write_pages(checkout)]


def write_docs(checkout: Path) -> list[Path]:
    """Draw all figures and pages of the documentation that come from results."""
    figures = [
        path
        for experiment in EXPERIMENTS.values()
        if (checkout / "results" / f"{experiment.result_name}.json").is_file()
        for path in draw_published(experiment, checkout)
    ]
    return figures + write_pages(checkout)


def draw_figures(experiment: Experiment, folder: Path) -> list[Path]:
    """Draw what the result in the folder of its run shows, into that folder."""
    return _save(_figures(experiment, folder, arrays=True), folder)


def draw_published(experiment: Experiment, checkout: Path) -> list[Path]:
    """Draw the figures of a published result, without pictures that may not be shown."""
    figures = _figures(experiment, checkout / "results", arrays=experiment.public)
    return _save({f"results-{name}": figure for name, figure in figures.items()}, checkout / "docs/pictures")


def write_pages(checkout: Path) -> list[Path]:
    """Fill all templates; a page that would be empty is not written."""
    pages = {page: fill(checkout, template) for template, page in PAGES.items()}
    return [write_atomically(checkout / "docs" / page, text.encode()) for page, text in pages.items() if text]


def fill(checkout: Path, template: str, results: Path | None = None) -> str:
    """One page: its template, filled with the results that are there."""
    folder = results or checkout / "results"
    environment = Environment(
        loader=FileSystemLoader(checkout / "docs" / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["without_heading"] = lambda text: text.partition("\n\n")[2]
    text = environment.get_template(template).render(
        results={path.stem: Result.load(path) for path in sorted(folder.glob("*.json"))},
        sections=list(sections(folder)),
        section=lambda name, pictures: _section(EXPERIMENTS[name], folder, pictures),
    )
    return text if text.strip() else ""


def sections(folder: Path) -> Iterator[str]:
    """The sections of all experiments whose results are there, in the order of the page."""
    for experiment in EXPERIMENTS.values():
        if (folder / f"{experiment.result_name}.json").is_file():
            yield _section(experiment, folder, "pictures")


def _section(experiment: Experiment, folder: Path, pictures: str) -> str:
    name = experiment.result_name
    shown = experiment.public and (folder / f"{name}.npz").is_file()
    return experiment.section(Result.load(folder / f"{name}.json"), Pictures(pictures, shown))


def _figures(experiment: Experiment, folder: Path, *, arrays: bool) -> Figures:
    name = experiment.result_name
    path = folder / f"{name}.npz"
    result = Result.load(folder / f"{name}.json")
    return experiment.figures(result, load_arrays(path) if arrays and path.is_file() else {})


def _save(figures: Figures, folder: Path) -> list[Path]:
    return [write_atomically(folder / f"{name}.png", png(figure, 120)) for name, figure in figures.items()]


def _copy(path: Path, folder: Path) -> Path:
    return write_atomically(folder / path.name, path.read_bytes())
