"""Map-makers without knowledge: the rule, the planted setting, and what the table says of the template."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis.strategies import booleans, floats
from made_up import section

from experiments import fooled
from experiments.fooled import MARGIN, OWN, QUESTIONS, is_fooled, verdict
from experiments.planted import planted, true_map
from torchsite.data import to_float
from torchsite.metrics import CONTROL_MAPS
from torchsite.results import Result

shares = floats(-1, 1)


def estimate(value, width=0.0):
    return {"value": value, "low": value - width, "high": value + width}


@given(null=shares, gap=floats(0, 1), width=floats(0, 0.3), higher=booleans())
def test_a_measure_is_fooled_beyond_null_interval_and_margin(null, gap, width, higher):
    sign = 1 if higher else -1
    score = estimate(null + sign * gap, width)
    expected = gap - width > MARGIN
    if abs(gap - width - MARGIN) > 1e-9:
        assert is_fooled(score, [null], higher=higher) is expected
    assert is_fooled(estimate(null - sign * gap, width), [null], higher=higher) is False
    if abs(gap - 2 * width - MARGIN) > 1e-9:
        assert is_fooled(score, [estimate(null, width)], higher=higher) is (gap - 2 * width > MARGIN)


def test_every_null_must_be_beaten_and_the_hardest_is_shown():
    score = estimate(0.5)
    assert is_fooled(score, [0.1, 0.2], higher=True)
    assert not is_fooled(score, [0.1, 0.6], higher=True)
    values = {"transformed": {"share": score, "area": estimate(0.1), "centre": estimate(0.4)}}
    found = verdict(QUESTIONS["energy pointing"], values)
    assert found == {"score": score, "null": estimate(0.4), "fooled": True}


def test_what_was_not_measured_is_not_judged():
    nothing = {"value": None, "low": None, "high": None}
    assert is_fooled(nothing, [0.0], higher=True) is None
    assert is_fooled(estimate(1.0), [None], higher=True) is None
    assert verdict(QUESTIONS["patch deletion"], {})["fooled"] is None


def test_planted_pictures_are_named_right_and_their_map_is_what_hiding_does():
    found = planted(18, seed=3)
    images = to_float(found.pictures.images)
    for model, labels in (
        (found.objects, found.pictures.object_labels),
        (found.scenes, found.pictures.scene_labels),
    ):
        logits = model(images)
        assert torch.equal(logits.argmax(1), labels)
        maps = true_map(model, images, labels)
        relative = logits - logits.mean(1, keepdim=True)
        torch.testing.assert_close(maps.sum((1, 2)), relative.gather(1, labels[:, None])[:, 0].detach())
    regions = found.pictures.regions
    maps = true_map(found.objects, images, found.pictures.object_labels).clamp_min(0)
    torch.testing.assert_close((maps * regions).sum((1, 2)), maps.sum((1, 2)))


def test_settings_are_those_that_have_pictures():
    (digits,) = fooled.settings_of({"Digits": 7})
    assert (digits.name, len(digits.data)) == ("Digits", 7)
    assert set(fooled.N_QUICK) < set(fooled.N_PICTURES)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The planted setting alone, by the measures that the laws are about."""
    place = tmp_path_factory.mktemp("fooled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fooled, "settings_of", lambda counts: [fooled.planted_setting(24)])
        kept = ("frame control", "object motion", "grid pointing", "sanity", "patch deletion")
        some = {row: question for row, question in QUESTIONS.items() if row.startswith(kept)}
        patch.setattr(fooled, "QUESTIONS", some)
        result = fooled.STUDY.run("", place, quick=True)
        steps = {path: path.stat().st_mtime_ns for path in (place / "steps").iterdir()}
        assert fooled.STUDY.run("", place, quick=True).values == result.values
        assert steps == {path: path.stat().st_mtime_ns for path in (place / "steps").iterdir()}
        yield place, result


def cells(quick, start):
    found = quick[1].values["settings"]["Planted"]["cells"]
    return [line for row, line in found.items() if row.startswith(start)]


@pytest.mark.parametrize("measure", ["frame control", "object motion"])
@pytest.mark.parametrize("maker", ["frame_template", "constant", "centre_blob", "random"])
def test_the_template_fails_frame_control_and_object_motion(quick, measure, maker):
    assert [line[maker]["fooled"] for line in cells(quick, measure)] == [False] * len(cells(quick, measure))


@pytest.mark.parametrize("measure", ["frame control", "object motion", "patch deletion", "grid pointing"])
def test_the_true_map_passes(quick, measure):
    assert all(line[OWN]["fooled"] for line in cells(quick, measure))


def test_nobody_fools_mosaics(quick):
    (line,) = cells(quick, "grid pointing")
    assert not any(line[maker]["fooled"] for maker in CONTROL_MAPS)


def test_the_section_is_drawn_from_the_file_alone(quick):
    place, result = quick
    text = section(Result.load(place / "fooled.json"))
    assert "beyond the null's by more than 0.05" in text
    (line,) = cells(quick, "grid pointing")
    value = line["edges"]["score"]["value"]
    assert f"{value:.2f} (0.25)" in text
    assert "Fooled by nobody, in any of these settings: grid pointing, 2×2" in text
    assert list(fooled.STUDY.figures(result, {})) == ["fooled"]
    line["edges"]["score"], line["edges"]["fooled"] = estimate(0.77), True
    assert "**0.77** (0.25)" in section(replace(result, values=result.values))
