"""Shortcuts planted in pictures: does the audit find them, and does it cry wolf?

Claim:    what decides a class and has nothing to do with it stands out among the groups of an audit, whatever
          it looks like; nothing stands out where nothing was planted.
Command:  python -m experiments.shortcuts FOLDER [--quick]     (runs resume; each line is a file of its own)
Cost:     a training for each line: hours. Less than a minute with --quick, on painted pictures.

One class of the training pictures gets the shortcut in a share of its pictures. The audit sees test pictures
with the shortcut in the same share. The accuracy is that on clean test pictures, of the class and of all.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw

from experiments.bam.data import painted_halves
from experiments.bam.models import QUICK as OF_PAINTED
from experiments.cache import save_result, step
from experiments.recipes import load_recipe, train_or_load
from experiments.section import Pictures
from torchsite.data import Dataset, load_dataset, to_float
from torchsite.evaluation.audit import audit
from torchsite.evaluation.fingerprints import weights_of
from torchsite.evaluation.verdicts import percent
from torchsite.metrics.pointing_game import box_regions
from torchsite.randomness import Rng, make_rng
from torchsite.report.format import markdown_table, method_name
from torchsite.results import Result
from torchsite.shapes import Images, Masks
from torchsite.transforms.fill import Blur

AREA = 0.03  # of the picture, where a shortcut has a place
MAPS = ("self_explanation", "grad_cam", "integrated_gradients")
OVERLAP = 0.25  # of what was planted, in the pieces of the group that found it

Planter = Callable[[Images, Rng, bool], tuple[Images, Masks]]


def tag(images: Images, rng: Rng, anywhere: bool) -> tuple[Images, Masks]:
    """A magenta square with a green middle."""
    side = round((AREA * images[0, 0].numel()) ** 0.5)
    inside = squares(images, side, rng, anywhere)
    inner = squares(images, max(side // 2, 1), rng, anywhere, around=inside)
    magenta, green = (images.new_tensor(colour)[:, None, None] for colour in ((1, 0, 1), (0, 1, 0.5)))
    return torch.where(inner[:, None], green, torch.where(inside[:, None], magenta, images)), inside


def watermark(images: Images, rng: Rng, anywhere: bool) -> tuple[Images, Masks]:
    """A word in half-transparent white; its place is that of a square of the usual area."""
    side = round((AREA * images[0, 0].numel()) ** 0.5)
    drawn = Image.new("L", (4 * side, 4 * side))
    ImageDraw.Draw(drawn).text((0, side), "PHOTO", fill=255, font_size=1.4 * side)
    word = torch.frombuffer(bytearray(drawn.resize((side, side)).tobytes()), dtype=torch.uint8).float() / 255
    inside, shown = squares(images, side, rng, anywhere), images.clone()
    for picture, mask in zip(shown, inside, strict=True):
        opacity = 0.7 * word
        picture[:, mask] = picture[:, mask] * (1 - opacity) + opacity
    return shown, inside


def border(images: Images, rng: Rng, anywhere: bool) -> tuple[Images, Masks]:
    """A tint along the edges."""
    del rng, anywhere
    size = (images.shape[-2], images.shape[-1])
    width = max(1, round(AREA * min(size) / 4))
    inner = torch.tensor([[width, width, size[1] - width, size[0] - width]])
    inside = (box_regions(inner.float(), size) == 0).expand(len(images), *size)
    tint = images.new_tensor([0.3, -0.2, -0.2])[:, None, None]
    return torch.where(inside[:, None], (images + tint).clamp(0, 1), images), inside


def blur(images: Images, rng: Rng, anywhere: bool) -> tuple[Images, Masks]:
    """The whole picture a little out of focus: a shortcut without a place."""
    del rng, anywhere
    return Blur(sigma=0.02).background(images), everywhere(images)


def frequency(images: Images, rng: Rng, anywhere: bool) -> tuple[Images, Masks]:
    """Faint stripes over the whole picture, four pixels wide: a shortcut without a place."""
    del rng, anywhere
    wave = 0.05 * torch.sin(torch.arange(images.shape[-1]) * torch.pi / 2)
    return (images + wave).clamp(0, 1), everywhere(images)


KINDS: Mapping[str, Planter] = {one.__name__: one for one in (tag, watermark, border, blur, frequency)}


def plant(
    data: Dataset, kind: str, share: float, *, label: int = 0, anywhere: bool = True, seed: int = 0
) -> tuple[Dataset, Masks]:
    """The data with a shortcut in a share of one class's pictures, and where it is."""
    rng = make_rng(seed, "shortcut", kind, data.split)
    own = (data.labels == label).nonzero()[:, 0]
    rows = own[torch.randperm(len(own), generator=rng)[: round(share * len(own))]]
    images, regions = data.images.clone(), torch.zeros(len(data), *data.size, dtype=torch.bool)
    if len(rows):
        shown, regions[rows] = KINDS[kind](to_float(images[rows]), rng, anywhere)
        images[rows] = (255 * shown).round().to(torch.uint8)
    return replace(data, images=images, larger=None), regions


