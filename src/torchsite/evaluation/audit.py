"""The audit: what a classifier relies on, in groups of like evidence, each tried by hiding and by pasting.

Command:  torchsite audit MODEL DATA
Cost:     a map of each picture, six answers for each picture that a group is hidden in or pasted into:
          60 pictures of each class of CIFAR-10 with the model's own maps, half a minute of two cores.

Evidence for a class is looked at in its own pictures, also in those that are not recognised. Groups are
    content       pieces around the peaks of evidence that show alike things (`pieces.py`)
    frame, corners, fixed spot     the place that has most of the evidence beyond its part of the area
    regions       what the user says
A group stands out if, pasted, it turns more pictures into its class than random parts of its pictures do, and
    turns > min(½, max(0.1, median + 3 · 1.4826 · MAD))       with the lower end of its interval,
the median over the other classes of what their strongest groups turn. Every figure has its interval: shares
of pictures Wilson's, means and shares of evidence a bootstrap over pictures. Fails where several classes may
be true of a picture, and without maps.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError, DataError, NotApplicableError, ShapeError, did_you_mean
from torchsite.evaluation.answers import wilson
from torchsite.evaluation.examine import check_data
from torchsite.evaluation.fingerprints import weights_of
from torchsite.evaluation.methods import options_of
from torchsite.evaluation.pieces import find_pieces, group_pieces, join_pieces, strongest_window
from torchsite.evaluation.probes import Asked, Group, Trial, quotient
from torchsite.evaluation.verdicts import verdicts
from torchsite.metrics import Explainer, as_explainer, plain
from torchsite.metrics.pointing_game import pointing_hits
from torchsite.model import SITE, BlackBox
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.shapes import Heatmaps, Labels, Masks, Scores, Size
from torchsite.training.run_folder import fingerprint

Figures = dict[str, Any]
Heatmap = Float[Tensor, "height width"]
Mask = Bool[Tensor, "height width"]
NINTHS = (
    "upper left",
    "top",
    "upper right",
    "left",
    "middle",
    "right",
    "lower left",
    "bottom",
    "lower right",
)
Watch = Callable[[str, int, int], None]

CONTENT, REGIONS, SPOT = "content", "regions", "fixed spot"
FEWEST = 8  # pictures of a class, or of a group, of which anything is said
RIM, CORNER = 1 / 16, 1 / 5
LEAST_TURNS, MOST_TURNS, DEVIATIONS = 0.1, 0.5, 3 * 1.4826


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found: the numbers as a result, the pictures, and where each group (by number) stands."""

    result: Result
    pictures: Dataset
    parts: Mapping[int, Group]

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The figures of all groups."""
        groups: list[dict[str, Any]] = self.result.values["groups"]
        return groups

    @property
    def found(self) -> list[dict[str, Any]]:
        """Those that stand out."""
        return [group for group in self.groups if group["found"]]

    @property
    def verdicts(self) -> list[str]:
        """What stands out, in sentences; or that nothing does."""
        return verdicts(self.result)


def audit(
    model: nn.Module,
    data: Dataset | str,
    *,
    explain: Any = None,
    regions: Masks | None = None,
    limit: int | None = 100,
    n_probed: int = 50,
    batch_size: int = 64,
    seed: int = 0,
    watch: Watch | None = None,
) -> Audit:
    """Find what `model` relies on in `data`, of which at most `limit` pictures of each class are drawn.

    `explain` is a name of METHODS or anything that `as_explainer` takes; None: the model's own maps, relative
    to all classes. `regions` are masks, one for each picture of the data. Groups are hidden in, and pasted
    into, `n_probed` pictures. `watch(label, done, total)` is told of every class.
    """
    started = time.monotonic()
    data = load_dataset(data, "test") if isinstance(data, str) else data
    _check(model, data, regions)
    explainer, method = _explainer(model, explain)
    rows = _drawn(data, limit, seed)
    asked = Asked(explainer, data[rows], batch_size, seed)
    regions = None if regions is None else regions[rows]
    labels = [label for label, n in enumerate(asked.data.counts) if n >= FEWEST]
    found: list[OfClass] = []
    for done, label in enumerate(labels):
        if watch is not None:
            watch(f"maps of {data.classes[label]}", done, 2 * len(labels))
        found.append(_of_class(asked, label, regions))
    tried: list[tuple[Figures, Trial]] = []
    for done, one in enumerate(found):
        if watch is not None:
            watch(f"trying {data.classes[one.label]}", len(labels) + done, 2 * len(labels))
        for group in (*one.groups, _place(one)):
            if len(group.rows) >= FEWEST:
                trial = Trial(asked, group.first(n_probed), asked.strangers(group.label, n_probed))
                tried.append(({"number": len(tried) + 1} | _figures(one, group, trial), trial))
    _judge([figures for figures, _ in tried])
    values = {
        "classes": {name: _of_pictures(asked, label, regions) for label, name in enumerate(data.classes)},
        "groups": [_looked_at(figures, trial) for figures, trial in tried],
    }
    config = _description(model, data, asked) | {"method": method, "limit": limit, "n_probed": n_probed}
    parts = {figures["number"]: trial.group for figures, trial in tried}
    return Audit(Result("audit", values, config, seed, time.monotonic() - started), asked.data, parts)


@dataclass(frozen=True, eq=False)
class OfClass:
    """A class: its pictures, its evidence in them, and the groups of what that stands on."""

    label: int
    rows: Labels
    maps: Heatmaps
    groups: list[Group]

    @cached_property
    def usual(self) -> Heatmap:
        """The share of the evidence at each place, on average over pictures."""
        wide = self.maps.double()
        return (wide / wide.sum((1, 2), keepdim=True).clamp_min(1e-12)).mean(0)

    def evidence_in(self, group: Group) -> Scores:
        """The evidence inside the group, for each picture of the class."""
        places, inside = torch.searchsorted(self.rows, group.rows), torch.zeros(len(self.rows)).double()
        return inside.index_add_(0, places, (self.maps[places] * group.masks).double().sum((1, 2)))


def _of_class(asked: Asked, label: int, regions: Masks | None) -> OfClass:
    rows = (asked.data.labels == label).nonzero()[:, 0]
    maps, parts = [], []
    for some in rows.split(asked.batch_size):
        images = asked.images(some)
        maps.append(asked.maps(images, label))
        found = find_pieces(maps[-1], asked.features(images))
        parts.append(replace(found, rows=some[found.rows]))
    pieces = join_pieces(parts)
    numbers, groups = group_pieces(pieces.features, asked.seed), []
    for number in numbers.unique().tolist():
        some = pieces.of(numbers == number)
        groups.append(Group(label, CONTENT, *some.by_picture(asked.data.size)))
    if regions is not None and (has := regions[rows].flatten(1).any(1)).any():
        groups.append(Group(label, REGIONS, rows[has], regions[rows[has]]))
    return OfClass(label, rows, torch.cat(maps), groups)


def _place(one: OfClass) -> Group:
    """The place that has most of the evidence beyond its part of the area."""
    size = (one.maps.shape[-2], one.maps.shape[-1])
    masks = places(size) | {SPOT: strongest_window(one.usual)}
    area = 1 / one.usual.numel()
    name = max(masks, key=lambda name: float(((one.usual - area) * masks[name]).sum()))
    return Group(one.label, name, one.rows, masks[name].expand(len(one.rows), *size))


def places(size: Size) -> dict[str, Mask]:
    """The frame and the corners of pictures of this size."""
    down, across = (torch.minimum(torch.arange(n), torch.arange(n).flip(0)) for n in size)
    rows, cols = torch.broadcast_tensors(down[:, None], across[None, :])
    rim, corner = (max(1, round(share * min(size))) for share in (RIM, CORNER))
    return {"frame": torch.minimum(rows, cols) < rim, "corners": torch.maximum(rows, cols) < corner}


def _figures(one: OfClass, group: Group, trial: Trial) -> Figures:
    """Everything that is measured of a group, but how it compares with others."""
    enough = len(trial.strangers) >= FEWEST
    found: Figures = {
        "class": trial.asked.data.classes[group.label],
        "kind": group.kind,
        "pictures": wilson(len(group.rows), len(one.rows)),
        "evidence": quotient(one.evidence_in(group), one.maps.double().sum((1, 2))),
        "area": float(group.masks.double().mean() * len(group.rows) / len(one.rows)),
        "stands": _stands(group),
        "hiding": trial.hide(),
        "pasting": trial.paste() if enough else None,
    }
    if group.kind == REGIONS:
        hits = pointing_hits(one.maps[torch.searchsorted(one.rows, group.rows)], group.masks)
        found["pointing"] = wilson(round(float(hits.sum())), len(hits))
    elif group.kind != CONTENT and enough:
        found["in_others"] = trial.evidence_in_others()
    return found


def _stands(group: Group) -> dict[str, Any]:
    """The ninth of the picture that holds most of the group, and how much of it that is."""
    rows = F.adaptive_avg_pool2d(group.masks.double(), 3).mean(0)
    share = rows / rows.sum().clamp_min(1e-12)
    return {"place": NINTHS[int(share.argmax())], "share": float(share.max())}


def _judge(groups: Sequence[Figures]) -> None:
    """Say of each group what the strongest groups of other classes turn, and whether it stands out."""
    strongest: dict[str, float] = {}
    for group in groups:
        turned = group["pasting"].turns.value if group["pasting"] else 0.0
        strongest[group["class"]] = max(strongest.get(group["class"], 0.0), turned)
    for group in groups:
        others = [turned for name, turned in strongest.items() if name != group["class"]]
        limit, pasting = limit_of(others), group["pasting"]
        proved = pasting is not None and pasting.more.low > 0 and pasting.turns.low > limit
        group |= {"limit": limit, "others": max(others, default=0.0), "found": proved}


def limit_of(turns: Sequence[float]) -> float:
    """The share of pictures beyond which a group stands out, given what those of other classes turn."""
    middle = median(turns or [0.0])
    spread = median([abs(turned - middle) for turned in turns or [0.0]])
    return min(MOST_TURNS, max(LEAST_TURNS, middle + DEVIATIONS * spread))


def _looked_at(figures: Figures, trial: Trial) -> dict[str, Any]:
    """The figures as plain data; of a group that stands out also whether maps show what was pasted."""
    shown = {"shown": trial.evidence_found()} if figures["found"] else {}
    return plain(figures | shown)


def _of_pictures(asked: Asked, label: int, regions: Masks | None) -> dict[str, Any]:
    """How many pictures of a class were drawn, how many have regions, which share is recognised."""
    own = asked.data.labels == label
    n, hits = int(own.sum()), int((asked.logits[own].argmax(1) == label).sum())
    n_regions = 0 if regions is None else int(regions[own].flatten(1).any(1).sum())
    return {"n": n, "regions": n_regions, "accuracy": plain(wilson(hits, n))}


def _drawn(data: Dataset, limit: int | None, seed: int) -> Labels:
    """At most `limit` pictures of each class."""
    order = torch.randperm(len(data), generator=make_rng(seed, "audit"))
    return torch.cat([order[data.labels[order] == label][:limit] for label in range(len(data.classes))])


def _explainer(model: nn.Module, explain: Any) -> tuple[Explainer, str]:
    """Who draws the maps, and its name."""
    if explain is None:
        if not hasattr(model, "explain"):
            raise NotApplicableError(
                f"{type(model).__name__} has no maps of its own: pass `explain=`, a name of METHODS such as "
                "'grad_cam', or any explainer"
            )
        return as_explainer(model, relative=True if isinstance(model, SITE) else None), "self_explanation"
    if isinstance(explain, str):
        if explain not in METHODS:
            raise ConfigError(f"explain: no method {explain!r}: {did_you_mean(explain, METHODS)}")
        return as_explainer(METHODS[explain](model, **options_of(explain, model)), model), explain
    return as_explainer(explain, model), getattr(explain, "__name__", type(explain).__name__)


def _check(model: nn.Module, data: Dataset, regions: Masks | None) -> None:
    if data.multi_hot is not None:
        raise NotApplicableError(f"{data.title} has several labels a picture: the audit is of one for each")
    if isinstance(model, SITE | BlackBox):
        check_data(model, data)
    if len(data.classes) < 2 or max(data.counts) < FEWEST:
        raise DataError(
            f"{data.title}: expected two classes or more and {FEWEST} pictures of one, got {data.counts}"
        )
    if regions is not None and (regions.dtype != torch.bool or regions.shape != (len(data), *data.size)):
        raise ShapeError(
            f"regions: expected bool of {(len(data), *data.size)}, a mask for each picture, got "
            f"{regions.dtype} of {tuple(regions.shape)}"
        )


def _description(model: nn.Module, data: Dataset, asked: Asked) -> dict[str, Any]:
    """What was examined, as a result keeps it."""
    unknown = {"kind": type(model).__name__, "feature_extractor": "its own", "classes": list(data.classes)}
    shape = {"image_shape": list(data.images.shape[1:])}
    known = to_mapping(model.config) if isinstance(model, SITE | BlackBox) else unknown | shape
    return {
        "model": known,
        "weights": {"model": weights_of(model)},
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "data": data.title,
        "fingerprint": fingerprint(data),
        "n_images": len(asked.data),
    }
