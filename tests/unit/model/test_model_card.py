"""The card beside one's own model: what it says, when it is written, and that the hub gets it."""

import re

import yaml

from torchsite.data import load_dataset
from torchsite.model import SITE, BlackBox
from torchsite.model.card import CARD_FILE, model_card
from training_makers import make_black_box, make_site, run


def test_a_saved_model_has_a_card_that_names_its_classes(tmp_path):
    for model, call in ((make_site(), "ts.SITE"), (make_black_box(), "ts.BlackBox")):
        folder = model.save_pretrained(tmp_path / call)
        text = (folder / CARD_FILE).read_text()
        assert (
            yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])["library_name"] == "torchsite"
        )
        assert f"{call}.from_pretrained" in text
        assert ", ".join(model.classes) in text
        assert "## Measured" not in text
        type(model).from_pretrained(folder)


def test_a_card_that_its_maker_wrote_stays(tmp_path):
    folder = make_site().save_pretrained(tmp_path)
    (folder / CARD_FILE).write_text("my own words")
    make_site(seed=1).save_pretrained(tmp_path)
    assert (folder / CARD_FILE).read_text() == "my own words"


def test_a_trained_model_says_what_it_learnt_from_and_what_was_found(tmp_path):
    fitted = run(tmp_path, epochs=1)
    text = (tmp_path / "model" / CARD_FILE).read_text()
    assert f"| learnt from | {load_dataset('mnist_sample').name} |" in text
    for name, value in fitted.measures.items():
        assert f"| {name} | {value:.4f} |" in text


def test_many_classes_are_cut_short():
    names = tuple(f"class {i}" for i in range(100))
    model = BlackBox("identity", 100, image_shape=(1, 8, 8), classes=names, encoder_options={"widths": (4,)})
    text = model_card(model.config)
    assert "class 29 and 70 more" in text
    assert "class 30" not in text


def test_the_hub_gets_weights_configuration_and_card(tmp_path, monkeypatch):
    sent = {}

    class Api:
        def __init__(self, **_):
            pass

        def create_repo(self, repo_id, **_):
            return type("Repo", (), {"repo_id": repo_id})

        def upload_folder(self, folder_path, **_):
            sent.update({path.name: path.read_bytes() for path in folder_path.iterdir()})
            return "done"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Api)
    model = make_site()
    assert model.push_to_hub("owner/name") == "done"
    assert set(sent) == {"model.safetensors", "config.json", CARD_FILE}
    for name, content in sent.items():
        (tmp_path / name).write_bytes(content)
    again = SITE.from_pretrained(tmp_path)
    assert all((a == b).all() for a, b in zip(again.parameters(), model.parameters(), strict=True))
