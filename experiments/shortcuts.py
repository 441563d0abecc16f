"""Shortcuts planted in pictures: does the audit find them, does it cry wolf, and can they be trained away?

Claim:    what decides a class and has nothing to do with it stands out among the groups of an audit, whatever
          it looks like; nothing stands out where nothing was planted; a model that is told to ignore it does.
Command:  python -m experiments.shortcuts FOLDER [--quick | --done]     (each line is a file of its own)
Cost:     two trainings and three audits for each line: a few minutes of one core; --done takes those lines
          alone that are there. Less than a minute with --quick, on painted pictures.

One class of the training pictures gets the shortcut in a share of its pictures. The audit sees test pictures
with the shortcut in the same share. The accuracy is that on clean test pictures, of the class and of all;
`caught` is the share of the test pictures of other classes that become the class when it is planted in them.
All of this stands again for a second model, trained with the regions of what was planted to be ignored.
"""

import sys
import time
from collections.abc import Callable, Mapping
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
from torchsite.model import SITE, BlackBox
from torchsite.objective import IgnoredRegions
from torchsite.randomness import Rng, make_rng
from torchsite.report.format import markdown_table, method_name
from torchsite.results import Result
from torchsite.shapes import Images, Labels, Masks
from torchsite.training.recipes import override
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

    @property
    def can_be_ignored(self) -> bool:
        """Whether it is a part of the picture."""
        return self.share > 0 and self.kind not in ("blur", "frequency")


DATA = ("eurosat", "food10")
LABELS = {"eurosat": 6}  # the class that gets the shortcut: a hard one, permanent crops; elsewhere the first
SHARES = (1.0, 0.9, 0.6)
TABLE = (
    *(Line(data, share=share) for share in (1.0, 0.0) for data in DATA),  # without any: false alarms
    *(Line("eurosat", kind) for kind in KINDS if kind != "tag"),
    *(Line("eurosat", share=share) for share in SHARES[1:]),
    Line("eurosat", anywhere=False),
    *(Line("food10", kind) for kind in KINDS if kind != "tag"),
    *(Line("eurosat", seed=seed) for seed in (1, 2)),
    *(Line(data, kind, share) for data in DATA for kind in KINDS if kind != "tag" for share in SHARES[1:]),
)
QUICK_TABLE = (Line("painted", share=0.0), Line("painted"))
QUICK = {name: value for name, value in OF_PAINTED.items() if name.startswith("model")} | {
    "batch_size": 16,
    "epochs": 1,
    "validate_every": 1,
}
# A small training: that of EuroSAT, on a hundred pictures of each class, of 64 pixels.
N_TRAIN, N_TEST, SIZE = 1000, 1000, 64
SMALL = {"epochs": 5, "validate_every": 5, "n_validation": 100}
UPRIGHT = {"family": {"max_rotation": 15, "max_shift": 0.25}}
AUDITED: Mapping[str, Any] = {"limit": 40, "n_probed": 20}


def run(folder: Path, *, quick: bool = False, progress: bool = False, done: bool = False) -> Result:
    """Train and audit every line of the table (or take it from `folder`); with `done`, what is there."""
    started, rows = time.monotonic(), []
    weights: dict[str, str] = {}
    for line in QUICK_TABLE if quick else TABLE:
        if not done or _file(folder, line).exists():
            rows.append(look_at(line, folder, quick, progress))
            weights |= {f"{line.name} {name}": of for name, of in rows[-1]["weights"].items()}
    config = {"area": AREA, "maps": list(MAPS), "quick": quick, "weights": weights}
    return save_result(Result("shortcuts", {"rows": rows}, config, 0, time.monotonic() - started), folder)


def section(result: Result, pictures: Pictures) -> str:
    """Two tables: found or not by the maps of each method; what the shortcut costs, and what is regained."""
    del pictures
    rows = result.values["rows"]
    found = ["data", "planted", "share", *(method_name(name) for name in MAPS)]
    found += ["evidence", "rank", "pasted, it turns", "false alarms"]
    cost = ["data", "planted", "share", "accuracy, clean", "of its class", "caught"]
    cost += ["ignored: accuracy", "of its class", "caught", "loss regained", "seconds"]
    plain = {row["data"]: row["first"] for row in rows if not row["share"]}
    return "\n\n".join(
        [
            "## Planted shortcuts: are they found?",
            markdown_table(found, [_found(row) for row in rows], left=2),
            "## What they cost, and training them away",
            markdown_table(cost, [_cost(row, plain.get(row["data"])) for row in rows], left=2),
        ]
    )


def _named(row: Mapping[str, Any]) -> list[str]:
    if not row["share"]:
        return [row["data"], "nothing", "–"]
    where = "" if row["anywhere"] else ", in a corner"
    return [row["data"], f"{row['kind']}{where}, seed {row['seed']}", f"{row['share']:.0%}"]