def squares(images: Images, side: int, rng: Rng, anywhere: bool, around: Masks | None = None) -> Masks:
    """A square in each picture: anywhere, in the lower right corner, or in the middle of other squares."""
    size, n = (images.shape[-2], images.shape[-1]), len(images)
    if around is not None:
        centre = torch.stack([mask.nonzero().double().mean(0) for mask in around])
        corners = (centre - (side - 1) / 2).round()
    elif anywhere:
        free = torch.tensor(size) - side + 1
        corners = (torch.rand(n, 2, generator=rng) * free).floor()
    else:
        corners = (torch.tensor(size) - side - 1).expand(n, 2)
    top, left = corners.double().unbind(1)
    return box_regions(torch.stack([left, top, left + side, top + side], 1), size) > 0


def everywhere(images: Images) -> Masks:
    """All of each picture."""
    return torch.ones(len(images), *images.shape[-2:], dtype=torch.bool)


@dataclass(frozen=True)
class Line:
    """A row of the table: whose pictures, what is planted, in which share of its class, where, which seed."""

    data: str
    kind: str = "tag"
    share: float = 1.0
    anywhere: bool = True
    seed: int = 0

    @property
    def name(self) -> str:
        """How its file is called."""
        where = "anywhere" if self.anywhere else "corner"
        return f"{self.data}-{self.kind}-{round(100 * self.share)}-{where}-{self.seed}"


