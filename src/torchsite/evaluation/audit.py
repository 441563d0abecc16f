"""The audit: what a classifier relies on, in groups of like evidence, each tried by hiding and by pasting.

Command:  torchsite audit MODEL DATA
Cost:     a map of each picture, six answers for each picture that a group is hidden in or pasted into:
          60 pictures of each class of CIFAR-10 with the model's own maps, half a minute of two cores.

Evidence for a class is looked at in its own pictures, also in those that are not recognised, in groups
(`audit_groups.py`). A group stands out if, pasted, it turns more pictures into its class than random parts of
its pictures do, and
    turns > min(½, max(0.1, median + 3 · 1.4826 · MAD))       with the lower end of its interval,
the median over the other classes of what their strongest groups turn. Every figure has its interval: shares
of pictures Wilson's, means and shares of evidence a bootstrap over pictures. Fails where several classes may
be true of a picture, and without maps.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import nn

from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.data import Dataset, load_dataset
from torchsite.data.dataset import check_regions
from torchsite.data.margins import surrounded
from torchsite.errors import ConfigError, DataError, NotApplicableError, did_you_mean
from torchsite.evaluation.answers import wilson
from torchsite.evaluation.audit_groups import (
    CONTENT,
    REGIONS,
    SPOT,
    OfClass,
    box_of,
    find_again,
    of_class,
    place_of,
    stands,
)
from torchsite.evaluation.examine import check_data
from torchsite.evaluation.fingerprints import weights_of
from torchsite.evaluation.methods import options_of
from torchsite.evaluation.probes import Asked, Group, Trial, quotient
from torchsite.evaluation.verdicts import verdicts
from torchsite.metrics import Explainer, as_explainer, plain
from torchsite.metrics.pointing_game import pointing_hits
from torchsite.model import SITE, BlackBox
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.shapes import Labels, Masks
from torchsite.training.run_folder import fingerprint

Figures = dict[str, Any]
Watch = Callable[[str, int, int], None]

FEWEST = 8  # pictures of a class, or of a group, of which anything is said
LEAST_TURNS, MOST_TURNS, DEVIATIONS = 0.1, 0.5, 3 * 1.4826


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found: the numbers as a result, what was asked, and where each group (by number) stands."""

    result: Result
    asked: Asked
    parts: Mapping[int, Group]

    @property
    def pictures(self) -> Dataset:
        """The pictures that were drawn."""
        return self.asked.data

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

    def regions_in(self, data: Dataset, number: int) -> Masks:
        """Where the group of this number stands in other pictures, such as those of the training."""
        return regions_of_group(self.asked.explainer, self.result, data, number)


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
    explainer, method = explainer_of(model, explain)
    rows = _drawn(data, limit, seed)
    asked = Asked(explainer, data[rows], batch_size, seed)
    regions = None if regions is None else regions[rows]
    labels = [label for label, n in enumerate(asked.data.counts) if n >= FEWEST]
    found: list[OfClass] = []
    for done, label in enumerate(labels):
        if watch is not None:
            watch(f"maps of {data.classes[label]}", done, 2 * len(labels))
        found.append(of_class(asked, label, regions))
    tried: list[tuple[Figures, Trial]] = []
    for done, one in enumerate(found):
        if watch is not None:
            watch(f"trying {data.classes[one.label]}", len(labels) + done, 2 * len(labels))
        for centre, group in enumerate((*one.groups, place_of(one))):
            if len(group.rows) >= FEWEST:
                trial = Trial(asked, group.first(n_probed), asked.strangers(group.label, n_probed))
                named = {"number": len(tried) + 1} | ({"centre": centre} if group.kind == CONTENT else {})
                tried.append((named | _figures(one, group, trial), trial))
    _judge([figures for figures, _ in tried])
    values = {
        "classes": {name: _of_pictures(asked, label, regions) for label, name in enumerate(data.classes)},
        "groups": [_looked_at(figures, trial) for figures, trial in tried],
        "centres": {data.classes[one.label]: one.plain_centres() for one in found},
    }
    config = _description(model, data, asked) | {"method": method, "limit": limit, "n_probed": n_probed}
    parts = {figures["number"]: trial.group for figures, trial in tried}
    return Audit(Result("audit", values, config, seed, time.monotonic() - started), asked, parts)


def _figures(one: OfClass, group: Group, trial: Trial) -> Figures:
    """Everything that is measured of a group, but how it compares with others."""
    enough = len(trial.strangers) >= FEWEST
    found: Figures = {
        "class": trial.asked.data.classes[group.label],
        "kind": group.kind,
        "pictures": wilson(len(group.rows), len(one.rows)),
        "evidence": quotient(one.evidence_in(group), one.maps.double().sum((1, 2))),
        "area": float(group.masks.double().mean() * len(group.rows) / len(one.rows)),
        "stands": stands(group),
        "hiding": trial.hide(),
        "pasting": trial.paste() if enough else None,
    }
    if group.kind == REGIONS:
        hits = pointing_hits(one.maps[torch.searchsorted(one.rows, group.rows)], group.masks)
        found["pointing"] = wilson(round(float(hits.sum())), len(hits))
    elif group.kind == SPOT:
        found["box"] = box_of(group.masks[0])
    if group.kind not in (CONTENT, REGIONS) and enough:
        found["in_others"] = trial.evidence_in_others()
    return found


def regions_of_group(explainer: Explainer, result: Result, data: Dataset, number: int) -> Masks:
    """Masks of pictures as they are kept: where a group stands by the same maps of the same model."""
    groups = {group["number"]: group for group in result.values["groups"]}
    if number not in groups:
        raise ConfigError(f"the audit has groups 1 to {len(groups)}, none of the number {number}")
    if groups[number]["class"] not in data.classes:
        raise DataError(f"group {number} is of “{groups[number]['class']}”, which {data.title} has not")
    centres = result.values["centres"][groups[number]["class"]]
    found = find_again(Asked(explainer, data), groups[number], centres)
    return surrounded(found, (data.kept.shape[-2], data.kept.shape[-1]))


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


def strongest_first(groups: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Groups that stand out first, then by what they turn."""
    turned = {g["number"]: g["pasting"]["turns"]["value"] if g["pasting"] else 0.0 for g in groups}
    return sorted(groups, key=lambda g: (not g["found"], -turned[g["number"]], g["number"]))


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


def explainer_of(model: nn.Module, explain: Any) -> tuple[Explainer, str]:
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
    if regions is not None:
        check_regions(regions, data.images)


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
