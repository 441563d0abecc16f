"""Faults of a folder of pictures: too few, copies, properties of files that give the class away.

`inspect_halves` checks the files of both halves and the pictures in them:

| kind | what | why it harms |
|---|---|---|
| tiny class | a handful of pictures, or far fewer than the largest class | nothing general can be learnt |
| duplicate | the same file twice in a half | weighs double |
| leak | the same or nearly the same picture in both halves | the test measures memory |
| contradiction | the same picture under two labels | one of them is wrong |
| series | test pictures whose siblings (`walk_3_01`, `walk_3_02`) are in the training half | nearly a leak |
| unreadable | files that cannot be decoded | they are left out |
| tell-tale | size, format or frame of a picture predicts its class | the model may learn nothing else |
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from torchsite.data.dataset import Dataset, to_float
from torchsite.data.duplicates import near_pairs, same_files
from torchsite.data.folders import list_split
from torchsite.data.imagecache import Listing, read_pictures
from torchsite.data.request import Request
from torchsite.data.stacks import open_picture
from torchsite.shapes import Pixels

TINY = 20
UNEVEN = 10
FLAT = 0.012
SURE = 3.0
CHUNK = 1024
N_NAMED = 3
ORDER = ("leak", "contradiction", "tell-tale", "series", "tiny class", "unreadable", "duplicate")


@dataclass(frozen=True)
class Finding:
    """One thing that may harm, in words, with some of the files that show it."""

    kind: str
    text: str
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" + (f" (such as {', '.join(self.files)})" if self.files else "")


@dataclass(frozen=True, eq=False)
class Half:
    """The pictures of one half and the files they come from, row by row the same."""

    pictures: Dataset
    listing: Listing

    @property
    def names(self) -> list[str]:
        """Files below the folder that both halves share, as people see them."""
        return [f"{self.listing.root.name}/{file}" for file in self.listing.files]

    def __len__(self) -> int:
        return len(self.listing.files)


def read_half(folder: Path, request: Request) -> Half:
    """One half of a folder, as `load_dataset` would split it, with the files its pictures come from."""
    return Half(*read_pictures(list_split(folder, request), request))


def inspect_halves(train: Half, test: Half) -> list[Finding]:
    """Everything that was found, the worst first."""
    found = [*_copies(train, test), *_tell_tales(train, test), *_series(train, test), *_tiny_classes(train)]
    skipped = train.pictures.skipped + test.pictures.skipped
    if skipped:
        found.append(Finding("unreadable", f"{skipped} files are no pictures or damaged, and were left out"))
    return sorted(found, key=lambda finding: ORDER.index(finding.kind))


def _tiny_classes(train: Half) -> Iterator[Finding]:
    counts = dict(zip(train.listing.classes, train.pictures.counts, strict=True))
    tiny = sorted((n, name) for name, n in counts.items() if n < TINY)
    if tiny:
        named = ", ".join(f"{name} ({n})" for n, name in tiny[:5])
        more = f" and {len(tiny) - 5} more" if len(tiny) > 5 else ""
        text = f"fewer than {TINY} training pictures of {named}{more}: add some, or leave the class out"
        yield Finding("tiny class", text)
    uneven = [name for name, n in counts.items() if n >= TINY and UNEVEN * n < max(counts.values())]
    if uneven:
        text = f"{', '.join(uneven[:5])}: less than a {UNEVEN}th of the largest class, easily overlooked"
        yield Finding("tiny class", text)


def _copies(train: Half, test: Half) -> Iterator[Finding]:
    """The same picture in both halves, in one, or under two labels."""
    names, labels = [*train.names, *test.names], [*train.listing.labels, *test.listing.labels]
    n = len(train)
    groups = same_files([*train.listing.paths, *test.listing.paths])
    leaks = [group for group in groups if min(group) < n <= max(group)]
    double = [group for group in groups if group not in leaks]
    torn = [group for group in groups if len({labels[row] for row in group}) > 1]
    exact = {row - n for group in leaks for row in group if row >= n}
    near = [pair for pair in near_pairs(train.pictures.images, test.pictures.images) if pair[1] not in exact]

    def found(kind: str, text: str, groups: Sequence[Sequence[int]], sign: str = " = ") -> Iterator[Finding]:
        files = tuple(sign.join(names[row] for row in group[:2]) for group in groups[:N_NAMED])
        yield from [Finding(kind, text, files)] if groups else []

    text = f"{_share(exact, test)} are training pictures as well: remove them there"
    yield from found("leak", text, leaks)
    text = f"{_share(near, test)} look nearly like training pictures: keep what shows one thing together"
    yield from found("leak", text, [(left, n + right) for left, right in near], " ≈ ")
    yield from found("contradiction", f"{len(torn)} pictures stand under two labels: correct one", torn)
    n_copies = sum(len(group) - 1 for group in double)
    yield from found("duplicate", f"{n_copies} copies within a half: keep one of each", double)


def _share(rows: Collection[object], test: Half) -> str:
    return f"{len(rows)} test pictures ({len(rows) / len(test):.0%})"


def _series(train: Half, test: Half) -> list[Finding]:
    """Test pictures named as siblings of training pictures: frames of a film, crops of a photograph."""
    ours, theirs = ([_series_of(file) for file in half.listing.files] for half in (train, test))
    sizes = Counter(name for name in (*ours, *theirs) if name is not None)
    several = {name for name, n in sizes.items() if 2 <= n <= 0.05 * (len(train) + len(test))}
    torn = [row for row, name in enumerate(theirs) if name in several and name in set(ours)]
    if len(several) < 5 or len(torn) < 0.2 * len(test):
        return []
    text = (
        f"{len(torn)} test pictures ({len(torn) / len(test):.0%}) bear the name of a series that goes on "
        f"in the training half: if a series shows one thing, keep it together"
    )
    return [Finding("series", text, tuple(test.names[row] for row in torn[:N_NAMED]))]


def _series_of(file: str) -> str | None:
    """`cats/walk_3_01.jpg` belongs to `cats/walk_3`; a bare number or a name without one to no series."""
    stem = str(Path(file).with_suffix(""))
    match = re.fullmatch(r"(.*\d.*?)[ _-]+\(?\w{1,8}\)?", stem)
    return match.group(1) if match else None


def _tell_tales(train: Half, test: Half) -> Iterator[Finding]:
    """Properties of files that predict the class without what the picture shows (shortcuts)."""
    for what, look in LOOKS.items():
        accuracy, chance = _guess(look(train), train.listing.labels, look(test), test.listing.labels)
        noise = math.sqrt(max(chance * (1 - chance), 1e-9) / max(1, len(test)))
        if len(test) >= TINY and accuracy > chance + max(0.15, SURE * noise):
            text = (
                f"{what} alone names the class of {accuracy:.0%} of the test pictures "
                f"({chance:.0%} by chance): bring all classes to one form, or the model may see nothing else"
            )
            yield Finding("tell-tale", text)


def _guess(
    ours: Iterable[Hashable], labels: Sequence[int], theirs: Iterable[Hashable], true: Sequence[int]
) -> tuple[float, float]:
    """The accuracy of guessing the commonest class of each value, and of guessing the commonest class."""
    seen: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for value, label in zip(ours, labels, strict=True):
        seen[value][label] += 1
    usual = Counter(labels).most_common(1)[0][0]
    guesses = [seen[value].most_common(1)[0][0] if value in seen else usual for value in theirs]
    n = max(1, len(true))
    right = sum(guess == label for guess, label in zip(guesses, true, strict=True))
    return right / n, sum(label == usual for label in true) / n


def _size(path: Path) -> tuple[int, int] | None:
    try:
        with open_picture(path) as picture:
            return picture.size
    except Exception:  # damaged files make Pillow fail in many ways; they are reported as unreadable
        return None


def _framed(pixels: Pixels) -> list[bool]:
    """Whether the outermost pixels all have one colour."""
    found: list[bool] = []
    for part in pixels.split(CHUNK):
        images = to_float(part)
        edges = [images[..., 0, :], images[..., -1, :], images[..., :, 0], images[..., :, -1]]
        found += (torch.cat(edges, dim=-1).std(-1).amax(1) < FLAT).tolist()
    return found


LOOKS: Mapping[str, Callable[[Half], Sequence[Hashable]]] = {
    "the size of the file's picture": lambda half: [_size(path) for path in half.listing.paths],
    "the format of the file": lambda half: [Path(file).suffix.lower() for file in half.listing.files],
    "a single-coloured frame": lambda half: _framed(half.pictures.images),
}
