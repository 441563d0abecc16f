"""Three seeds of the model of objects: trained apart, measured alike, shown with their spread."""

import pytest

from experiments.bam import models as bam_models
from experiments.bam import seeds
from experiments.bam.models import QUICK
from experiments.section import Pictures

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("appendix") / "bam_seeds-quick"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bam_models, "QUICK", dict(QUICK) | {"epochs": 1, "validate_every": 1})
        patch.setattr(seeds, "SEEDS", (0, 1))
        yield folder, seeds.run(folder, quick=True)


def test_every_seed_is_a_training_of_its_own(found):
    folder, result = found
    assert list(result.values["seeds"]) == ["0", "1"]
    assert len(set(result.config["weights"].values())) == 2
    assert (folder.with_name("bam-quick") / "site-object").is_dir(), "the first is that of the experiment"
    assert (folder / "seed-1" / "site-object").is_dir()


def test_scores_stand_beside_each_other_with_their_spread(found):
    text = seeds.section(found[1], Pictures())
    assert "| seed 0 | seed 1 | mean ± deviation |" in text
    assert "| accuracy, upright |" in text
    assert "| hiding a patch does what the map says |" in text