DATA = ("eurosat", "food10", "cifar10")
SHARES = (1.0, 0.9, 0.6)
TABLE = (
    *(Line(data, share=0.0) for data in DATA),  # false alarms
    *(Line(data, kind, share) for data in DATA for kind in KINDS for share in SHARES),
    *(Line("eurosat", "tag", share, anywhere=False) for share in SHARES),
    *(Line("eurosat", "tag", share, seed=seed) for share in SHARES for seed in (1, 2)),
)
QUICK_TABLE = (Line("painted", share=0.0), Line("painted"))
QUICK = {name: value for name, value in OF_PAINTED.items() if name.startswith("model")} | {
    "batch_size": 16,
    "epochs": 1,
    "validate_every": 1,
}


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train and audit every line of the table (or take it from `folder`)."""
    started, rows, weights = time.monotonic(), [], {}
    for line in QUICK_TABLE if quick else TABLE:
        rows.append(_line(line, folder, quick, progress))
        weights[line.name] = rows[-1]["weights"]
    config = {"area": AREA, "maps": list(MAPS), "quick": quick, "weights": weights}
    return save_result(Result("shortcuts", {"rows": rows}, config, 0, time.monotonic() - started), folder)


def section(result: Result, pictures: Pictures) -> str:
    """A line for each training: found or not by the maps of each method, and what the shortcut costs."""
    del pictures
    header = ["data", "planted", "share", "accuracy, clean", "of its class"]
    header += [f"{method_name(name)}: found" for name in MAPS] + ["evidence", "rank", "turns", "false alarms"]
    return "## Planted shortcuts\n\n" + markdown_table(header, list(_cells(result.values["rows"])), left=2)


def _cells(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        own = row["audits"][MAPS[0]]
        group = own["planted"]
        found = ["yes" if row["audits"][name]["found"] else "no" for name in MAPS]
        shown = [percent(group["evidence"]), f"{group['rank']} of {group['of']}", percent(group["turns"])]
        alarms = f"{len(own['alarms'])} of {row['n_classes']} classes"
        accuracy = [f"{row['clean'][key]:.1%}" for key in ("all", "class")]
        planted = (
            [row["data"], row["kind"], f"{row['share']:.0%}"]
            if row["share"]
            else [row["data"], "nothing", "–"]
        )
        yield [
            *planted,
            *accuracy,
            *(found if row["share"] else ["–"] * 3),
            *(shown if group["of"] else ["–"] * 3),
            alarms,
        ]


def _line(line: Line, folder: Path, quick: bool, progress: bool) -> dict[str, Any]:
    train, test = _halves(line.data)
    planted, _ = plant(train, line.kind, line.share, anywhere=line.anywhere, seed=line.seed)
    shown, regions = plant(test, line.kind, line.share, anywhere=line.anywhere, seed=line.seed)
    recipe = "food10" if quick else line.data
    changes = (dict(QUICK) if quick else {}) | {"seed": line.seed}
    model = train_or_load(
        load_recipe(recipe),
        folder / line.name,
        changes,
        data=(planted, test),
        staged=False,
        progress=progress,
    )
    found = {"weights": weights_of(model)}

    def look() -> dict[str, Any]:
        with torch.no_grad():
            said = torch.cat([model(to_float(part)) for part in test.images.split(100)]).argmax(1)
        right, own = said == test.labels, test.labels == 0
        clean = {"all": float(right.double().mean()), "class": float(right[own].double().mean())}
        audits = {name: _audited(model, shown, regions, name, line.seed) for name in MAPS}
        return {"clean": clean, "audits": audits, "n_classes": len(test.classes)}

    kept = step(folder / "steps" / f"{line.name}.json", found | asdict(line), look)
    return asdict(line) | found | dict(kept.values)


def _audited(model: Any, data: Dataset, regions: Masks, method: str, seed: int) -> dict[str, Any]:
    """Whether what was planted was found, its group among all, and what stands out that was not planted."""
    explain = None if method == "self_explanation" else method
    made = audit(model, data, explain=explain, regions=regions if regions.any() else None, seed=seed)
    groups = [group for group in made.groups if group["kind"] != "regions" and group["pasting"]]
    groups.sort(key=lambda group: -group["pasting"]["turns"]["value"])
    given = next((number for number, g in enumerate(made.groups, 1) if g["kind"] == "regions"), None)
    hits = [
        group
        for group in groups
        if given and _overlap(made.parts[group["number"]], made.parts[given]) > OVERLAP
    ]
    best = hits[0] if hits else None
    return {
        "found": any(group["found"] for group in hits),
        "planted": {
            "evidence": best["evidence"] if best else {"value": None},
            "turns": best["pasting"]["turns"] if best else {"value": None},
            "rank": groups.index(best) + 1 if best else None,
            "of": len(groups) if best else 0,
        },
        "alarms": sorted({g["class"] for g in groups if g["found"] and g not in hits}),
        "verdicts": made.verdicts,
    }


def _overlap(part: Any, planted: Any) -> float:
    """The share of what was planted that the group covers, in the pictures that both have."""
    if part.label != planted.label:
        return 0.0
    rows = [row for row in part.rows.tolist() if row in set(planted.rows.tolist())]
    if not rows:
        return 0.0
    a, b = (one.masks[torch.isin(one.rows, torch.tensor(rows))] for one in (part, planted))
    return float((a & b).sum() / b.sum())


def _halves(name: str) -> tuple[Dataset, Dataset]:
    if name == "painted":
        painted = painted_halves()
        return painted.train.labelled("object"), painted.test.labelled("object")
    size = load_recipe(name).size
    return load_dataset(name, "train", size=size), load_dataset(name, "test", size=size)


if __name__ == "__main__":
    run(Path(sys.argv[1]), quick="--quick" in sys.argv, progress=True)
