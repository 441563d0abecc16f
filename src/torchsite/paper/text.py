"""What the sections on the paper's experiments are put together from."""

from collections.abc import Mapping, Sequence
from typing import Any

from torchsite.paper.names import PUBLIC, row_name
from torchsite.report.format import markdown_table
from torchsite.report.format import number as shown
from torchsite.results import Result

__all__ = ["TITLES", "chart", "head", "markdown_table", "notes_on", "sheet", "shown", "source"]

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "mnist_sample": "embedded digits"}


def head(result: Result, title: str) -> str:
    """The headline of a section, and where its numbers come from."""
    return (
        f"## {TITLES.get(result.config['recipe'], result.config['recipe'])}: {title}\n\n{source(result)}\n\n"
    )


def source(result: Result) -> str:
    """The command and the file behind a section."""
    return f"`torchsite reproduce {result.name}` → `results/{result.name}.json` ({result.time})"


def chart(result: Result, title: str, pictures: str = "pictures") -> str:
    """The one figure of a result, in the folder of pictures as the page sees it."""
    return f"\n![{title}]({pictures}/results-{result.name}.png)\n"


def sheet(result: Result, ending: str, title: str) -> str:
    """A sheet of pictures, of those data sets that may be shown here; others are in the folder of the run."""
    if not result.name.startswith(PUBLIC) or not result.values["pictures"]:
        return ""
    return f"\n![{title}](pictures/results-{result.name}{ending}.png)\n"


def notes_on(table: Sequence[Mapping[str, Any]]) -> str:
    """What does not apply and why, and which layers and options were not the usual ones."""
    refused = [f"- {row_name(line)} is not defined: {line['reason']}" for line in table if "reason" in line]
    chosen = [
        f"- {row_name(line)}: " + ", ".join(f"{key} = {value}" for key, value in line["options"].items())
        for line in table
        if line["options"] and "reason" not in line
    ]
    return "\n".join(["", *refused, *chosen]) + "\n" if refused or chosen else ""
