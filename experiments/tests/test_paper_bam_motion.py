"""Objects that move over scenes: every explainer on both kinds of model, in steps that lanes share."""

import pytest
import torch
from made_up import section

from experiments.bam import models as bam_models
from experiments.bam import motion
from experiments.bam.data import painted_halves
from experiments.bam.models import LABELLINGS, QUICK, Models
from experiments.bam.pairs import Pairs
from experiments.measuring import Asked, Explaining, explainers
from experiments.tables import IGNORANT_MARK
from torchsite.attribution import METHODS
from torchsite.errors import ConfigError
from torchsite.metrics import CONTROL_MAPS
from torchsite.results import Result
from torchsite.transforms import TransformFamily

pytestmark = pytest.mark.slow

ROWS = ["self_explanation", "gradient", "ignorant_frame_template"]


@pytest.fixture(scope="module")
def motion_run(tmp_path_factory):
    """One lane for the black box, then the run that gathers it and does the rest."""
    folder = tmp_path_factory.mktemp("appendix") / "bam_motion-quick"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bam_models, "QUICK", dict(QUICK) | {"epochs": 1, "validate_every": 1})
        lane = motion.STUDY.measure("bam", folder, models=("black_box",), methods=ROWS, quick=True)
        written = {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()}
        yield folder, lane, written, motion.STUDY.run("bam", folder, methods=ROWS, quick=True)


def test_a_lane_leaves_its_steps_and_the_run_takes_them(motion_run):
    folder, lane, written, result = motion_run
    one_row = 1 + 2 * (len(motion.MEASURES) - 1)
    assert lane == len(written) == 2 * one_row
    now = {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()}
    assert {path: now[path] for path in written} == written
    assert len(result.values["table"]) == 2 * one_row + 4 * one_row
    assert Result.load(folder / "bam_motion.json").values == result.values


def test_every_explainer_is_measured_on_both_kinds_of_model(motion_run):
    rows = {(row["model"], row["method"], row["metric"]) for row in motion_run[3].values["table"]}
    for metric in ("object_motion", "object energy_pointing", "scene patch_deletion", "scene frame_control"):
        assert ("site", "self_explanation", metric) in rows
        assert ("black_box", "ignorant_frame_template", metric) in rows
    assert ("black_box", "self_explanation", "object_motion") not in rows


def test_the_section_names_what_is_right_beside_its_rivals(motion_run):
    text = section(motion_run[3])
    for words in ("*stays* where it was", "*follows the frame*", "rival: follows the frame, raw"):
        assert words in text
    assert "| knows nothing: frame template | on the black box |" in text
    assert "### Other measures, models of scenes" in text
    assert list(motion.STUDY.figures(motion_run[3], {})) == ["bam_motion"]


def test_own_words_name_whichever_is_larger():
    def scores(right, rival):
        line = {"model": "site", "method": "self_explanation", motion.MOTION: {}}
        for name, (_, what, score) in motion.MOTIONS.items():
            line[motion.MOTION].setdefault(what, {})[score] = {"value": rival if "rival" in name else right}
        return [line]

    assert "its map follows (follows 0.900, stays 0.200)" in motion.own_words(scores(0.9, 0.2))
    assert "its map stays (follows 0.100, stays 0.200)" in motion.own_words(scores(0.1, 0.2))
    assert motion.own_words([]) == ""


class Named(torch.nn.Module):
    """Names every picture by one class."""

    def __init__(self, config, named, n_classes=3):
        super().__init__()
        self.config, self.answer = config, torch.eye(n_classes)[named]

    def forward(self, images):
        return self.answer.expand(len(images), -1)


def test_a_map_on_the_object_follows_and_the_template_stays(tmp_path):
    """Planted: shapes are brighter than the patterns behind them, so the map can find them."""
    bam = painted_halves(32).test
    bam = bam[(bam.object_labels == 0) & (bam.scene_labels == 0)]
    bam = bam[torch.arange(len(bam)).repeat(4)]
    config = type("Config", (), {"family": TransformFamily()})
    models = Models(Named(config, 0), Named(config, 0))

    def saturated(images, classes):
        return (images.amax(1) - images.amin(1) - 0.6).clamp_min(0)

    pairs, any_one = Pairs("planted", models, bam, tmp_path), Explaining("planted", lambda _: None)
    found = {
        name: pairs.pair_cell(motion.MOTION, any_one, dict.fromkeys(LABELLINGS, maker), bam)
        for name, maker in {"object": saturated, "template": CONTROL_MAPS["frame_template"]}.items()
    }
    own, template = (found[name].values for name in ("object", "template"))
    assert own["object_follows"]["raw"]["value"] > own["object_stays"]["raw"]["value"] + 0.2
    assert abs(template["object_follows"]["calibrated"]["value"]) < 0.05
    assert template["object_stays"]["raw"]["value"] > 0.99
    assert template["frame_follows"]["raw"]["value"] > template["object_holds"]["raw"]["value"]


def test_steps_of_other_pictures_are_refused(motion_run, monkeypatch):
    folder = motion_run[0]
    monkeypatch.setattr(motion, "MEASURES", {motion.MOTION: Asked(5)})
    with pytest.raises(ConfigError, match=r"other settings|another"):
        motion.STUDY.measure("bam", folder, models=("black_box",), methods=["gradient"], quick=True)


def test_explainers_come_by_cost_and_those_that_know_nothing_last():
    rows = list(explainers(torch.nn.Module(), ["rise", "gradient", IGNORANT_MARK + "edges"]))
    assert [row.name for row in rows] == ["gradient", "rise", "ignorant_edges"]
    assert [row.slow for row in rows] == [False, METHODS["rise"].is_slow(), False]
