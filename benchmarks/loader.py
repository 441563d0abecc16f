"""Our loader against a `DataLoader` over single pictures, doing the same work, in batches per second.

Both turn uint8 pictures into float ones, normalise them, and turn and shift each by a random amount. Ours
looks a batch up in whole tensors and works on the batch; the `DataLoader` works picture by picture, as
data sets with one file per item do. It does so twice: with the same transforms, and with an affine map
written out by hand for this very case, the least that a single picture can cost. Short rounds alternate and
the best of each counts, as in `timeit`: other work on the machine can only slow a round down. On CIFAR-10 if
it is at hand, else on random pictures.

    python benchmarks/loader.py [--seconds 0.5] [--rounds 8] [--batch-size 128] [--threads N]
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch.nn.functional import affine_grid, grid_sample
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from torchsite.data import Dataset, batches, load_dataset
from torchsite.errors import DataError
from torchsite.randomness import Rng, make_rng
from torchsite.transforms import TransformFamily

MEAN = torch.tensor([0.491, 0.482, 0.447])[:, None, None]
STD = torch.tensor([0.247, 0.244, 0.262])[:, None, None]
TARGET = 10


Move = Callable[[torch.Tensor], torch.Tensor]


class OneByOne(TorchDataset[tuple[torch.Tensor, int]]):
    """The usual data set: each item is normalised, turned and shifted by itself."""

    def __init__(self, data: Dataset, move: Move) -> None:
        self.data, self.move = data, move

    def __len__(self) -> int:
        """One item for each picture."""
        return len(self.data)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        """One picture, ready for a model."""
        image = (self.data.images[row].float() / 255 - MEAN) / STD
        return self.move(image), int(self.data.labels[row])


def same_transforms(family: TransformFamily) -> Move:
    """One picture under one sampled transform, by the code that moves batches."""
    return lambda image: family.sample(1, rng=torch.default_generator)(image[None])[0]


def by_hand(family: TransformFamily) -> Move:
    """One picture turned and shifted with as few operations as there can be."""

    def move(image: torch.Tensor) -> torch.Tensor:
        turn, right, down = (torch.rand(3) * 2 - 1).tolist()
        angle = math.radians(turn * family.max_rotation)
        cos, sin, shift = math.cos(angle), math.sin(angle), 2 * family.max_shift
        matrix = torch.tensor([[[cos, sin, right * shift], [-sin, cos, down * shift]]])
        grid = affine_grid(matrix, [1, *image.shape], align_corners=False)
        return grid_sample(image[None], grid, align_corners=False)[0]

    return move


def ours(data: Dataset, family: TransformFamily, batch_size: int, rng: Rng) -> Iterable[torch.Tensor]:
    """Whole batches: look up, normalise, transform."""
    for images, _ in batches(data, batch_size, rng=rng, drop_last=True):
        yield family.sample(len(images), rng=rng)(images.sub_(MEAN).div_(STD))


def rate(loader: Iterable[object], seconds: float) -> float:
    """Batches per second, after a first one that warms up."""
    source = iter(loader)
    next(source)
    n, start = 0, time.perf_counter()
    for _ in source:
        n += 1
        if time.perf_counter() - start > seconds:
            break
    return n / (time.perf_counter() - start)


def pictures() -> Dataset:
    """CIFAR-10, or noise of the same shape where it is not at hand."""
    try:
        return load_dataset("cifar10", "train", download=False)
    except DataError:
        print("CIFAR-10 is not here (name its directory with TORCHSITE_DATA): using random pictures instead")
        rng = make_rng(0, "noise")
        images = torch.randint(0, 256, (20_000, 3, 32, 32), dtype=torch.uint8, generator=rng)
        labels = torch.randint(0, 10, (20_000,), generator=rng)
        return Dataset(images, labels, tuple("0123456789"), "noise")


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each loader in each round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument(
        "--threads", type=int, default=torch.get_num_threads(), help="of torch, in one process"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    data, family = pictures(), TransformFamily()
    print(f"{data}, batches of {args.batch_size}, {family}, {args.threads} threads")

    def torch_loader(move: Move, n_workers: int) -> Iterable[object]:
        dataset = OneByOne(data, move)
        return DataLoader(dataset, args.batch_size, shuffle=True, drop_last=True, num_workers=n_workers)

    moves = {"same transforms": same_transforms(family), "by hand": by_hand(family)}
    loaders: dict[str, Callable[[], Iterable[object]]] = {
        "torchsite": lambda: ours(data, family, args.batch_size, make_rng(0)),
        **{
            f"DataLoader, {name}, {n} workers": partial(torch_loader, move, n)
            for name, move in moves.items()
            for n in (0, 2)
        },
    }
    rates: dict[str, list[float]] = {name: [] for name in loaders}
    for _ in range(args.rounds):
        for name, make in loaders.items():
            rates[name].append(rate(make(), args.seconds))
    best = {name: max(values) for name, values in rates.items()}
    for name, value in best.items():
        ratio = best["torchsite"] / value
        print(f"{name:<42}{value:8.1f} batches/s   torchsite is {ratio:5.1f} times as fast")
    ratio = best["torchsite"] / best["DataLoader, same transforms, 0 workers"]
    verdict = "met" if ratio >= TARGET else "missed"
    print(f"the same work, one process each: {ratio:.1f} times as many batches (target {TARGET}: {verdict})")


if __name__ == "__main__":
    main()
