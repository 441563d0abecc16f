"""The table of backbones: cells on their own, libraries that are missing, settings of a folder's training."""

import sys

import pytest
from made_up import section

from experiments import backbone_steps, backbones
from experiments.backbone_steps import BACKBONES, IMAGENET, KINDS, QUICK_BACKBONES, recipe_of
from experiments.publish import draw_figures
from experiments.registry import EXPERIMENTS
from torchsite.errors import MissingExtraError
from torchsite.model import libraries


@pytest.fixture
def without_timm(monkeypatch):
    """As where the extra is not installed."""
    for part in ("timm", "torchvision", "torchvision.models"):
        monkeypatch.setitem(sys.modules, part, None)


def test_a_cell_is_kept_and_a_missing_library_leaves_the_others(tmp_path, without_timm):
    ours, theirs = QUICK_BACKBONES
    assert backbone_steps.measure(tmp_path, backbones=[ours], kinds=["site"], quick=True) == 1
    model = tmp_path / "painted-pyramid-site" / "model" / "model.safetensors"
    before = model.stat().st_mtime_ns
    result = backbones.run(tmp_path, quick=True)
    assert model.stat().st_mtime_ns == before
    rows = {(row["backbone"], row["kind"]): row for row in result.values["table"]}
    assert set(rows) == {(name, kind) for name in (ours, theirs) for kind in KINDS}
    assert all("torchsite[timm]" in rows[theirs, kind]["reason"] for kind in KINDS)
    site, black_box = (rows[ours, kind]["scores"] for kind in KINDS)
    assert {"patch_deletion", "frame_control"} <= set(site)
    assert set(black_box) == {"accuracy"}
    text = section(result)
    assert f"{theirs} was left out" in text
    assert "random weights" in text
    assert [path.name for path in draw_figures(EXPERIMENTS["backbones"], tmp_path)] == ["backbones.png"]


def test_all_backbones_learn_as_a_folder_does_and_equally_long():
    recipes = {name: recipe_of(candidate, "site", quick=False) for name, candidate in BACKBONES.items()}
    assert len(recipes) >= 6
    trainings = [recipe.training for recipe in recipes.values()]
    for field in ("terms", "corners", "family", "epochs", "batch_size"):
        assert len({str(getattr(training, field)) for training in trainings}) == 1
    assert {term.name for term in trainings[0].terms} == {
        "transformation",
        "equivariance",
        "additive_evidence",
    }
    started = {name for name, candidate in BACKBONES.items() if candidate.starts_from == IMAGENET}
    assert all("efficientnet" in recipes[name].model.feature_extractor for name in started)


def test_a_library_that_is_missing_says_what_to_install(without_timm):
    with pytest.raises(MissingExtraError, match="pip install"):
        libraries.imported("timm")
