"""From result files to documentation: figures and pages of a checkout are drawn from its folder `results`.

    results/NAME.json, NAME.npz      what experiments and benchmarks found
    docs/templates/*.md.j2           the prose, and which results stand where
    docs/                            the pages, docs/results the tables, docs/pictures their figures
    README.md                        the front page, from its template like the others
    src/torchsite/weights/*          a card beside each model

The pictures of some data sets may not be published: their arrays stay in the folder of the run, and the
documentation shows what can be drawn without them.
"""

import re
from collections.abc import Mapping
from os.path import normpath
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from matplotlib.figure import Figure

from experiments.cache import load_arrays
from experiments.cards import card_context
from experiments.claims import claims_table, headline_table
from experiments.provenance import WEIGHTS, Fingerprints, note, of_shipped, shipped_weights
from experiments.registry import EXPERIMENTS, OTHER_PAGES, Experiment
from experiments.section import Pictures
from torchsite.errors import ConfigError
from torchsite.files import write_atomically
from torchsite.model.card import CARD_FILE
from torchsite.model.drawing import png
from torchsite.results import Result

NEWLINES = "\n\n"
# Which page each template gives.
PAGES = {
    "results.md.j2": "results.md",
    "server.md.j2": "results/server.md",
    "leaderboard.md.j2": "leaderboard.md",
    "metrics.md.j2": "metrics.md",
    "scaling.md.j2": "scaling.md",
    "reliability.md.j2": "reliability.md",
    "README.md.j2": "../README.md",
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
    docs = checkout / "docs"
    pages = {Path(normpath(docs / page)): fill(checkout, template) for template, page in PAGES.items()}
    pages |= {folder / CARD_FILE: fill_card(checkout, folder) for folder in model_folders(checkout)}
    pages |= {docs / page: text for page, text in tables(checkout).items()}
    return [write_atomically(path, text.encode()) for path, text in pages.items() if text]


def fill(
    checkout: Path, template: str, results: Path | None = None, shipped: Fingerprints | None = None
) -> str:
    """One page: its template, filled with the results that are there; `shipped` are the weights that ship."""
    folder = results or checkout / "results"
    found = read_results(folder)
    shipped = shipped_weights(checkout) if shipped is None else shipped
    text = _template(checkout, template).render(
        results=found,
        of_shipped=lambda name, *models: of_shipped(found[name], models, shipped),
        headlines=headline_table(found, shipped),
        claims=claims_table(found, shipped),
        pages=contents(found),
        section=lambda name, pictures: _section(EXPERIMENTS[name], found, folder, pictures, shipped),
    )
    return text if text.strip() else ""


def fill_card(checkout: Path, folder: Path) -> str:
    """The card of the model in a folder."""
    return _template(checkout, "card.md.j2").render(card_context(folder, read_results(checkout / "results")))


def model_folders(checkout: Path) -> list[Path]:
    """The folders of the checkout that hold a model to ship."""
    return sorted(path.parent for path in (checkout / WEIGHTS).glob("*/config.json"))


def read_results(folder: Path) -> dict[str, Result]:
    """All results of a folder by name."""
    return {path.stem: Result.load(path) for path in sorted(folder.glob("*.json"))}


def _template(checkout: Path, name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(checkout / "docs" / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["without_heading"] = lambda text: text.partition("\n\n")[2]
    return environment.get_template(name)


def tables(
    checkout: Path, results: Path | None = None, shipped: Fingerprints | None = None
) -> dict[str, str]:
    """The page of every experiment whose result is there, by its place in docs/."""
    folder = results or checkout / "results"
    found = read_results(folder)
    shipped = shipped_weights(checkout) if shipped is None else shipped
    return {
        experiment.page: as_page(_section(experiment, found, folder, "../pictures", shipped))
        for experiment in EXPERIMENTS.values()
        if experiment.result_name in found and experiment.result_name not in OTHER_PAGES
    }


def as_page(section: str) -> str:
    """A section as a page in docs/results: headings one level up, links one folder up."""
    text = re.sub(r"^##(?=#* )", "#", section, flags=re.MULTILINE)
    text = text if text.startswith("# ") else re.sub(r"^#+(?= )", "#", text, count=1)
    return re.sub(r"\]\((?=design/|[a-z]+\.md)", "](../", text).rstrip() + "\n"


def contents(found: Mapping[str, Result]) -> str:
    """A list of all pages with tables."""
    return "\n".join(
        f"- [{experiment.result_name}]({experiment.page}): {experiment.shows}"
        for experiment in EXPERIMENTS.values()
        if experiment.result_name in found
    )


def with_note(section: str, note: str) -> str:
    """A section with a paragraph after its heading."""
    heading, gap, rest = section.partition("\n\n")
    return f"{heading}{gap}{note}\n\n{rest}" if note else section


def _section(
    experiment: Experiment, found: Mapping[str, Result], folder: Path, pictures: str, shipped: Fingerprints
) -> str:
    """A section with what must be said of its weights; of other weights than those that ship only that."""
    name, models = experiment.result_name, experiment.models
    shown = experiment.public and (folder / f"{name}.npz").is_file()
    text = experiment.section(found[name], Pictures(pictures, shown))
    if of_shipped(found[name], models, shipped):
        return with_note(text, note(found[name], models, shipped))
    return f"{text.partition(NEWLINES)[0]}{NEWLINES}{note(found[name], models, shipped)}\n"


def _figures(experiment: Experiment, folder: Path, *, arrays: bool) -> Mapping[str, Figure]:
    name = experiment.result_name
    path = folder / f"{name}.npz"
    result = Result.load(folder / f"{name}.json")
    return experiment.figures(result, load_arrays(path) if arrays and path.is_file() else {})


def _save(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    return [write_atomically(folder / f"{name}.png", png(figure, 120)) for name, figure in figures.items()]


def _copy(path: Path, folder: Path) -> Path:
    return write_atomically(folder / path.name, path.read_bytes())
