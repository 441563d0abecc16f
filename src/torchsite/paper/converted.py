"""A network that was trained without us becomes one that explains itself: what `torchsite convert` gives.

Claim:    a small ResNet of plain PyTorch code (`plain_network.py`), exported and converted in a few minutes,
          has a twin that is as accurate within a point and whose maps are borne out when patches are hidden.
Command:  torchsite reproduce convert
Cost:     three minutes of training without us, then the minutes of the command, on one core. The command
          itself is run, in a process of its own, as users run it. With --quick, a few painted shapes.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from PIL import Image

from torchsite.data import load_dataset
from torchsite.errors import TorchsiteError
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model.blocks import n_parameters
from torchsite.paper.bam.data import painted_halves
from torchsite.paper.cache import save_result, step
from torchsite.paper.experiment import Arrays
from torchsite.paper.models import load_finished
from torchsite.paper.plain_network import SmallResNet, save_exported, train_plainly
from torchsite.paper.section import Pictures, source
from torchsite.report.format import look_up, markdown_table, score
from torchsite.results import Result

NETWORK = "network.pt2"
COMMAND = "from torchsite.cli import main; main()"
ASKED = {"accuracy": 0.01, "patch_deletion": 0.6}
KEPT = ("patch_deletion", "frame_control", "self_consistency", "completeness")


@dataclass(frozen=True)
class Setting:
    """The pictures, how long the network is trained without us, and how long the command may take."""

    data: str  # empty: shapes are painted
    n_train: int
    limit: int  # of the pictures that the command takes
    epochs: int
    minutes: float
    more: tuple[str, ...] = ()


USUAL = Setting("cifar10", 10_000, 4_000, 5, 12.0)
QUICK = Setting(
    "", 60, 60, 1, 0.1, ("--epochs", "1", "--batch-size", "20", "--poses", "upright", "--no-report")
)
SIDE = 16  # of painted pictures


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train the network, run the command, gather what both left; what is finished in `folder` is kept."""
    started, setting = time.monotonic(), QUICK if quick else USUAL
    folder.mkdir(parents=True, exist_ok=True)
    config = {"data": setting.data, "n_train": setting.n_train, "epochs": setting.epochs}
    network = step(folder / "network.json", config, partial(_train, setting, folder, progress))
    config |= {"limit": setting.limit, "minutes": setting.minutes, "more": list(setting.more)}
    twin = step(folder / "twin.json", config, partial(_convert, setting, folder))
    values = {"network": network.values, **twin.values, "asked": dict(ASKED)}
    spent = max(network.seconds + twin.seconds, time.monotonic() - started)
    config |= {"quick": quick, "weights": {"twin": weights_of(load_finished(folder / "twin"))}}
    return save_result(Result("convert", values, config, 0, spent), folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """None: this result is a table."""
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """Both accuracies, how often the two agree, and whether the twin's maps are true."""
    values, config = result.values, result.config
    found, clock = values["comparison"], values["minutes"]
    lost = found["classifier"]["value"] - found["twin"]["value"]
    rows = [
        ["accuracy, the network", score(found, "classifier"), ""],
        [
            "accuracy, its twin",
            score(found, "twin"),
            f"within {values['asked']['accuracy']:.0%} (here {-lost:+.1%})",
        ],
        ["they agree on", score(found, "agreement"), ""],
        ["patch deletion, rank correlation", *_of(values, "patch_deletion", "correlation")],
        ["its floor: the map of another picture", *_of(values, "patch_deletion", "floor")],
        ["consistency above its floor, corners black", *_of(values, "frame_control", "black", "calibrated")],
        ["the same, corners filled", *_of(values, "frame_control", "filled", "calibrated")],
        ["training of the network, minutes", f"{values['network']['seconds'] / 60:.1f}", ""],
        [
            "the command, minutes by the clock (of the processor)",
            f"{clock['clock']:.1f} ({clock['processor']:.1f})",
            f"{config['minutes']:g}",
        ],
        ["the twin's training, PMAC", f"{values['pmac']:.4f}", ""],
    ]
    return (
        "## A network that was trained without us\n\n"
        f"{source(result)}\n\n"
        f"A ResNet of {values['network']['parameters']:,} weights, trained by plain PyTorch code on "
        f"{config['n_train']:,} pictures of {config['data']} for {config['epochs']} epochs, was exported and "
        f"given to `{values['command']}`. Accuracies are of {found['n']:,} test pictures, measures of maps "
        f"of the first {values['n_probed']} that the report drew; {found['difference']}.\n\n"
        + markdown_table(["", "found", "asked"], rows)
    )


def _of(values: Mapping[str, Any], *path: str) -> tuple[str, str]:
    asked = values["asked"].get(path[0]) if path[-1] == "correlation" else None
    return score(look_up(values, "scores"), *path), "" if asked is None else f"≥ {asked:g}"


def _train(setting: Setting, folder: Path, progress: bool) -> dict[str, Any]:
    """The network's file, and what its training took."""
    data = load_dataset(
        _data(setting, folder), "train", size=None if setting.data else SIDE, progress=progress
    )
    some = data.spread(setting.n_train)
    channels, height, width = some.images.shape[1:]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        net = SmallResNet(len(data.classes), channels)
    started = time.monotonic()
    train_plainly(net, some.images, some.labels, epochs=setting.epochs)
    save_exported(net, folder / NETWORK, (channels, height, width))
    return {"seconds": time.monotonic() - started, "parameters": n_parameters(net), "n": len(some)}


def _examined(twin: Path, setting: Setting, folder: Path) -> Result:
    """What the command's report found; without one, a few pictures are measured here."""
    if (twin / "examination.json").is_file():
        return Result.load(twin / "examination.json")
    test = load_dataset(_data(setting, folder), "test", size=SIDE, progress=False).spread(8)
    return evaluate(load_finished(twin), test)


def _data(setting: Setting, folder: Path) -> str:
    """The data set's name, or the folder of painted shapes, which are painted if they are not there."""
    if setting.data:
        return setting.data
    painted, root = painted_halves(SIDE), folder / "shapes"
    for split, half in (("train", painted.train), ("test", painted.test)):
        data = half.labelled("object").spread(setting.n_train)
        for number, (pixels, label) in enumerate(zip(data.images, data.labels, strict=True)):
            path = root / split / data.classes[int(label)] / f"{number:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(path)
    return str(root)


def _convert(setting: Setting, folder: Path) -> dict[str, Any]:
    """Run the command as users do; what it found and what it took."""
    words = [
        *("convert", str(folder / NETWORK), _data(setting, folder), "--limit", str(setting.limit)),
        *("--minutes", f"{setting.minutes:g}", *setting.more, "--out", str(folder / "twin"), "--json"),
    ]
    started, before = time.monotonic(), os.times()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], stdout=subprocess.PIPE, text=True, check=False
    )
    clock, after = time.monotonic() - started, os.times()
    if done.returncode:
        raise TorchsiteError(
            f"torchsite {' '.join(words)} ended with code {done.returncode}: see its words above"
        )
    processor = sum(
        getattr(after, kind) - getattr(before, kind) for kind in ("children_user", "children_system")
    )
    twin = folder / "twin"
    examined, training = _examined(twin, setting, folder), Result.load(twin / "result.json")
    comparison = json.loads(done.stdout.splitlines()[-1])
    shown = " ".join(Path(word).name for word in words[:7])
    return {
        "command": f"torchsite {shown}",
        "comparison": {key: value for key, value in comparison.items() if key not in ("model", "report")},
        "scores": {name: examined.values[name] for name in KEPT if name in examined.values},
        "n_probed": examined.config["n_probed"],
        "minutes": {
            "clock": clock / 60,
            "processor": processor / 60,
            "training": training.seconds / 60,
        },
        "pmac": training.config["budget"]["pmac"],
        "epochs": training.config["training"]["epochs"],
    }
