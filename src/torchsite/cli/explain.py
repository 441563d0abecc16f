"""`torchsite explain`: predictions of pictures with their explanations."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchsite.cli.inputs import Task, open_site, plan
from torchsite.cli.terminal import AsJson, say_json, terminal, watching
from torchsite.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from torchsite.cli.read_out import Explained
    from torchsite.model import SITE


class Format(StrEnum):
    """What to write for each picture."""

    png = "png"
    json = "json"
    npz = "npz"


class RegionFormat(StrEnum):
    """How regions are written."""

    geojson = "geojson"
    coco = "coco"


class Tiles(StrEnum):
    """Which part of a picture the model gets."""

    none = "none"
    fit = "fit"
    native = "native"


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
        tuple[str, str] | None,
        typer.Option(help="Two classes: the evidence for the first rather than the second."),
    ] = None,
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also the whole picture with the evidence over it.")
    ] = False,
    regions: Annotated[
        RegionFormat | None, typer.Option(help="Also outlines of the strongest evidence.")
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
    ] = Tiles.none,
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
    check_tiles(tiles, format, abstain)
    tasks, failed, done = plan(pictures, out, format.value), 0, 0
    also = ReadOut(
        out,
        loaded.config.image_shape,
        loaded.classes,
        overlay,
        regions and regions.value,
        csv,
        loaded.config.margin,
    )
    console = terminal()
    with watching("explaining", enabled=not console.is_terminal) as watch:
        for batch in _batches(tasks, batch_size):
            read, problems = _explained(loaded, batch, tiles)
            checks = _checks(loaded, read, question, csv is not None or abstain is not None)
            for (task, explanation, index), check in zip(read, checks, strict=True):
                if tiles is Tiles.none:
                    write(explanation, index, question, task.target, format.value)
                line = {"picture": str(task.picture)} | summary(explanation, index, question)
                line |= _checked(check, abstain)
                line["written"] = str(task.target if tiles is Tiles.none else out)
                label = question.classes(explanation, index)[0]
                also.write(task.picture, task.target, explanation, index, label, line)
                say_json(line) if as_json else console.print(sentence(line))
            for task, problem in problems:
                also.failed(task.picture, problem)
                terminal(stderr=True).print(f"error: {problem}", style="bold red")
                if as_json:
                    say_json({"picture": str(task.picture), "error": problem})
            failed, done = failed + len(problems), done + len(batch)
            watch("explaining", done, len(tasks))
    also.finish()
    if failed:
        raise DataError(f"{failed} of {len(tasks)} pictures could not be read; the others are explained")


def check_classes(known: Sequence[str], names: Sequence[str | None]) -> None:
    """Names of classes must be the model's."""
    for name in names:
        if name is not None and name not in known:
            raise ConfigError(f"the model knows no class {name!r}: {did_you_mean(name, known)}")


def check_tiles(tiles: Tiles, format: Format, abstain: float | None) -> None:
    """Fail if options are combined that exclude each other."""
    if tiles is not Tiles.none and (format is not Format.png or abstain is not None):
        raise ConfigError("--tiles writes overlays, regions and tables: leave out --format and --abstain")


def _batches(tasks: list[Task], size: int) -> Iterator[list[Task]]:
    return (tasks[start : start + size] for start in range(0, len(tasks), size))


def _explained(
    model: "SITE", batch: list[Task], tiles: Tiles
) -> tuple[list[tuple[Task, Any, int]], list[tuple[Task, str]]]:
    """The pictures of a batch that can be read, explained at once or each in tiles; the others and why."""
    import torch

    from torchsite.data.pictures import read_picture

    images, readable, problems, config = [], [], [], model.config
    for task in batch:
        try:
            if tiles is Tiles.none:
                images.append(read_picture(task.picture, config.image_shape, config.margin))
            else:
                images.append(_whole(model, task.picture, tiles))
            readable.append(task)
        except DataError as error:
            problems.append((task, str(error)))
    if not images:
        return [], problems
    if tiles is Tiles.none:
        explanation = model.explain(torch.stack(images))
        return [(task, explanation, index) for index, task in enumerate(readable)], problems
    return [(task, image, 0) for task, image in zip(readable, images, strict=True)], problems


def _whole(model: "SITE", picture: Path, tiles: Tiles) -> Any:
    """A whole picture, explained in tiles."""
    from torchsite.data.pictures import read_whole
    from torchsite.model.tiles import explain_tiled

    config, native = model.config, tiles is Tiles.native
    return explain_tiled(model, read_whole(picture, config.image_shape, native, config.margin)[None])


def _checks(
    model: "SITE", read: list[tuple[Task, "Explained", int]], question: Any, wanted: bool
) -> list[float | None]:
    """What the deletion check of each picture found, if it was asked for."""
    import torch

    from torchsite.metrics.patch_deletion import deletion_check
    from torchsite.model import Explanation

    if not wanted or not read or not isinstance(read[0][1], Explanation):
        return [None] * len(read)
    explanation = read[0][1]
    classes = torch.tensor([question.classes(explanation, index)[0] for _, _, index in read])
    found: list[float | None] = deletion_check(model, explanation, classes).tolist()
    return found


def _checked(check: float | None, abstain: float | None) -> dict[str, Any]:
    if check is None:
        return {}
    found: dict[str, Any] = {"deletion_check": round(check, 4)}
    return found if abstain is None else found | {"abstain": check < abstain}
