"""The page of results: what is claimed, our number, the paper's, what knows nothing gets, and the verdict.

A claim is a row of data: the result that speaks of it, where in it our number and its null stand, and the
number of the paper. A verdict is drawn from the interval: *exceeded* lies above the paper's number as a
whole, *reproduced* reaches it or comes within a hundredth of it. A claim of ours, of which the paper has no
number, *holds* if the interval lies above its null by more than both intervals. A row is left out where its
result is missing, and has no number where it is of other weights than those that ship.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.provenance import Fingerprints, of_shipped, stated
from experiments.registry import EXPERIMENTS, Experiment
from torchsite.report.format import NOTHING, bounds, estimate, look_up, markdown_table, number
from torchsite.results import Result

NEAR = 0.01
HEADER = ("claim", "ours", "the paper's", "null", "verdict", "weights", "tables")
OWN, RIVAL = ("site", "self_explanation"), ("black_box", "grad_cam")

Row = tuple[str, str, str]  # of a table of methods: model, method, measure


@dataclass(frozen=True)
class Claim:
    """One row: the words, the result, the paths to our number and to its null, the paper's number."""

    words: str
    result: str
    path: tuple[str, ...]
    null: float | tuple[str, ...] | None = None
    paper: float | None = None
    row: Row | None = None

    def values(self, result: Result) -> Any:
        """Where the paths begin: the values of the file, or those of a row of its table."""
        if self.row is None:
            return result.values
        found = method_row(result, *self.row)
        return found.get("values", found)

    def cells(self, result: Result, experiment: Experiment, shipped: Fingerprints) -> list[str]:
        """The row of the page."""
        link = f"[{experiment.result_name}]({experiment.page})"
        paper = NOTHING if self.paper is None else f"{self.paper:g}"
        if not of_shipped(result, experiment.models, shipped):
            return [self.words, "not measured on the weights that ship", paper, "", NOTHING, NOTHING, link]
        values = self.values(result)
        ours = look_up(values, *self.path)
        null = look_up(values, *self.null) if isinstance(self.null, tuple) else self.null
        shown = "" if null is None else estimate(null) if isinstance(null, Mapping) else f"{null:g}"
        verdict, weights = self.verdict(ours, null), weights_of(result, experiment, shipped)
        return [self.words, estimate(ours), paper, shown, verdict, weights, link]

    def numbers(self, result: Result) -> list[str]:
        """Our number with its interval, the paper's and the null, each in few digits or as per cent."""
        values, shown = self.values(result), _percent if "accuracy" in self.path else _two_digits
        null = look_up(values, *self.null) if isinstance(self.null, tuple) else self.null
        value, low, high = bounds(look_up(values, *self.path))
        ours = shown(value) if low is None else f"{shown(value)} [{shown(low)}, {shown(high)}]"
        return [ours, shown(self.paper), shown(bounds(null)[0])]

    def verdict(self, ours: Any, null: Any) -> str:
        """What the interval says to the paper's number, or to the null."""
        value, low, _ = bounds(ours)
        if value is None:
            return NOTHING
        if self.paper is not None:
            if low is not None and low > self.paper:
                return "exceeded"
            return "reproduced" if value >= self.paper - NEAR else "**not reproduced**"
        highest = bounds(null)[2] if isinstance(null, Mapping) else null
        if highest is None:
            return NOTHING
        return "holds" if (value if low is None else low) > highest else "**does not hold**"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.1%}"


def _two_digits(value: float | None) -> str:
    return number(value, 2)


def weights_of(result: Result, experiment: Experiment, shipped: Fingerprints) -> str:
    """The models that ship among those that were measured, or how many others there were."""
    names = [f"`{name}`" for name in experiment.models if name in shipped]
    return ", ".join(names) if names else f"{len(stated(result)) or 'unknown,'} of its own"


def claims_table(results: Mapping[str, Result], shipped: Fingerprints) -> str:
    """All claims of which there is a result, in the order of the list."""
    experiments = {one.result_name: one for one in EXPERIMENTS.values()}
    rows = [
        claim.cells(results[claim.result], experiments[claim.result], shipped)
        for claim in CLAIMS
        if claim.result in results
    ]
    return markdown_table(HEADER, rows) if rows else ""


def headline_table(results: Mapping[str, Result], shipped: Fingerprints) -> str:
    """The README's table: the claims of `HEADLINES` that were measured on the weights that ship."""
    experiments, claims = {e.result_name: e for e in EXPERIMENTS.values()}, {c.words: c for c in CLAIMS}
    known = {words: claims[claim] for words, claim in HEADLINES.items()}
    rows = [
        [words, *claim.numbers(results[claim.result])]
        for words, claim in known.items()
        if claim.result in results
        and of_shipped(results[claim.result], experiments[claim.result].models, shipped)
    ]
    return (
        markdown_table(["", "ours", "the paper's", "a map or guess without knowledge"], rows) if rows else ""
    )


def method_row(result: Result | None, model: str, method: str, metric: str = "") -> Mapping[str, Any]:
    """The row of a method on a model; an empty one where it was not measured."""
    for row in () if result is None else result.values["table"]:
        if (row["model"], row["method"], row.get("metric", "")) == (model, method, metric):
            return row
    return {}


