"""What a measure asks for a picture is what it says, whatever its options; and the page says the same."""

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from torch import nn

from experiments.bam import METRICS_OF_PAIRS
from metric_models import Templates, Tones, tone_pictures
from torchsite.metrics import METRICS, Poses, as_explainer, strokes
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

SIDE, CLASSES, N = 12, 4, 16
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
FAMILY = TransformFamily(max_rotation=30, max_shift=0.1)
EACH = [*METRICS, *METRICS_OF_PAIRS]


class Counter(nn.Module):
    """A classifier that counts the pictures it answers; larger ones count for their pixels."""

    def __init__(self):
        super().__init__()
        self.tones = Tones(CLASSES)
        self.weight = nn.Parameter(torch.ones(3))
        self.n = 0.0

    def forward(self, images):
        self.n += images[:, 0].numel() / SIDE**2
        return self.tones(images)


class CountingTemplates(Templates):
    """A self-explaining model that counts its explanations."""

    n = 0.0

    def explain(self, images):
        self.n += len(images)
        return super().explain(images)


class Maps:
    """Maps that count themselves and ask no model."""

    def __init__(self):
        self.n = 0.0

    def __call__(self, model, images, classes):
        self.n += images[:, 0].numel() / SIDE**2
        return images.mean(1)


def options_of(name, n_fills, n_fractions, grid, side):
    fills = ("black", "mean", "blur")[:n_fills]
    fractions = tuple(k / n_fractions for k in range(n_fractions))
    return {
        "mask_k": {"fills": fills, "fractions": fractions},
        "insertion": {"fills": fills, "fractions": fractions},
        "deletion": {"fills": fills, "fractions": fractions},
        "lerf_morf": {"fills": fills, "fractions": fractions},
        "patch_deletion": {"fills": fills, "grid": grid},
        "frame_control": {"fills": fills},
        "grid_pointing": {"sides": (2, 3)[:side], "confidence": 0},
    }.get(name, {})


def counted(name, n_poses, **options):
    """The measure, and how many maps and answers a picture took."""
    maps, model = Maps(), Counter()
    explain = as_explainer(maps, model)
    usual = {"poses": Poses(FAMILY, n_poses), "n_resamples": 0} | options
    images, labels = tone_pictures(N, side=SIDE, n_tones=CLASSES)
    regions = strokes(images) > strokes(images).flatten(1).median(1).values[:, None, None]
    if name in METRICS_OF_PAIRS:
        metric = METRICS_OF_PAIRS[name](explain, explain, **usual)
        extra = (images.flip(-1),) if name == "bam" else ()
        metric.update(images, labels, labels, regions, images.flip(-1), *extra)
    elif name.startswith("prototype_"):
        own = CountingTemplates(torch.rand(CLASSES, 1, SIDE, SIDE, generator=make_rng(0)))
        judge = {"judge": model} if name == "prototype_recognition" else {}
        metric = METRICS[name](own, n_classes=CLASSES, **judge, **usual)
        metric.update(images, labels)
        return metric, own.n / N, model.n / N
    else:
        metric = METRICS[name](explain, n_classes=CLASSES, **usual)
        metric.update(images, labels, regions=regions.float())
    return metric, maps.n / N, model.n / N


@settings(max_examples=4, deadline=None)
@given(
    n_poses=integers(1, 3),
    n_fills=integers(1, 3),
    n_fractions=integers(2, 4),
    grid=sampled_from([(2, 2), (3, 2), (4, 4)]),
    side=integers(1, 2),
)
@pytest.mark.parametrize("name", EACH)
def test_a_measure_asks_for_as_much_as_it_says(name, n_poses, n_fills, n_fractions, grid, side):
    options = options_of(name, n_fills, n_fractions, grid, side)
    metric, maps, answers = counted(name, n_poses, **options)
    said = metric.passes()
    if name == "grid_pointing":  # as many as mosaics could be made of these pictures
        assert 0 < maps <= said.maps
        assert 1 <= answers <= said.answers
    else:
        assert (maps, answers) == said


def rows_of_the_page():
    table = PAGE.read_text().partition("| measure | maps | answers |")[2].partition("\n\n")[0]
    lines = re.findall(r"^\| (`.+?`) \| (.+?) \| (.+?) \| (\d+) \+ (\d+) \|", table, re.MULTILINE)
    return {name: line[1:] for line in lines for name in re.findall(r"`(\w+)`", line[0])}


def test_the_page_says_the_same():
    """Its formulas, for options of all kinds, and its numbers, for the usual ones."""
    rows = rows_of_the_page()
    for name in EACH:
        check_row(name, *rows[name])


def check_row(name, maps, answers, *numbers):
    usual, _, _ = counted(name, 4)
    if name != "prototype_recognition":  # whose number of classes is the data's
        assert tuple(map(int, numbers)) == (usual.passes() if name != "sanity" else (1 + 4, 0)), name
    metric, _, _ = counted(name, 2, **options_of(name, 2, 3, (3, 2), 2))
    known = {
        "n": 2,
        "fills": len(getattr(metric, "fills", ())),
        "fractions": len(getattr(metric, "fractions", ())),
        "patches": 6,
        "stages": len(getattr(metric, "groups", ())),
        "classes": CLASSES,
        "sides": len(getattr(metric, "sides", ())),
        "tiles": sum(side**2 for side in getattr(metric, "sides", ())),
    }
    said = [eval(text.replace("×", "*"), {"__builtins__": {}}, known) for text in (maps, answers)]
    assert tuple(said) == metric.passes(), name
