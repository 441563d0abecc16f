"""The steps of the experiment on map-makers without knowledge: a file for each setting, maker and measure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from experiments.bam.object_motion import ObjectMotion
from experiments.cache import step
from experiments.planted import Planted, named_right, planted, true_map
from torchsite.data import Dataset, load_dataset, to_float
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import compare
from torchsite.evaluation.fingerprints import fingerprint
from torchsite.metrics import CONTROL_MAPS, Poses, as_explainer, plain, strokes
from torchsite.model import SITE, load
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import TransformFamily

OWN = "own"
# How many pictures each setting has; a quick run has few, and no photographs.
N_PICTURES: Mapping[str, int] = {"Planted": 200, "Digits": 200, "Photographs": 200}
N_QUICK: Mapping[str, int] = {"Planted": 24, "Digits": 24}
BATCH = 50
N_STAGES = 2
# Curves of six points; one size of mosaics.
FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "mask_k": {"fractions": FRACTIONS},
    "insertion": {"fractions": FRACTIONS},
    "deletion": {"fractions": FRACTIONS},
    "grid_pointing": {"sides": (2,), "confidence": 0.5},  # label smoothing keeps probabilities below 0.9
    "sanity": {"n_stages": N_STAGES},
}

SHIPPED = {
    "Digits": ("mnist", "mnist_sample", "Embedded digits, the shipped model of MNIST."),
    "Photographs": ("cifar10", "cifar10", "CIFAR-10, the shipped model."),
}

MapOf = Callable[[Any, Images, Labels], Heatmaps]


@dataclass(frozen=True, eq=False)
class Setting:
    """Pictures, a model that names them, its own map; the objects' regions and the parts where known."""

    name: str
    about: str
    model: nn.Module
    data: Dataset
    own: MapOf
    family: TransformFamily
    regions: Heatmaps | None = None
    parts: Planted | None = None

    def makers(self) -> dict[str, MapOf]:
        """Those that know nothing, and the model's own."""
        return {name: partial(_without_model, maker) for name, maker in CONTROL_MAPS.items()} | {
            OWN: self.own
        }


def settings_of(counts: Mapping[str, int]) -> Iterator[Setting]:
    """Planted parts, digits and photographs: those that are to have pictures."""
    if "Planted" in counts:
        yield planted_setting(counts["Planted"])
    for name, (model, data, about) in SHIPPED.items():
        if name in counts:
            yield _shipped(name, model, data, about, counts[name])


def planted_setting(n: int, seed: int = 0) -> Setting:
    """Bright bars over tinted scenes, and models of which the true map is known."""
    found = planted(n, seed=seed)
    about = "Bright bars over dark scenes, named by a sum of local terms: the model's own map is the truth."
    regions = found.pictures.regions.float()
    data = named_right(found)
    return Setting(
        "Planted", about, found.objects, data, true_map, TransformFamily(), regions=regions, parts=found
    )


def scores_of(setting: Setting, measures: Sequence[str], place: Path) -> dict[str, dict[str, Any]]:
    """What every measure finds of every maker; nothing where it has no meaning."""
    answering = Cached(setting.model)
    found: dict[str, dict[str, Any]] = {}
    for name, maker in setting.makers().items():
        found[name] = {}
        for metric in measures:
            path = place / f"{setting.name.lower()}-{name}-{metric}.json"
            if metric == "object_motion":
                found[name][metric] = {} if setting.parts is None else _motion(setting, name, maker, path)
                continue
            model = setting.model if metric == "sanity" else answering  # which damages a copy of it
            found[name][metric] = _cell(setting, model, name, _unwrapped(maker), metric, path)
    return found


def _cell(
    setting: Setting, model: nn.Module, name: str, maker: MapOf, metric: str, path: Path
) -> Mapping[str, Any]:
    table = compare(
        model,
        data=setting.data,
        methods={name: maker},
        metrics=[metric],
        family=setting.family,
        n_transforms=1,
        batch_size=BATCH,
        regions=setting.regions,
        metric_options={metric: OPTIONS.get(metric, {})},
        out=path,
    )
    return table.cells[0].values or {}


def _motion(setting: Setting, name: str, maker: MapOf, path: Path) -> Mapping[str, Any]:
    """Object motion, which needs the parts."""
    assert setting.parts is not None
    pictures = setting.parts.pictures
    config = {"pictures": fingerprint(pictures.images, pictures.regions), "maker": name}
    return step(path, config, partial(_moved, setting.parts, maker, setting.family)).values


def _moved(parts: Planted, maker: MapOf, family: TransformFamily) -> dict[str, Any]:
    looks = [as_explainer(maker, model) for model in (parts.objects, parts.scenes)]
    metric = ObjectMotion(*looks, poses=Poses(family, 1))
    for rows in torch.arange(len(parts.pictures)).split(BATCH):
        part = parts.pictures[rows]
        images, bare = to_float(part.images), to_float(part.scenes_only)
        metric.update(images, part.object_labels, part.scene_labels, part.regions, bare, indices=rows)
    values: dict[str, Any] = plain(metric.result())
    return values


def _shipped(name: str, model: str, data: str, about: str, n: int) -> Setting:
    site = load(model)
    assert isinstance(site, SITE)
    pictures = load_dataset(data, "test")[:n]
    regions = strokes(to_float(pictures.images)) if data == "mnist_sample" else None
    return Setting(name, about, site, pictures, _own_map, site.config.family, regions=regions)


def _own_map(model: SITE, images: Images, classes: Labels) -> Heatmaps:
    with torch.no_grad():
        return model.explain(images).heatmaps(classes=classes)


def _unwrapped(maker: MapOf) -> MapOf:
    """The maker on the model itself where it is handed one with a memory."""

    def explain(model: nn.Module, images: Images, classes: Labels) -> Tensor:
        return maker(model.model if isinstance(model, Cached) else model, images, classes)

    return explain


def _without_model(
    maker: Callable[[Images, Labels], Heatmaps], model: nn.Module, images: Images, classes: Labels
) -> Heatmaps:
    return maker(images, classes)
