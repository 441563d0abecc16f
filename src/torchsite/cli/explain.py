"""`torchsite explain`: predictions of pictures with their explanations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from torchsite.cli.inputs import Task, open_site, plan
from torchsite.cli.terminal import AsJson, say_json, terminal, watching
from torchsite.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from torchsite.cli.explain_output import AskedClasses
    from torchsite.model import SITE


Tiles = Literal["none", "fit", "native"]
Read = tuple[Task, Any, int]  # a picture, the explanation of its batch (or its own), and its row there


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
        Literal["geojson", "coco"] | None, typer.Option(help="Also outlines of the strongest evidence.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Also one table over all pictures.")] = None,
    abstain: Annotated[
        float | None,
        typer.Option(
            min=-1,
            max=1,
            help="Hide each picture patch by patch, and flag predictions whose evidence and what hiding does "
            "have a rank correlation below this; 0 is what a map that says nothing gets.",
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

    For each picture it prints the prediction, the runner-up, and which share of the evidence between the two
    speaks for the prediction. Pictures that cannot be read are named; the others are explained all the same.

    Examples:

    torchsite explain digit.png

    torchsite explain photos more/photo.jpg --model runs/birds/model --out out

    torchsite explain photo.png --model runs/pets/model --why cat dog

    torchsite explain slides --model runs/cells/model --overlay --regions geojson --csv table.csv

    torchsite explain digits --class 7 --format npz --json
    """
    from torchsite.cli.explain_output import AskedClasses, sentence, summary, write
    from torchsite.cli.read_out import ReadOut

    loaded = open_site(model)
    question = AskedClasses(chosen, why)
    check_classes(loaded.classes, [chosen, *(why or ())])
    if tiles != "none" and (format != "png" or abstain is not None):
        raise ConfigError("--tiles writes overlays, regions and tables: leave out --format and --abstain")
    tasks, failed, config = plan(pictures, out, format), 0, loaded.config
    also = ReadOut(out, config.image_shape, loaded.classes, overlay, regions, csv, config.margin)
    console, checked = terminal(), csv is not None or abstain is not None
    with watching("explaining", enabled=not console.is_terminal) as watch:
        for start in range(0, len(tasks), batch_size):
            batch = tasks[start : start + batch_size]
            read, problems = _explained(loaded, batch, tiles)
            checks = deletion_checks(loaded, read, question) if checked and tiles == "none" else {}
            for number, (task, explanation, index) in enumerate(read):
                line = {"picture": str(task.picture)} | summary(explanation, index, question)
                if number in checks:
                    line["deletion_check"] = round(checks[number], 4)
                    line |= {} if abstain is None else {"abstain": checks[number] < abstain}
                if tiles == "none":
                    write(explanation, index, question, task.target, format)
                line["written"] = str(task.target if tiles == "none" else out)
                label = question.classes(explanation, index)[0]
                also.write(task.picture, task.target, explanation, index, label, line)
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
    model: "SITE", batch: Sequence[Task], tiles: Tiles
) -> tuple[list[Read], list[tuple[Task, str]]]:
    """The pictures of a batch that can be read, explained at once or each in tiles; the others and why."""
    import torch

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
    if tiles != "none":
        return [
            (task, explain_tiled(model, image[None]), 0) for task, image in zip(readable, images, strict=True)
        ], problems
    explanation: Any = model.explain(torch.stack(images)) if images else None
    return [(task, explanation, index) for index, task in enumerate(readable)], problems


def deletion_checks(model: "SITE", read: Sequence[Read], question: "AskedClasses") -> dict[int, float]:
    """What the deletion check of each picture found."""
    import torch

    from torchsite.metrics.patch_deletion import deletion_check

    if not read:
        return {}
    explanation = read[0][1]
    classes = torch.tensor([question.classes(explanation, index)[0] for _, _, index in read])
    return dict(enumerate(deletion_check(model, explanation, classes).tolist()))