def _accuracy(
    title: str, recipe: str, upright: tuple[float | None, float | None], posed: float | None = None
) -> Iterator[Claim]:
    for kind, words, paper in (("site", "SITE", upright[0]), ("black_box", "the black box", upright[1])):
        of, name, path = f"{title}: accuracy of {words}", f"accuracy_{recipe}", (kind, "accuracy")
        yield Claim(f"{of}, upright", name, (*path, "untransformed"), 0.1, paper)
        yield Claim(f"{of}, turned and shifted", name, (*path, "transformed"), 0.1, posed)


def _maps(title: str, recipe: str, paper: float | None = None) -> Iterator[Claim]:
    name, own = f"accuracy_{recipe}", ("site", "self_consistency")
    words = f"{title}: SITE's map follows the picture, raw cosine"
    yield Claim(words, name, (*own, "raw"), (*own, "floor"), paper)
    yield Claim(f"{title}: the same above its floor", name, (*own, "calibrated"), 0.0)
    filled = ("site", "frame_control", "filled", "calibrated")
    yield Claim(f"{title}: the same with filled corners", name, filled, 0.0)
    yield _patches(title, recipe)


def _patches(title: str, recipe: str) -> Claim:
    words, path = f"{title}: hiding a patch does what SITE's map says", ("site", "patch_deletion")
    return Claim(words, f"accuracy_{recipe}", (*path, "correlation"), (*path, "floor"))


def _pointing(pose: str, paper: float) -> Claim:
    words, null = f"MNIST: SITE's map points at the strokes, {pose}, τ = 0", ("anywhere", pose)
    return Claim(words, "mnist_pointing", (pose, "tau_0"), null, paper, row=(*OWN, ""))


def _mosaic(words: str, who: tuple[str, str]) -> Claim:
    return Claim(f"CIFAR-10: {words}", "cifar10_truth", ("share",), ("chance",), row=(*who, "grid_pointing"))


def _prototypes(title: str, recipe: str) -> Iterator[Claim]:
    for judge in ("residual", "plain"):
        for pose, said in (("untransformed", "upright"), ("transformed", "posed")):
            words, path = (
                f"{title}: a stranger ({judge}) names the prototypes, {said}",
                (recipe, "now", judge),
            )
            yield Claim(words, "prototypes", (*path, pose), (*path, "floor"))


OBJECTS, POINTED = "Objects on scenes", ("site", "pointing_game", "transformed", "tau_0")
CLAIMS: tuple[Claim, ...] = (
    *_accuracy("MNIST", "mnist", (0.988, 0.981)),
    *_maps("MNIST", "mnist"),
    _pointing("untransformed", 0.9996),
    _pointing("transformed", 0.9993),
    *_prototypes("MNIST", "mnist"),
    *_accuracy("Fashion-MNIST", "fashion_mnist", (None, None)),
    *_maps("Fashion-MNIST", "fashion_mnist"),
    *_prototypes("Fashion-MNIST", "fashion_mnist"),
    *_accuracy("CIFAR-10", "cifar10", (0.892, 0.862), 0.89),
    *_maps("CIFAR-10", "cifar10", 0.886),
    Claim(
        "CIFAR-10: Grad-CAM on the black box follows the picture, raw cosine",
        "cifar10_consistency",
        ("self_consistency", "raw"),
        ("self_consistency", "floor"),
        0.8416,
        row=(*RIVAL, ""),
    ),
    _mosaic("SITE's map finds the picture in a mosaic of four", OWN),
    _mosaic("Grad-CAM on the black box finds it", RIVAL),
    *_accuracy("CIFAR-10, the paper's small CNN", "cifar10_cnn", (0.840, 0.828)),
    Claim(
        f"{OBJECTS}: accuracy of SITE, upright",
        "accuracy_bam_objects",
        ("site", "accuracy", "untransformed"),
        0.05,
    ),
    Claim(
        f"{OBJECTS}: SITE's map points at the object, posed",
        "accuracy_bam_objects",
        (*POINTED, "score"),
        (*POINTED, "anywhere"),
    ),
    _patches(OBJECTS, "bam_objects"),
    Claim(
        "Food-101, ten classes of 101: accuracy of SITE from ImageNet (the paper: all classes, 0.6391)",
        "food10",
        ("models", "site, from ImageNet", "accuracy", "untransformed"),
        0.1,
    ),
)

# The README's rows, and the claims they stand for.
HEADLINES = {
    "MNIST: accuracy": "MNIST: accuracy of SITE, upright",
    "CIFAR-10: accuracy": "CIFAR-10: accuracy of SITE, upright",
    "CIFAR-10: accuracy on turned and shifted pictures": "CIFAR-10: accuracy of SITE, turned and shifted",
    "CIFAR-10: the map turns with the picture (cosine)": (
        "CIFAR-10: SITE's map follows the picture, raw cosine"
    ),
    "… Grad-CAM on the usual network": "CIFAR-10: Grad-CAM on the black box follows the picture, raw cosine",
    "CIFAR-10: the map predicts what hiding a patch does (rank correlation)": (
        "CIFAR-10: hiding a patch does what SITE's map says"
    ),
    "CIFAR-10: share of the map on the right picture of four": (
        "CIFAR-10: SITE's map finds the picture in a mosaic of four"
    ),
    "… of Grad-CAM on the usual network": "CIFAR-10: Grad-CAM on the black box finds it",
}
