"""Models that experiments look at: trained beside them, shipped, and read where they should be."""

from experiments import models
from torchsite.data import load_dataset
from torchsite.evaluation.methods import last_encoder_block, options_of
from torchsite.model import SITE, shipped_models


def test_grad_cam_reads_a_hidden_layer_where_the_features_are_the_pixels():
    model = SITE.from_pretrained("mnist")
    assert options_of("grad_cam", model) == {"layer": last_encoder_block(model)}
    assert options_of("gradient", model) == {}
    learned = SITE(image_shape=(3, 16, 16))
    assert "layer" not in options_of("score_cam", learned)


def test_shipped_models_serve_where_none_were_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(
        models, "load_dataset", lambda name, split, size: load_dataset("mnist_sample", split)[:20]
    )
    pair = models.pair_beside("mnist", tmp_path / "mnist_sheet")
    assert pair.origin == "shipped"
    assert {"mnist", "mnist_black_box"} <= set(shipped_models())
    assert set(pair.description()["weights"]) == {"site", "black_box"}
    assert not (tmp_path / "mnist").exists()
