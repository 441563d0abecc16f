"""The model of objects that ships: trained, stored in half precision, and measured as it was stored."""

import pytest
import torch

from experiments.bam import models as bam_models
from experiments.bam import objects
from experiments.bam.models import QUICK
from experiments.models import weights_of
from experiments.section import Pictures
from torchsite.model import load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("appendix") / "bam_objects-quick"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bam_models, "QUICK", dict(QUICK) | {"epochs": 1, "validate_every": 1})
        yield folder, objects.STUDY.run("", folder, quick=True)


def test_what_was_stored_is_what_was_measured(found):
    folder, result = found
    stored = load(folder / "model")
    assert result.config["weights"] == {"site": weights_of(stored)}
    trained = load(folder.with_name("bam-quick") / "site-object" / "model")
    images = torch.rand(2, *trained.config.image_shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(stored(images), trained(images), rtol=0, atol=0.05)


def test_every_score_stands_beside_what_knows_nothing(found):
    text = objects.STUDY.section(found[1], Pictures())
    for title in objects.ROWS:
        assert f"| {title} |" in text
    assert "–" not in text.partition("knows nothing")[2]
