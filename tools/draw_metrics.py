"""Draw the pictures of docs/metrics.md: every measure on digits, with a classifier that fits on one line.

Command:  python tools/draw_metrics.py [--out docs/pictures]          (about 20 seconds on one core)

The classifier is ridge regression on the pixels of `mnist_sample`, whose explanation w_c ⊙ x is complete by
construction; the other maps are synthetic. Maps that pass a measure and maps that fail it are of planted
pictures (`passing_maps.py`). Nothing here is a result about SITE.
"""

import argparse
import copy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

sys.path.append(str(Path(__file__).parents[1]))  # where the experiments are

from passing_maps import PASSING
from torch import Tensor, nn

from experiments.bam.metric import region_importance
from torchsite.data import load_dataset
from torchsite.data.dataset import to_float
from torchsite.metrics import (
    Completeness,
    Deletion,
    Estimate,
    Insertion,
    MaskK,
    Poses,
    PredictionEquivariance,
    PrototypeRecognition,
    Sanity,
    as_explainer,
    self_consistency,
    strokes,
)
from torchsite.metrics.pointing_game import dilate
from torchsite.metrics.ranking import blanked, least_important_first
from torchsite.metrics.sanity import randomise
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, TransformFamily

N = 200
HEAT = "magma"
GENTLE = TransformFamily(max_rotation=25, max_shift=0.06)

Points = list[Estimate]


class Reasons:
    """What a self-explaining model returns."""

    def __init__(self, prototypes: Tensor, images: Tensor) -> None:
        self.prototypes = prototypes
        self.maps = (prototypes * images[:, None]).sum(2)
        self.logits = self.maps.sum((-2, -1))

    def heatmaps(self, size: object = None, classes: Tensor | None = None) -> Tensor:
        """The maps of all classes, or of one class per picture."""
        return self.maps if classes is None else self.maps[torch.arange(len(self.maps)), classes]


class Ridge(nn.Module):
    """Linear classification of pixels in closed form: logit_c = Σ w_c ⊙ x."""

    def __init__(self, images: Tensor, labels: Tensor, penalty: float = 50.0) -> None:
        super().__init__()
        x = images.flatten(1).double()
        wanted = nn.functional.one_hot(labels, 10).double() * 2 - 1
        weights = torch.linalg.solve(x.T @ x + penalty * torch.eye(x.shape[1]), x.T @ wanted)
        self.weights = nn.Parameter(5 * weights.T.reshape(10, *images.shape[1:]).float())

    def explain(self, images: Tensor) -> Reasons:
        """The same weights for every picture."""
        return Reasons(self.weights.expand(len(images), *self.weights.shape), images)

    def forward(self, images: Tensor) -> Tensor:
        """The sums of the maps."""
        return self.explain(images).logits


def drawn_self_consistency(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """A turned digit under four explainers, and the four figures of each."""
    rng = make_rng(0)
    bump = torch.exp(-((torch.arange(28.0) - 13.5) ** 2) / 60)
    explainers: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
        "the picture itself": lambda x, c: x[:, 0],
        "w ⊙ x": as_explainer(model),
        "fixed Gaussian": lambda x, c: (bump[:, None] * bump[None]).expand(len(x), 28, 28),
        "independent noise": lambda x, c: torch.rand(len(x), 28, 28, generator=rng),
        "constant": lambda x, c: torch.ones_like(x[:, 0]),
    }
    turn = AffineTransform.rotation(50.0)
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    axes = figure.subplots(len(explainers), 4, width_ratios=[1, 1, 1, 3.2])
    one, its_class = images[2:3], labels[2:3]
    mask = turn.mask((28, 28))[0]
    for row, (name, explain) in zip(axes, explainers.items(), strict=True):
        maps = [explain(one, its_class), turn(explain(one, its_class)), explain(turn(one), its_class)]
        for axis, shown, title in zip(row, maps, ("I(x)", "T(I(x))", "I(T x)"), strict=False):
            _picture(axis, shown[0].where(mask, torch.nan) if title != "I(x)" else shown[0], title, HEAT)
        found = self_consistency(explain, images, labels, rng=make_rng(1), n_transforms=4)
        for k, figure_name in enumerate(("raw", "floor", "calibrated", "centred")):
            value, low, high = getattr(found, figure_name)
            row[3].barh(k, value, xerr=[[value - low], [high - value]], color=f"C{k}")
            row[3].text(max(value, 0) + 0.03, k, f"{figure_name} {value:.2f}", va="center", fontsize=8)
        row[3].set(xlim=(-0.1, 1.35), yticks=[], title=name)
        row[3].invert_yaxis()
    return figure


