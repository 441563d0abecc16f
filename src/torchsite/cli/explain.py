"""`torchsite explain`: predictions of pictures with their explanations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from torchsite.cli.inputs import Task, open_site, plan
from torchsite.cli.terminal import AsJson, say_json, terminal, watching
from torchsite.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from torchsite.cli.explain_output import Answer
    from torchsite.model import SITE

Tiles = Literal["none", "fit", "native"]


def explain(
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.")],
    model: Annotated[str, typer.Option(help="A shipped model's name, a folder, or a hub id.")] = "mnist",
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("out"),
    format: Annotated[
        Literal["png", "json", "npz"], typer.Option(help="png: a sheet; json: numbers; npz: raw arrays.")
    ] = "png",
    chosen: Annotated[
        str | None, typer.Option("--class", help="Explain this class instead of the predicted one.")
    ] = None,
    why: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two classes: the evidence for the first rather than the second."),
    ] = None,
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also the whole picture with the evidence over it.")
    ] = False,
    regions: Annotated[
        bool, typer.Option("--regions", help="Also outlines of the strongest evidence, as GeoJSON.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="Also one table over all pictures.")] = None,
    abstain: Annotated[
        float | None,
        typer.Option(
            min=-1,
            max=1,
            help="Hide each picture patch by patch, and flag predictions where the rank correlation of the "
            "evidence with the drop of the score is below this; a random map has 0.",
        ),
    ] = None,
    tiles: Annotated[
        Tiles,
        typer.Option(
            help="none: the centre, shrunk; fit: the shorter side shrunk, all of the longer one, in tiles; "
            "native: the file's own pixels, in tiles."
        ),
    ] = "none",
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures at a time.")] = 32,
    as_json: AsJson = False,
) -> None:
    """Predict and explain: write the heatmaps whose sums are the logits.

    For each picture it prints the prediction, the runner-up, and the share of the evidence between the two
    that is for the prediction. Pictures that cannot be read are listed; the others are explained.

    Examples:

    torchsite explain digit.png

    torchsite explain photos more/photo.jpg --model runs/birds/model --out out

    torchsite explain photo.png --model runs/pets/model --why cat dog

    torchsite explain slides --model runs/cells/model --overlay --regions --csv table.csv

    torchsite explain digits --class 7 --format npz --json
    """
    from torchsite.cli.explain_output import sentence
    from torchsite.cli.read_out import ReadOut

    loaded = open_site(model)
    check_classes(loaded.classes, [chosen, *(why or ())])
    if tiles != "none" and (format != "png" or abstain is not None):
        raise ConfigError("--tiles writes overlays, regions and tables: leave out --format and --abstain")
    tasks, failed, config = plan(pictures, out, format), 0, loaded.config
    also = ReadOut(config.image_shape, loaded.classes, overlay, regions, csv, config.margin)
    console, checked = terminal(), tiles == "none" and (csv is not None or abstain is not None)
    with watching("explaining", enabled=not console.is_terminal) as watch:
        for start in range(0, len(tasks), batch_size):
            batch = tasks[start : start + batch_size]
            answers, problems = _explained(loaded, batch, tiles, chosen, why)
            checks = deletion_checks(loaded, answers) if checked and answers else None
            for number, answer in enumerate(answers):
                line = {"picture": str(answer.task.picture)} | answer.summary()
                if checks is not None:
                    line["deletion_check"] = round(checks[number], 4)
                    line |= {} if abstain is None else {"abstain": checks[number] < abstain}
                line["written"] = str(answer.write(format) if tiles == "none" else out)
                also.write(answer, line)
                say_json(line) if as_json else console.print(sentence(line))
            for task, problem in problems:
                also.failed(task.picture, problem)
                terminal(stderr=True).print(f"error: {problem}", style="bold red")
                if as_json:
                    say_json({"picture": str(task.picture), "error": problem})
            failed += len(problems)
            watch("explaining", start + len(batch), len(tasks))
    also.finish()
    if failed:
        raise DataError(f"{failed} of {len(tasks)} pictures could not be read; the others are explained")


def check_classes(known: Sequence[str], names: Sequence[str | None]) -> None:
    """Names of classes must be the model's."""
    for name in names:
        if name is not None and name not in known:
            raise ConfigError(f"the model knows no class {name!r}: {did_you_mean(name, known)}")


def _explained(
    model: "SITE", batch: Sequence[Task], tiles: Tiles, chosen: str | None, why: tuple[str, str] | None
) -> tuple[list["Answer"], list[tuple[Task, str]]]:
    """The pictures of a batch that can be read, explained at once or each in tiles; the others and why."""
    import torch

    from torchsite.cli.explain_output import Answer
    from torchsite.data.pictures import read_picture, read_whole
    from torchsite.model.tiles import explain_tiled

    images, readable, problems, config = [], [], [], model.config
    for task in batch:
        try:
            if tiles == "none":
                images.append(read_picture(task.picture, config.image_shape, config.margin))
            else:
                images.append(read_whole(task.picture, config.image_shape, tiles == "native", config.margin))
            readable.append(task)
        except DataError as error:
            problems.append((task, str(error)))
    if tiles == "none" and images:
        together = model.explain(torch.stack(images))
        answers = [Answer(task, together, row, chosen, why) for row, task in enumerate(readable)]
    else:
        pairs = zip(readable, images, strict=True)
        answers = [Answer(task, explain_tiled(model, image[None]), 0, chosen, why) for task, image in pairs]
    return answers, problems


def deletion_checks(model: "SITE", answers: Sequence["Answer"]) -> list[float]:
    """What the deletion check finds of each picture of a batch."""
    import torch

    from torchsite.metrics.patch_deletion import deletion_check

    classes = torch.tensor([answer.classes[0] for answer in answers])
    found: list[float] = deletion_check(model, answers[0].explanation, classes).tolist()
    return found
