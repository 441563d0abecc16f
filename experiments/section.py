"""What the sections of docs/results.md share: headings, sources, links to figures, rows about methods."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchsite.report.format import method_name
from torchsite.results import Result, machine_words

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "mnist_sample": "embedded digits"}
MODELS = {"site": "SITE", "black_box": "the black box"}
CONSISTENCY = ("raw", "floor", "calibrated", "centred")

Row = dict[str, Any]  # of a table in a result file: mostly `model`, `method` and what was found
Score = Mapping[str, Any]  # an estimate with its interval: value, low, high

# The model's own explanations, in the order in which tables show them.
OWN = ("self_explanation", "relative_explanation", "plain_explanation")


@dataclass(frozen=True)
class Pictures:
    """Where a page finds the figures of a result, and whether pictures of the data are among them."""

    folder: str = "pictures"
    of_data: bool = True

    def chart(self, name: str, title: str) -> str:
        """A link to a figure that shows no pictures of the data."""
        return f"\n![{title}]({self.folder}/results-{name}.png)\n"

    def sheet(self, name: str, title: str) -> str:
        """A link to a figure that does; nothing where they may not be shown."""
        return self.chart(name, title) if self.of_data else ""


def source(result: Result, name: str = "") -> str:
    """The command and the file behind a section."""
    command = f"torchsite reproduce {name or result.name} --publish"
    where = "; ".join(filter(None, [result.time, machine_words(result)]))
    return f"`{command}` → `results/{result.name}.json` ({where})"


def head(result: Result, title: str) -> str:
    """The heading of a section on the models of one recipe, and where its numbers come from."""
    recipe = result.config["recipe"]
    return f"## {TITLES.get(recipe, recipe)}: {title}\n\n{source(result)}\n\n"


def on_model(kind: str) -> str:
    """Which of the two models was explained."""
    return f"on {MODELS[kind]}"


def row_name(row: Row) -> str:
    """What a row of a table is about: a method on a model."""
    return f"{method_name(row['method'])} {on_model(row['model'])}"


def spoken(who: str) -> str:
    """The same for results that name a row by "method on model"."""
    method, _, model = who.partition(" on ")
    return f"{method_name(method)} {on_model(model)}"


def own_first(rows: Iterable[Row]) -> list[Row]:
    """The rows of a table in their order, the model's own explanations before all others."""
    return sorted(rows, key=lambda row: OWN.index(row["method"]) if row["method"] in OWN else len(OWN))


def notes_on(table: Sequence[Row]) -> str:
    """What does not apply and why, and which layers and options were not the usual ones."""
    refused = [f"- {row_name(row)} is not defined: {row['reason']}" for row in table if "reason" in row]
    chosen = [
        f"- {row_name(row)}: " + ", ".join(f"{key} = {value}" for key, value in row["options"].items())
        for row in table
        if row["options"] and row["method"] not in OWN and "reason" not in row
    ]
    return "\n".join(["", *refused, *chosen]) + "\n" if refused or chosen else ""