def drawn_mask_k(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """A digit that loses its least important pixels and is then turned; accuracy and log-odds."""
    metric = MaskK(model, poses=Poses(GENTLE, n=4), n_resamples=200)
    metric.update(images, labels)
    found = metric.result()
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    axes = figure.subplot_mosaic("abcXXYY\ndefXXYY")
    one, turn = images[2:3], AffineTransform.rotation(25.0)
    order = least_important_first(as_explainer(model)(one, labels[2:3]), torch.tensor([2]), 0)
    for column, share in zip("abc", (0.0, 0.5, 0.9), strict=True):
        masked = blanked(one, order, round(784 * share), torch.full_like(one, 0.5))
        _picture(axes[column], masked[0, 0], f"{share:.0%} blanked")
        _picture(axes["def"["abc".index(column)]], turn(masked)[0, 0], "then turned")
    for key, name, score in (("X", "accuracy", found.accuracy), ("Y", "log-odds", found.log_odds)):
        _curves(axes[key], found.fractions, score.curve, score.random_curve, name)
    return figure


def drawn_insertion_deletion(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """The probability as pixels come and go."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    classes = model(images).argmax(1)
    for axis, kind in zip(figure.subplots(1, 2), (Insertion, Deletion), strict=True):
        metric = kind(model, n_resamples=200)
        metric.update(images, labels, classes=classes)
        found = metric.result()
        _curves(axis, found.fractions, found.curve, found.random_curve, kind.__name__.lower())
        axis.set_xlabel("fraction of pixels")
    return figure


def drawn_pointing(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """The strokes, what lies within τ of them, and where two maps point."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    one, its_class = images[2:3], labels[2:3]
    own = as_explainer(model)(one, its_class)[0]
    weights = model.weights[its_class[0], 0].detach()
    for tolerance, axis in enumerate(figure.subplots(1, 4)):
        near = dilate(strokes(one) > 0.5, tolerance)[0]
        area = float(near.double().mean())
        _picture(axis, 0.6 * one[0, 0] + 0.4 * near, f"τ = {tolerance}: {area:.0%} of the area")
        for maps, mark, name in ((own, "o", "max of w ⊙ x"), (weights, "X", "max of w")):
            row, column = divmod(int(maps.argmax()), 28)
            axis.plot(column, row, mark, ms=9, mec="white", label=name)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def drawn_completeness(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """The sum of the map against the logit, for a complete map and for one that is not."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    maps: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
        "w ⊙ x": as_explainer(model),
        "w, the gradient": _gradient(model),
    }
    logits = model(images).gather(1, labels[:, None])[:, 0].detach()
    for axis, (name, explain) in zip(figure.subplots(1, 2), maps.items(), strict=True):
        metric = Completeness(explain, model, n_resamples=50)
        metric.update(images, labels)
        axis.scatter(logits, explain(images, labels).sum((1, 2)).detach(), s=6)
        axis.axline((0, 0), slope=1, color="grey", lw=0.8)
        axis.set(xlabel="logit", ylabel="Σ heatmap", title=f"{name}: worst {metric.result().worst:.0e}")
    return figure


def drawn_sanity(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """Maps before and after the weights were permuted."""
    damaged = copy.deepcopy(model)
    randomise(damaged, [""], make_rng(0))
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    one, its_class = images[2:3], labels[2:3]
    functions: Mapping[str, Callable[[Ridge, Tensor, Tensor], Tensor]] = {
        "gradient": lambda m, x, c: m.weights[c, 0].detach(),
        "w ⊙ x": lambda m, x, c: m.explain(x).heatmaps(classes=c).detach(),
        "the picture": lambda m, x, c: x[:, 0],
    }
    for row, (name, function) in zip(figure.subplots(3, 2), functions.items(), strict=True):
        metric = Sanity(function, model, n_resamples=100)
        metric.update(images, labels)
        found = metric.result()
        before, after = function(model, one, its_class), function(damaged, one, its_class)
        _picture(row[0], before[0], f"{name}, trained", HEAT)
        title = f"permuted: ρ = {found.score.value:.2f}, floor {found.floor.value:.2f}"
        _picture(row[1], after[0], title, HEAT)
    return figure


def drawn_prediction_equivariance(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """The share of predictions that survive, against the angle and the shift."""
    metric = PredictionEquivariance(
        model, poses=Poses(TransformFamily(max_shift=0.15), n=16), n_resamples=200
    )
    metric.update(images, labels)
    found = metric.result()
    figure = Figure(figsize=(8, 3), layout="constrained")
    units = {"angle": "degrees turned", "shift": "share of the side shifted"}
    for axis, (name, unit) in zip(figure.subplots(1, 2, sharey=True), units.items(), strict=True):
        curve = found.curves[name]
        centres = [(a + b) / 2 for a, b in zip(curve.edges, curve.edges[1:], strict=False)]
        for figure_name, colour in (("share", "C0"), ("floor", "C1")):
            points = [getattr(score, figure_name) for score in curve.scores]
            _band(axis, centres, points, figure_name, colour)
        axis.set(xlabel=unit, ylim=(0, 1))
        axis.legend()
    return figure


def drawn_prototypes(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """Class means as prototypes, and what the judge calls them."""
    means = torch.stack([images[labels == c].mean(0) for c in range(10)])
    prototypes = Ridge(images, labels)
    blur = torch.linspace(0, 1, 10)[:, None, None, None]
    prototypes.weights.data.copy_(means.lerp(means.mean(0, keepdim=True), blur))
    metric = PrototypeRecognition(prototypes, judge=model, n_classes=10, n_resamples=50)
    metric.update(images[:4], labels[:4])
    figure = Figure(figsize=(9, 1.9), layout="constrained")
    named = model(prototypes.weights.data).argmax(1).tolist()
    for c, axis in enumerate(figure.subplots(1, 10)):
        _picture(axis, prototypes.weights.data[c, 0], f"“{named[c]}”")
        axis.title.set_color("C2" if named[c] == c else "C3")
    share = metric.result().untransformed.value
    figure.suptitle(
        f"prototypes of 0 … 9, from class mean to mean of all: {share:.0%} recognised, floor 10 %"
    )
    return figure


def drawn_bam(model: Ridge, images: Tensor, labels: Tensor) -> Figure:
    """An object on a scene: the map, what is left of it after clipping, and its mean in the region."""
    rng = make_rng(5)
    scene = nn.functional.interpolate(torch.rand(1, 1, 8, 8, generator=rng), size=56, mode="bilinear")
    region = torch.zeros(1, 56, 56, dtype=torch.bool)
    region[:, 20:48, 24:52] = True
    picture = 0.5 * scene
    picture[:, :, 20:48, 24:52] = images[2]
    of_object = 0.1 * torch.rand(1, 56, 56, generator=rng) + nn.functional.pad(images[2:3, 0], (24, 4, 20, 8))
    of_scene = scene[0] * ~region + 0.1 * torch.rand(1, 56, 56, generator=rng)
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    axes = figure.subplots(1, 3)
    _picture(axes[0], picture[0, 0], "object on scene")
    contrast = []
    for axis, maps, name in zip(axes[1:], (of_object, of_scene), ("f_obj", "f_scene"), strict=True):
        contrast.append(float(region_importance(maps, region)))
        _picture(axis, maps[0], f"A({name}) = {contrast[-1]:.2f}", HEAT)
        axis.add_patch(Rectangle((23.5, 19.5), 28, 28, fill=False, ec="white"))
    figure.suptitle(f"model contrast {contrast[0] - contrast[1]:.2f}")
    return figure


def _gradient(model: Ridge) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda images, classes: model.weights[classes, 0].detach()


def _picture(axis: Axes, shown: Tensor, title: str, colours: str = "gray") -> None:
    finite = shown[shown.isfinite()]
    axis.imshow(shown.numpy(), cmap=colours, vmin=min(0.0, float(finite.min())), vmax=float(finite.max()))
    axis.set_title(title, fontsize=9)
    axis.set_axis_off()


def _curves(axis: Axes, at: list[float], curve: Points, random_curve: Points, name: str) -> None:
    _band(axis, at, curve, "by the map", "C0")
    _band(axis, at, random_curve, "at random", "C1")
    axis.set(title=name, xlabel="fraction blanked")
    axis.legend(fontsize=8)


def _band(axis: Axes, at: list[float], points: Points, label: str, colour: str) -> None:
    axis.plot(at, [p.value for p in points], "o-", ms=3, label=label, color=colour)
    axis.fill_between(at, [p.low for p in points], [p.high for p in points], alpha=0.2, color=colour)


PICTURES: Mapping[str, Callable[[Ridge, Tensor, Tensor], Figure]] = {
    "self-consistency": drawn_self_consistency,
    "mask-k": drawn_mask_k,
    "insertion-deletion": drawn_insertion_deletion,
    "pointing-game": drawn_pointing,
    "completeness": drawn_completeness,
    "sanity": drawn_sanity,
    "prediction-equivariance": drawn_prediction_equivariance,
    "prototypes": drawn_prototypes,
    "bam": drawn_bam,
}


def main() -> None:
    """Fit the classifier, draw every picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    train, test = (load_dataset("mnist_sample", split=split) for split in ("train", "test"))
    seen = to_float(train.images)
    moved = GENTLE.sample(len(seen), rng=make_rng(0))(seen)
    model = Ridge(torch.cat([seen, moved]), train.labels.repeat(2))
    images, labels = to_float(test.images[:N]), test.labels[:N]
    for name, draw in PICTURES.items():
        draw(model, images, labels).savefig(folder / f"metrics-{name}.png", dpi=100)
    for name, draw_one in PASSING.items():
        draw_one().savefig(folder / f"metrics-{name}.png", dpi=80)


if __name__ == "__main__":
    main()
