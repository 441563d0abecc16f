"""Which training pictures stand for the prototypes of a model: a gallery of them; the model is only asked.

    model.gallery = make_gallery(model, data, rng=make_rng(0, "gallery"))
    model.save_pretrained("runs/birds/model")

Of each class, some pictures are candidates. Exemplars are chosen one after the other, each so that the
prototypes of other training pictures, upright and in poses, are as well met as one more exemplar can do:

    E ← E ∪ {argmax_e  Σ_p max(cos(w_p, z_e), max over E)}

Where the pictures must not be handed on, a decoder draws them from their features (`reconstruction.py`).
"""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.data import Dataset, to_float
from torchsite.errors import NotApplicableError
from torchsite.model import SITE, BlackBox
from torchsite.model.gallery import Gallery, as_keys, likeness, reach_of
from torchsite.model.gallery_files import save_gallery
from torchsite.model.pretrained import WEIGHTS_FILE
from torchsite.modes import evaluating
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, Pixels, Prototypes
from torchsite.training.batches import look_up
from torchsite.training.reconstruction import MOST_SIDE, STEPS, small, train_decoder

PER_CLASS = 24
MOST_BYTES = 3_000_000  # of all exemplars: beyond it there are fewer
N_CANDIDATES = 200
N_PROBES = 64
N_ASKED = 600  # candidates of all classes, where it must be quick
BATCH = 64


@torch.no_grad()
def make_gallery(
    model: SITE,
    data: Dataset,
    *,
    rng: Rng,
    per_class: int | None = None,
    n_candidates: int = N_CANDIDATES,
    n_probes: int = N_PROBES,
    reconstructed: bool = False,
    decoder_steps: int = STEPS,
) -> Gallery:
    """Exemplars for the prototypes of a model of learned features; the model stays as it is.

    `data` are its training pictures. With `reconstructed` the exemplars are drawn from their features.
    """
    if model.pixels_are_features:
        raise NotApplicableError("the prototypes of this model are pictures already: it needs no gallery")
    n_wanted = per_class or _affordable(model)
    with evaluating(model):
        probes = _probes(model, data, n_probes, rng)
        parts = [
            _of_class(model, data, label, probes[:, label], n_wanted, n_candidates, rng)
            for label in range(len(data.classes))
        ]
    rows, keys = torch.cat([rows for rows, _ in parts]), torch.cat([keys for _, keys in parts])
    labels = torch.cat([torch.full((len(some),), label) for label, (some, _) in enumerate(parts)])
    keys = keys.half().cpu()
    if reconstructed:
        return Gallery(
            _reconstructed(model, data, rows, decoder_steps, rng), labels, keys, data.title, "reconstructions"
        )
    return Gallery(as_bytes(small(to_float(data.images[rows]))), labels, keys, data.title)


def add_gallery(model: SITE | BlackBox, data: Dataset, folder: Path, seed: int = 0) -> Gallery | None:
    """Put a gallery beside the weights that were saved in `folder`, if the model needs one: quickly."""
    if not isinstance(model, SITE) or model.pixels_are_features:
        return None
    n_candidates = max(8, min(N_CANDIDATES, N_ASKED // len(data.classes)))
    model.gallery = make_gallery(model, data, rng=make_rng(seed, "gallery"), n_candidates=n_candidates)
    save_gallery(model.gallery, folder / WEIGHTS_FILE)
    return model.gallery


def choose(scores: Float[Tensor, "probes candidates"], n: int) -> Labels:
    """The candidates that together meet the probes best, greedily: facility location."""
    met = scores.new_full((len(scores), 1), -1.0)
    chosen: list[int] = []
    for _ in range(min(n, scores.shape[1])):
        gains = torch.maximum(scores, met).sum(0)
        gains[chosen] = -torch.inf
        chosen.append(int(gains.argmax()))
        met = torch.maximum(met, scores[:, chosen[-1:]])
    return torch.tensor(chosen)


def _of_class(
    model: SITE, data: Dataset, label: int, probes: Tensor, n: int, n_candidates: int, rng: Rng
) -> tuple[Labels, Tensor]:
    """The rows of the exemplars of one class, and their keys."""
    own = data.labels == label if data.marks is None else data.marks[:, label]
    rows = own.nonzero()[:, 0]
    rows = rows[torch.randperm(len(rows), generator=rng)[:n_candidates]]
    like = next(model.parameters())
    keys = torch.cat([as_keys(model.features(look_up(data, part, like)[0])) for part in rows.split(BATCH)])
    chosen = choose(likeness(as_keys(probes), keys, reach_of(keys)).amax(2), n)
    return rows[chosen], keys[chosen.to(keys.device)]


def _probes(model: SITE, data: Dataset, n: int, rng: Rng) -> Prototypes:
    """Prototypes, as the model answers, for some training pictures: each as it is and in a pose."""
    rows = torch.randperm(len(data), generator=rng)[:n]
    images, _ = look_up(data, rows, next(model.parameters()))
    posed = model.config.family.sample(len(rows), rng=rng).to(images.device)(images)
    return torch.cat([model.answer(part).prototypes for part in torch.cat([images, posed]).split(BATCH)])


def _reconstructed(model: SITE, data: Dataset, rows: Labels, steps: int, rng: Rng) -> Pixels:
    """The exemplars as a decoder draws them that has not seen them."""
    others = torch.ones(len(data), dtype=torch.bool)
    others[rows] = False
    decoder = train_decoder(model, data[others], rng=rng, steps=steps)
    like = next(model.parameters())
    with evaluating(model):
        features = torch.cat([model.features(look_up(data, part, like)[0]) for part in rows.split(BATCH)])
    return as_bytes(decoder(features.cpu().float()))


def as_bytes(images: Images) -> Pixels:
    """Pictures in [0, 1] as bytes."""
    return (images * 255).round().clamp(0, 255).to(torch.uint8).cpu()


def _affordable(model: SITE) -> int:
    """How many exemplars a class may have so that all of them stay small."""
    channels, height, width = model.config.image_shape
    shrink = min(1.0, MOST_SIDE / max(height, width))
    key = as_keys(torch.zeros(1, *model.feature_shape)).numel()
    each = channels * round(height * shrink) * round(width * shrink) + 2 * key
    return max(1, min(PER_CLASS, MOST_BYTES // (each * model.config.n_classes)))