def _found(row: Mapping[str, Any]) -> list[str]:
    """Found or not, the group's figures by the model's own maps, and what else stood out."""
    own = row["audits"][MAPS[0]]
    group, alarms = own["planted"], f"{len(own['alarms'])} of {row['n_classes']} classes"
    if not row["share"]:
        return [*_named(row), *["–"] * (len(MAPS) + 3), alarms]
    said = ["yes" if row["audits"][name]["found"] else "no" for name in MAPS]
    if not group["of"]:
        return [*_named(row), *said, "–", "–", "–", alarms]
    rank = f"{group['rank']} of {group['of']}"
    return [*_named(row), *said, percent(group["evidence"]), rank, percent(group["turns"]), alarms]


def _cost(row: Mapping[str, Any], plain: Mapping[str, float] | None) -> list[str]:
    """What both models get right and what catches them; the share of the loss that is regained."""
    first, second = row["first"], row["second"]
    cells = [*_named(row), *(_share(first, key) for key in ("all", "class", "caught"))]
    cells += [_share(second, key) for key in ("all", "class", "caught")]
    regained = "–"
    if second and plain and (lost := plain["class"] - first["class"]) > 0.05:
        regained = f"{(second['class'] - first['class']) / lost:.0%}"
    return [*cells, regained, f"{row['seconds']:.0f}"]


def _share(found: Mapping[str, float] | None, key: str) -> str:
    return "–" if found is None or found[key] is None else f"{found[key]:.1%}"


def look_at(line: Line, folder: Path, quick: bool = False, progress: bool = False) -> dict[str, Any]:
    """Both models of a line, what the audits of the first one say, and what both answer."""

    def look() -> dict[str, Any]:
        started = time.process_time()
        train, test = _halves(line.data)
        label = LABELS.get(line.data, 0)
        options: dict[str, Any] = {"label": label, "anywhere": line.anywhere, "seed": line.seed}
        planted, regions = plant(train, line.kind, line.share, **options)
        shown, places = plant(test, line.kind, line.share, **options)
        model = _trained(line, planted, test, folder / line.name, quick, progress)
        models, second = {"first": weights_of(model)}, None
        if line.can_be_ignored:
            ignoring = replace(planted, regions=regions)
            other = _trained(line, ignoring, test, folder / f"{line.name}-ignored", quick, progress)
            models["second"], second = weights_of(other), _answers(other, test, line, label)
        return {
            "first": _answers(model, test, line, label),
            "second": second,
            "audits": {name: _audited(model, shown, places, name, line.seed) for name in MAPS},
            "n_classes": len(test.classes),
            "weights": models,
            "seconds": time.process_time() - started,
        }

    kept = step(_file(folder, line), asdict(line) | {"quick": quick}, look)
    return asdict(line) | dict(kept.values)


def _file(folder: Path, line: Line) -> Path:
    return folder / "steps" / f"{line.name}.json"


def _trained(
    line: Line, train: Dataset, test: Dataset, folder: Path, quick: bool, progress: bool
) -> SITE | BlackBox:
    """A model of these pictures, which ignores their regions if they have any."""
    recipe = load_recipe("food10" if quick else "eurosat")
    changes = dict(QUICK) if quick else SMALL | ({} if line.data == "eurosat" else UPRIGHT)
    recipe = override(recipe, changes | {"seed": line.seed})
    if train.regions is not None:
        training = replace(recipe.training, terms=(*recipe.training.terms, IgnoredRegions()))
        recipe = replace(recipe, training=training)
    return train_or_load(recipe, folder, data=(train, test), staged=False, progress=progress)


def _answers(model: SITE | BlackBox, test: Dataset, line: Line, label: int) -> dict[str, float | None]:
    """Accuracy on clean pictures, of all and of the class, and how many others the shortcut catches."""
    right, own = _said(model, test) == test.labels, test.labels == label
    others = test[~own]
    everywhere, _ = plant(replace(others, labels=0 * others.labels), line.kind, 1.0, anywhere=line.anywhere)
    caught = float((_said(model, everywhere) == label).double().mean()) if line.share else None
    return {
        "all": float(right.double().mean()),
        "class": float(right[own].double().mean()),
        "caught": caught,
        "taken without": float((_said(model, others) == label).double().mean()),
    }


@torch.no_grad()
def _said(model: SITE | BlackBox, data: Dataset) -> Labels:
    return torch.cat([model(to_float(part)) for part in data.images.split(100)]).argmax(1)


def _audited(model: Any, data: Dataset, regions: Masks, method: str, seed: int) -> dict[str, Any]:
    """Whether what was planted was found, its group among all, and what stands out that was not planted."""
    explain = None if method == "self_explanation" else method
    known = regions if regions.any() else None
    made = audit(model, data, explain=explain, regions=known, seed=seed, **AUDITED)
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
    train, test = (load_dataset(name, half, size=SIZE) for half in ("train", "test"))
    return train.spread(N_TRAIN), test.spread(N_TEST)


if __name__ == "__main__":
    run(Path(sys.argv[1]), quick="--quick" in sys.argv, progress=True, done="--done" in sys.argv)
