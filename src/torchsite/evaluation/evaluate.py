"""The scores of one trained model on one data set: accuracy, consistency with its floor, patch deletion …

Command:  torchsite evaluate MODEL --data mnist
Cost:     10,000 MNIST pictures with two transforms each: about a minute on two cores; all measures share the
          passes of a batch, one for the pictures as they are and one for each pose. Measures that probe the
          model (`patch_deletion`, `frame_control`) show it some fifty altered pictures for each, and so see
          the first 200 pictures only.
"""

import time
from collections.abc import Callable
from typing import Any

from torchsite.configs import to_mapping
from torchsite.data import Dataset
from torchsite.evaluation.cached import Cached, cached
from torchsite.evaluation.feed import Regions, describe_regions, feed, known_regions
from torchsite.evaluation.fingerprints import weights_of
from torchsite.metrics import METRICS, Measure, Poses, plain
from torchsite.model import SITE, BlackBox
from torchsite.results import Result

N_PROBED = 200


def evaluate(
    model: SITE | BlackBox,
    data: Dataset,
    *,
    judge: BlackBox | None = None,
    regions: Regions | None = None,
    poses: Poses | None = None,
    batch_size: int = 250,
    limit: int | None = None,
    n_probed: int = N_PROBED,
    name: str = "evaluation",
    watch: Callable[[str, int, int], None] | None = None,
) -> Result:
    """Measure a model; the explained class is the one predicted on the untransformed picture.

    The poses are drawn from the model's own family unless given. `judge` is a black box that classifies
    the prototypes (of models whose features are the pixels). `regions` are where the object is, as in
    `compare`; without them the pointing game is played on MNIST and Fashion-MNIST alone. Measures that probe
    see the first `n_probed` pictures, and are left out if there are none; `watch(label, done, total)` is
    called after every batch.
    """
    started = time.monotonic()
    poses = poses or Poses(model.config.family, n=2)
    data = data if limit is None else data[:limit]
    described = describe_regions(regions, data)
    regions = known_regions(data) if regions is None else regions
    shared = cached(model.eval())
    measures = _measures(model, shared, poses, judge, with_regions=regions is not None)
    measures = {key: measure for key, measure in measures.items() if n_probed or not measure.probes}

    def told(seen: int) -> None:
        shared.forget()
        if watch is not None:
            watch("measuring", seen, len(data))

    feed([*measures.values()], data, batch_size, regions=regions, n_probed=n_probed, told=told)
    values = {name: plain(measure.result()) for name, measure in measures.items()}
    config = {
        "model": to_mapping(model.config),
        "weights": {"model": weights_of(model)},
        "data": data.title,
        "n_images": len(data),
        "n_probed": min(n_probed, len(data)),
        "n_transforms": poses.n,
        "family": to_mapping(poses.family),
    } | described
    return Result(name, values, config, poses.seed, time.monotonic() - started)


def _measures(
    model: SITE | BlackBox, shared: Cached, poses: Poses, judge: BlackBox | None, *, with_regions: bool
) -> dict[str, Measure]:
    """The measures that share passes or probe, if they apply; their classes declare what they need."""
    pixels = isinstance(model, SITE) and model.pixels_are_features
    given: dict[str, Any] = {"judge": judge} if judge is not None and pixels else {}
    return {
        name: kind(
            shared,
            shared,
            poses=poses,
            n_classes=model.config.n_classes,
            **{option: given[option] for option in kind.needs_options},
        )
        for name, kind in METRICS.items()
        if (kind.shares_passes or kind.probes)
        and ((kind.of_model and not kind.of_prototypes) or isinstance(model, SITE))
        and (with_regions or not kind.needs_regions)
        and given.keys() >= set(kind.needs_options)
    }
