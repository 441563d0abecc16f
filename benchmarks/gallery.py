"""Do the training pictures that prototypes are shown by say what the prototypes say?

    python benchmarks/gallery.py [--model cifar10] [--data cifar10] [--judge cifar10_black_box] [--out FILE]

On the last training pictures, of which hardly one is an exemplar, upright and posed:

| figure | what | null |
|---|---|---|
| class | the exemplar that a prototype fits best among those of *all* classes is of its class | 1/classes |
| named | an independent judge gives the picture that is shown the class of its prototype | 1/classes |
| place | how far an exemplar is from following a shifted picture, in sides of it | those that stay |

`results/gallery.json` is such a run.
"""

import argparse
import time

import torch

from torchsite.data import load_dataset, to_float
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, BlackBox, load
from torchsite.model.gallery import Gallery, as_keys, likeness
from torchsite.randomness import make_rng, uniform
from torchsite.results import Result
from torchsite.shapes import Images, Prototypes
from torchsite.transforms import AffineTransform


@torch.no_grad()
def measure(model: SITE, judge: BlackBox, images: Images, seed: int) -> dict[str, object]:
    """All figures."""
    assert model.gallery is not None
    gallery, n, rng = model.gallery, len(images), make_rng(seed, "gallery")
    shifts = torch.stack([uniform(-0.25, 0.25, n, rng) for _ in range(2)], dim=1)
    shown = {
        "upright": images,
        "posed": model.config.family.sample(n, rng=rng)(images),
        "shifted": AffineTransform.shift(*shifts.T)(images),
    }
    prototypes = {name: model.explain(pictures).prototypes for name, pictures in shown.items()}
    places = {
        name: gallery.nearest(found).shifts / gallery.keys.shape[-1] for name, found in prototypes.items()
    }
    moved = (places["shifted"] - places["upright"]).flip(-1)  # right, down
    kept = gallery.nearest(prototypes["upright"]).exemplars == gallery.nearest(prototypes["posed"]).exemplars
    return {
        "class": {name: free_class(gallery, prototypes[name]) for name in ("upright", "posed")},
        "named": {name: named(gallery, prototypes[name], judge) for name in ("upright", "posed")},
        "place": {
            "error": float((moved - shifts[:, None]).norm(dim=2).mean()),
            "staying": float(shifts.norm(dim=1).mean()),
        },
        "same exemplar in a pose": float(kept.float().mean()),
        "exemplars in use": len(gallery.nearest(prototypes["upright"]).exemplars.unique()),
    }


def free_class(gallery: Gallery, prototypes: Prototypes) -> float:
    """The share of prototypes whose best exemplar among all is of their class."""
    scores = likeness(as_keys(prototypes.flatten(0, 1)), gallery.keys.float(), gallery.reach).amax(2)
    labels = torch.arange(prototypes.shape[1]).repeat(len(prototypes))
    return float((gallery.labels[scores.argmax(1)] == labels).float().mean())


def named(gallery: Gallery, prototypes: Prototypes, judge: BlackBox) -> float:
    """The share of pictures shown that the judge calls by the class of their prototype."""
    pictures = torch.cat([gallery.show(part).flatten(0, 1) for part in prototypes.split(32)])
    said = torch.cat([judge(part).argmax(1) for part in pictures.split(250)])
    return float((said == torch.arange(prototypes.shape[1]).repeat(len(prototypes))).float().mean())


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="cifar10")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--judge", default="cifar10_black_box")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out")
    args = parser.parse_args()
    start = time.perf_counter()
    model, judge = load(args.model), load(args.judge)
    assert isinstance(model, SITE)
    assert isinstance(judge, BlackBox)
    data = load_dataset(args.data, "train")
    values = measure(model, judge, to_float(data.images[-args.limit :]), args.seed)
    assert model.gallery is not None
    about = {"drawn": model.gallery.drawn, "exemplars": len(model.gallery), **vars(args)}
    about["weights"] = {args.model: weights_of(model), args.judge: weights_of(judge)}
    result = Result("gallery", values, about, args.seed, time.perf_counter() - start)
    print(result.values)
    if args.out:
        result.save(args.out)


if __name__ == "__main__":
    main()
