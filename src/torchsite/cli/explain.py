"""`torchsite explain`: what a model sees in pictures, and why."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchsite.cli.loaders import open_site
from torchsite.cli.pictures import Task, plan
from torchsite.cli.terminal import AsJson, say_json, terminal, watching
from torchsite.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from torchsite.model import SITE, Explanation


class Format(StrEnum):
    """What to write for each picture."""

    png = "png"
    json = "json"
    npz = "npz"


def explain(
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.")],
    model: Annotated[str, typer.Option(help="A shipped model's name, a folder, or a hub id.")] = "mnist",
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("out"),
    format: Annotated[
        Format, typer.Option(help="png: a sheet; json: numbers; npz: raw arrays.")
    ] = Format.png,
    chosen: Annotated[
        str | None, typer.Option("--class", help="Explain this class instead of the predicted one.")
    ] = None,
    why: Annotated[
        tuple[str, str] | None, typer.Option(help="Two classes: what speaks for the first, not the second.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures at a time.")] = 32,
    as_json: AsJson = False,
) -> None:
    """Predict, and write the reasons: the heatmaps whose sums are the logits.

    For each picture it prints the prediction, the runner-up, and which share of the evidence between the two
    speaks for the prediction. Pictures that cannot be read are named; the others are explained all the same.

    Examples:

    torchsite explain digit.png

    torchsite explain photos more/photo.jpg --model runs/birds/model --out out

    torchsite explain photo.png --model runs/pets/model --why cat dog

    torchsite explain digits --class 7 --format npz --json
    """
    from torchsite.cli.explain_output import AskedClasses, sentence, summary, write

    loaded = open_site(model)
    question = AskedClasses(chosen, why)
    check_classes(loaded.classes, [chosen, *(why or ())])
    tasks, failed, done = plan(pictures, out, format.value), 0, 0
    console = terminal()
    with watching("explaining", enabled=not console.is_terminal) as watch:
        for batch in _batches(tasks, batch_size):
            read, problems = _explained(loaded, batch)
            for task, explanation, index in read:
                write(explanation, index, question, task.target, format.value)
                line = {"picture": str(task.picture)} | summary(explanation, index, question)
                line["written"] = str(task.target)
                say_json(line) if as_json else console.print(sentence(line))
            for task, problem in problems:
                terminal(stderr=True).print(f"error: {problem}", style="bold red")
                if as_json:
                    say_json({"picture": str(task.picture), "error": problem})
            failed, done = failed + len(problems), done + len(batch)
            watch("explaining", done, len(tasks))
    if failed:
        raise DataError(f"{failed} of {len(tasks)} pictures could not be read; the others are explained")


def check_classes(known: Sequence[str], names: Sequence[str | None]) -> None:
    """Names of classes must be the model's."""
    for name in names:
        if name is not None and name not in known:
            raise ConfigError(f"the model knows no class {name!r}: {did_you_mean(name, known)}")


def _batches(tasks: list[Task], size: int) -> Iterator[list[Task]]:
    return (tasks[start : start + size] for start in range(0, len(tasks), size))


def _explained(
    model: "SITE", batch: list[Task]
) -> tuple[list[tuple[Task, "Explanation", int]], list[tuple[Task, str]]]:
    """The pictures of a batch that can be read, explained in one pass; the others with the reason."""
    import torch

    from torchsite.data.pictures import read_picture

    images, readable, problems = [], [], []
    for task in batch:
        try:
            images.append(read_picture(task.picture, model.config.image_shape))
            readable.append(task)
        except DataError as error:
            problems.append((task, str(error)))
    if not images:
        return [], problems
    explanation = model.explain(torch.stack(images))
    return [(task, explanation, index) for index, task in enumerate(readable)], problems
