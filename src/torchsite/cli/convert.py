"""`torchsite convert`: a network that was trained elsewhere gets a twin that explains itself."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchsite.cli.networks import open_network
from torchsite.cli.terminal import AsJson, say_figures, say_json, terminal, watching
from torchsite.cli.train import parse_fields, say_plan
from torchsite.errors import ConfigError

if TYPE_CHECKING:
    from torch import nn

    from torchsite.data import Dataset

SIZE = 224


def convert(
    context: typer.Context,
    network: Annotated[
        str,
        typer.Argument(
            help="A file of torch.export.save or torch.jit.save (read without unpickling or running it), or "
            "module:function, your own code that builds it."
        ),
    ],
    data: Annotated[str, typer.Argument(help="A folder with one sub-folder per class, or a data set.")],
    minutes: Annotated[float, typer.Option(min=0.1, help="How long it may take.")] = 10.0,
    weights: Annotated[
        Path | None, typer.Option(help="Weights for module:function: safetensors, or tensors of a .pth.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=8, help=f"Pixels that the network takes; its file's, else {SIZE}.")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Where to cut it; its last maps unless told.")] = None,
    mean: Annotated[str, typer.Option(help="Of its pictures, e.g. 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="Of its pictures, e.g. 0.229,0.224,0.225.")] = "",
    classes: Annotated[
        str, typer.Option(help="Names in the order of its logits; alphabetical unless told.")
    ] = "",
    fine_tuning: Annotated[
        float, typer.Option(min=0, max=1, help="Learning rate of its weights, as a share; 0 freezes them.")
    ] = 0.1,
    same_answers: Annotated[
        float, typer.Option(min=0, help="Weight of the network's own answers beside the labels.")
    ] = 1.0,
    poses: Annotated[str, typer.Option(help="any, upright, paper, or auto: ask the pictures.")] = "auto",
    limit: Annotated[int | None, typer.Option(min=2, help="Only some of the training pictures.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    report: Annotated[bool, typer.Option(help="End with a report.")] = True,
    as_json: AsJson = False,
) -> None:
    """Train a self-explaining twin of your own network, and say how far the two agree.

    Examples:

    torchsite convert resnet.pt2 photos/birds --minutes 10

    torchsite convert mycode.models:build photos/birds --weights best.safetensors --size 128
    """
    from torchsite.conversion import convert as run
    from torchsite.evaluation.illustrate import illustrate
    from torchsite.report import write_model_report

    fields, console = parse_fields(context.args), terminal(stderr=as_json)
    folder = out or Path("runs") / f"{Path(data).resolve().name}-twin"
    loaded = open_network(network, weights)
    train, test, findings = _halves(data, loaded, size, classes, console.is_terminal)
    train = train.spread(limit)
    converted = run(
        loaded,
        train,
        test,
        minutes=minutes,
        folder=folder,
        layer=layer,
        fine_tuning=fine_tuning,
        same_answers=same_answers,
        statistics=_statistics(mean, std),
        poses=poses,
        changes=fields,
        findings=findings,
        tell=lambda prepared: say_plan(prepared, as_json),
        progress=console.is_terminal,
    )
    said: dict[str, Any] = {"model": str(folder / "model"), **converted.comparison}
    if not as_json:
        say_figures(figures(converted.comparison))
        console.print(converted.comparison["difference"])
    if converted.cut_short:
        console.print("time was up before the last epoch: what is saved is the model as it was then")
    if report:
        with watching("measuring") as watch:
            result = converted.examined(watch)
        result.save(folder / "examination.json")
        shown = illustrate(converted.model, test, result)
        said["report"] = str(write_model_report(result, shown, folder / "report.html"))
        console.print(f"report: {said['report']}")
    console.print(f"next:   torchsite explain PICTURE --model {folder / 'model'}")
    if as_json:
        say_json(said)


def figures(comparison: dict[str, Any]) -> dict[str, str]:
    """Both accuracies and the agreement, for people."""
    from torchsite.report.format import percent, percent_interval

    names = {
        "classifier": "accuracy, your network",
        "twin": "accuracy, its twin",
        "agreement": "they agree on",
    }
    said = {
        title: f"{percent(comparison[name])} ({percent_interval(comparison[name])})"
        for name, title in names.items()
    }
    return said | {
        "only your network is right": f"{comparison['only_classifier_right']} of {comparison['n']}",
        "only its twin is right": f"{comparison['only_twin_right']} of {comparison['n']}",
    }


def _halves(
    data: str, network: "nn.Module", size: int | None, classes: str, progress: bool
) -> tuple["Dataset", "Dataset", tuple[Any, ...]]:
    """Both halves as the network takes them: its size, its channels, its order of classes."""
    from torchsite.autotrain import open_halves
    from torchsite.conversion import reordered
    from torchsite.data.channels import in_channels

    shape = getattr(network, "image_shape", None)
    train, test, findings = open_halves(data, size or (shape[1] if shape else SIZE), progress)
    wanted = shape[0] if shape else _channels(network, train.images.shape[1])
    halves = [in_channels(half, wanted) for half in (train, test)]
    if classes:
        halves = [reordered(half, [name.strip() for name in classes.split(",")]) for half in halves]
    return halves[0], halves[1], findings


def _channels(network: "nn.Module", usual: int) -> int:
    """How many channels the first convolution reads."""
    from torch import nn

    for part in network.modules():
        if isinstance(part, nn.Conv2d):
            return part.in_channels
    return usual


def _statistics(mean: str, std: str) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if not mean and not std:
        return None
    try:
        first, second = (tuple(float(word) for word in words.split(",")) for words in (mean, std))
    except ValueError as error:
        raise ConfigError(
            f"--mean and --std: expected numbers separated by commas, for both ({error})"
        ) from error
    return first, second
