"""`torchsite export`: a model as a file for ONNX Runtime or for torch alone, with its explanations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from torchsite.cli.inputs import open_model
from torchsite.cli.terminal import AsJson, ModelName, say_json, terminal
from torchsite.errors import ConfigError

if TYPE_CHECKING:
    from torchsite.data import Dataset

N_CALIBRATION, N_TESTED = 256, 1000


def export(
    model: ModelName,
    to: Annotated[
        Literal["onnx", "torch-export"],
        typer.Option(help="onnx: for ONNX Runtime; torch-export: a .pt2 program."),
    ],
    out: Annotated[Path | None, typer.Option(help="The file to write; the model's name if left out.")] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Write an int8 form as well (onnx only).")] = False,
    data: Annotated[
        str, typer.Option(help="Data set that int8 is calibrated (train) and tested (test) on.")
    ] = "mnist_sample",
    as_json: AsJson = False,
) -> None:
    """Export logits and heatmaps, for any number of pictures at once, checked against the model itself.

    Examples:

    torchsite export mnist --to onnx --int8 --data mnist

    torchsite export runs/birds/model --to torch-export --out birds.pt2
    """
    from torchsite.data import load_dataset, to_float
    from torchsite.model.export import annotate, export_onnx, export_program, quantise

    console = terminal(stderr=as_json)
    loaded = open_model(model)
    if int8 and to != "onnx":
        raise ConfigError("--int8 is for --to onnx: torch-export has no int8 form")
    path = out or Path(f"{Path(model).name}.{'onnx' if to == 'onnx' else 'pt2'}")
    write = export_onnx if to == "onnx" else export_program
    exported = write(loaded, path)
    console.print(f"{path}: differs from the model by at most {exported.max_difference:.2g}")
    said: dict[str, Any] = {"written": [str(path)], "max_difference": exported.max_difference}
    if int8:
        small = path.with_name(f"{path.stem}.int8.onnx")
        calibrated = to_float(load_dataset(data, "train").images[:N_CALIBRATION])
        quantise(path, small, calibrated)
        figures = judge(path, small, load_dataset(data, "test")[:N_TESTED])
        annotate(small, figures)
        for name, value in figures.items():
            console.print(f"{name:>36}  {value:.4f}")
        console.print(f"{small}: {small.stat().st_size / path.stat().st_size:.0%} of the size")
        said |= {"written": [str(path), str(small)], "int8": figures}
    if as_json:
        say_json(said)


def judge(whole: Path, small: Path, data: "Dataset") -> dict[str, float]:
    """The accuracy of an int8 model beside that of the model it came from, and how often they agree."""
    import torch

    from torchsite.data import to_float
    from torchsite.model.export import OnnxModel

    images = to_float(data.images)
    answers = {name: OnnxModel(path, 1) for name, path in (("float32", whole), ("int8", small))}
    logits = {
        name: torch.cat([model(part)["logits"] for part in images.split(100)])
        for name, model in answers.items()
    }
    predicted = {name: values.argmax(1) for name, values in logits.items()}
    figures = {
        f"accuracy, {name}": float((p == data.labels).double().mean()) for name, p in predicted.items()
    }
    figures["int8 agrees with float32"] = float((predicted["int8"] == predicted["float32"]).double().mean())
    figures["largest difference of logits"] = float((logits["int8"] - logits["float32"]).abs().max())
    return figures
