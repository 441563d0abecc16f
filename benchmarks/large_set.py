"""A set larger than memory: a folder of many pictures is decoded and trained on, and memory is watched.

    python benchmarks/large_set.py [--pictures 5000] [--size 32] [--limit-mb 0] [--folder F] [--out FILE]

`results/large_set.json` is a run with 200,000 pictures. A limit is a hard one for the whole process, mapped
pages included; it needs the right to make control groups.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console

from torchsite.data import load_dataset
from torchsite.model import SITE
from torchsite.objective import TransformationTerm
from torchsite.results import Result
from torchsite.training import Callback, TrainingConfig, fit
from torchsite.training.loop import Run

CGROUP = Path("/sys/fs/cgroup/memory")
SIZE, CLASSES, PER_CLASS_KINDS = 32, 10, 32


def write_pictures(folder: Path, n: int) -> None:
    """A folder of `n` small JPEGs; a few hundred different ones, each file with a comment of its own."""
    rng = np.random.default_rng(0)
    kinds: list[list[bytes]] = []
    for label in range(CLASSES):
        (folder / "train" / f"class-{label}").mkdir(parents=True)
        (folder / "test" / f"class-{label}").mkdir(parents=True)
        kinds.append([jpeg(rng, label) for _ in range(PER_CLASS_KINDS)])
    for number in range(n):
        label = number % CLASSES
        content = kinds[label][(number // CLASSES) % PER_CLASS_KINDS] + str(number).encode()
        (folder / "train" / f"class-{label}" / f"{number:07d}.jpg").write_bytes(content)
        if number < 20 * CLASSES:
            (folder / "test" / f"class-{label}" / f"{number:07d}.jpg").write_bytes(content)


def jpeg(rng: np.random.Generator, label: int) -> bytes:
    """Noise in the colour of a class."""
    pixels = rng.integers(0, 100, (SIZE, SIZE, 3)) + np.array([15 * label, 150 - 15 * label, 60])
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def measure_large(args: argparse.Namespace) -> dict[str, Any]:
    """Write, decode, train; memory as the process saw it."""
    place = Path(args.folder or tempfile.mkdtemp(prefix="large-"))
    try:
        if not (place / "pictures").is_dir():
            write_pictures(place / "pictures", args.pictures)
        command = [sys.executable, __file__, "--watched", "--folder", str(place), "--size", str(args.size)]
        environment = one_thread() | {"TORCHSITE_CACHE": str(place / "cache")}
        with limited(args.limit_mb) as join:
            subprocess.run(command, check=True, env=environment, preexec_fn=join)
        watched: dict[str, Any] = json.loads((place / "watched.json").read_text())
        return watched | {"pictures": args.pictures, "limit, MB": args.limit_mb}
    finally:
        if not args.folder:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def limited(megabytes: int) -> Iterator[Callable[[], None]]:
    """A hard limit of memory for a child, mapped pages included, where control groups can be made."""
    if not megabytes:
        yield lambda: None
        return
    group = CGROUP / f"torchsite-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(megabytes * 10**6))
        yield lambda: enter(group)
    finally:
        group.rmdir()


def enter(group: Path) -> None:
    """Join a control group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def watched(args: argparse.Namespace) -> None:
    """What the watched process does: decode, then one epoch."""
    torch.set_num_threads(1)
    place, memory = Path(args.folder), Memory()
    start = time.monotonic()
    train, test = (
        load_dataset(place / "pictures", split, size=args.size, progress=False) for split in ("train", "test")
    )
    decoded, before = time.monotonic() - start, megabytes()
    shape = (3, args.size, args.size)
    side = args.size // 8
    patches = torch.nn.Conv2d(3, 4, side, stride=side)  # a light model: memory is the matter
    generator = {"widths": (8, 8, 16), "code": 16}
    model = SITE(
        patches, "lateral", CLASSES, image_shape=shape, classes=train.classes, generator_options=generator
    )
    terms = (TransformationTerm(targets="mean"),)
    config = TrainingConfig(epochs=1, batch_size=128, terms=terms, n_validation=200, collapse_patience=100)
    fit(
        model,
        train,
        config,
        validation=test,
        folder=place / "run",
        resume=True,
        callbacks=[memory],
    )
    half = memory.seen[len(memory.seen) // 2 :]
    found = {
        "cache, MB": round(train.images.numel() / 1e6, 1),
        "decoding, s": round(decoded, 1),
        "training, s": round(time.monotonic() - start - decoded, 1),
        "after decoding": before,
        "during training": memory.seen[:: max(1, len(memory.seen) // 20)],
        "own memory, first and last of the second half, MB": [half[0]["own, MB"], half[-1]["own, MB"]],
    }
    (place / "watched.json").write_text(json.dumps(found))


class Memory(Callback):
    """Notes the memory of the process every ten steps."""

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def step_done(self, run: Run, losses: Mapping[str, torch.Tensor]) -> None:
        """One more, now and then."""
        if run.steps_done % 10 == 0:
            self.seen.append({"step": run.steps_done} | megabytes())


def megabytes() -> dict[str, float]:
    """Memory of its own, and pages of mapped files, which the system takes back when it needs them."""
    status = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line
    )
    own, mapped = (int(status[name].split()[0]) / 1000 for name in ("RssAnon", "RssFile"))
    return {"own, MB": round(own, 1), "mapped, MB": round(mapped, 1)}


def one_thread() -> dict[str, str]:
    """The environment of a child that keeps to one core."""
    return dict(os.environ) | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def main() -> None:
    """Write, decode, train, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=5000)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--limit-mb", type=int, default=0)
    parser.add_argument("--folder", help="keep the pictures, the cache and the run here")
    parser.add_argument("--watched", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.watched:
        watched(args)
        return
    start = time.monotonic()
    values = measure_large(args)
    Console().print(values)
    if args.out:
        settings = {"pictures": args.pictures, "size": args.size, "limit, MB": args.limit_mb}
        Result("large_set", values, settings, 0, time.monotonic() - start).save(args.out)


if __name__ == "__main__":
    main()
