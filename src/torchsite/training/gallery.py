"""Choose the training pictures that illustrate the prototypes of a model: a gallery; no weight changes.

    model.gallery = make_gallery(model, data, rng=make_rng(0, "gallery"))
    model.save_pretrained("runs/birds/model")

Of each class, some pictures are candidates. Exemplars are chosen one after the other, each so that the
prototypes of other training pictures, upright and in poses, gain most in similarity to their nearest one:

    E ← E ∪ {argmax_e  Σ_p max(cos(w_p, z_e), max over E)}

The model itself must classify what is shown of an exemplar correctly.
Where the pictures must not be handed on, a decoder draws them from their features (`reconstruction.py`).
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from torchsite.data import Dataset
from torchsite.errors import NotApplicableError
from torchsite.model import SITE, BlackBox
from torchsite.model.gallery import Drawn, Gallery, Keys, as_keys, likeness, reach_of, save_gallery
from torchsite.model.pretrained import WEIGHTS_FILE
from torchsite.modes import evaluating
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Features, Labels, Pixels, Prototypes
from torchsite.training.batches import look_up
from torchsite.training.reconstruction import MOST_SIDE, STEPS, Decoder, small, train_decoder

PER_CLASS = 12
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
    n_wanted, n_classes = per_class or _affordable(model), len(data.classes)
    candidates = [_candidates(data, label, n_candidates, rng) for label in range(n_classes)]
    decoder = _decoder(model, data, torch.cat(candidates), decoder_steps, rng) if reconstructed else None
    with evaluating(model):
        probes = _probes(model, data, n_probes, rng)
        found = [
            _exemplars(model, data, rows, label, probes[:, label], n_wanted, decoder)
            for label, rows in enumerate(candidates)
        ]
    pictures, keys = (torch.cat(part) for part in zip(*found, strict=True))
    labels = torch.cat([torch.full((len(some),), label) for label, (some, _) in enumerate(found)])
    drawn: Drawn = "reconstructions" if reconstructed else "photographs"
    return Gallery(pictures, labels, keys, data.title, drawn)


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


def _candidates(data: Dataset, label: int, n: int, rng: Rng) -> Labels:
    rows = (data.labels == label if data.multi_hot is None else data.multi_hot[:, label]).nonzero()[:, 0]
    return rows[torch.randperm(len(rows), generator=rng)[:n]]


def _exemplars(
    model: SITE, data: Dataset, rows: Labels, label: int, probes: Features, n: int, decoder: Decoder | None
) -> tuple[Pixels, Keys]:
    """The exemplars of a class, of these candidates, and their keys.

    Candidates that the model does not name as they are shown are left out, if the others are enough.
    """
    found = [_look(model, data, part, label, decoder) for part in rows.split(BATCH)]
    pictures, keys, named = (torch.cat(part) for part in zip(*found, strict=True))
    if int(named.sum()) >= n:
        pictures, keys = pictures[named], keys[named]
    chosen = choose(likeness(as_keys(probes).cpu().float(), keys.float(), reach_of(keys)).amax(2), n)
    return pictures[chosen], keys[chosen]


def _look(
    model: SITE, data: Dataset, rows: Labels, label: int, decoder: Decoder | None
) -> tuple[Pixels, Keys, Bool[Tensor, " batch"]]:
    """Candidates as they would be shown, their keys, and whether the model names what is shown."""
    images, _ = look_up(data, rows, next(model.parameters()))
    run = model.answer(images)
    keys, shown = as_keys(run.features).half().cpu(), images
    if decoder is not None:
        shown = decoder(run.features.cpu().float()).to(images)
        run = model.answer(F.interpolate(shown, images.shape[-2:]))
    named = run.logits[:, label] > 0 if model.config.multi_label else run.logits.argmax(1) == label
    return (small(shown) * 255).round().clamp(0, 255).to(torch.uint8).cpu(), keys, named.cpu()


def _probes(model: SITE, data: Dataset, n: int, rng: Rng) -> Prototypes:
    """The prototypes for some training pictures, each as it is and in a pose."""
    rows = torch.randperm(len(data), generator=rng)[:n]
    images, _ = look_up(data, rows, next(model.parameters()))
    posed = model.config.family.sample(len(rows), rng=rng).to(images.device)(images)
    return torch.cat([model.answer(part).prototypes for part in torch.cat([images, posed]).split(BATCH)])


def _decoder(model: SITE, data: Dataset, candidates: Labels, steps: int, rng: Rng) -> Decoder:
    """A decoder that has not seen the candidates."""
    others = torch.ones(len(data), dtype=torch.bool)
    others[candidates] = False
    return train_decoder(model, data[others if bool(others.any()) else ~others], rng=rng, steps=steps)


def _affordable(model: SITE) -> int:
    """How many exemplars a class may have so that all of them stay small."""
    channels, height, width = model.config.image_shape
    shrink = min(1.0, MOST_SIDE / max(height, width))
    key = as_keys(torch.zeros(1, *model.feature_shape)).numel()
    each = channels * round(height * shrink) * round(width * shrink) + 2 * key
    return max(1, min(PER_CLASS, MOST_BYTES // (each * model.config.n_classes)))
