"""Sheets during training: they can be read back, show the run's own maps, and change nothing about it."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from torchsite.errors import ConfigError, MissingExtraError
from torchsite.model.drawing import draw_tiles, heatmap_tile, picture_tile
from torchsite.training import ExplanationSheets
from torchsite.training.log import BOARDS
from torchsite.training.sheets import draw_progress, shown_pictures
from training_makers import digest, digits, make_black_box, run


def sheets(folder):
    """Steps and pictures of all sheets in a folder of TensorBoard's."""
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulators.EventAccumulator(str(folder), size_guidance={"images": 0}).Reload()
    if not events.Tags()["images"]:
        return {}
    return {event.step: event for event in events.Images("explanations")}


def opened(event):
    return np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


class Drawn(ExplanationSheets):
    """Keeps what it drew."""

    def __init__(self):
        super().__init__("tensorboard")
        self.kept = {}

    def validated(self, run, measures, seconds):
        super().validated(run, measures, seconds)
        self.kept[run.steps_done] = pixels(draw_progress(run, self.n_pictures))
        self.shown = shown_pictures(run, self.n_pictures)


def test_the_event_file_holds_a_sheet_before_the_first_step_and_after_each_validation(tmp_path):
    watch = Drawn()
    fitted = run(tmp_path, callbacks=[watch])
    found = sheets(tmp_path / "logs")
    assert list(found) == [0, 3, 6], "three steps an epoch, two epochs"
    for step, drawn in watch.kept.items():
        np.testing.assert_array_equal(opened(found[step]), drawn)
    assert (opened(found[3]) != opened(found[6])).any(), "the maps are learnt"
    assert fitted.measures


@pytest.mark.slow
def test_sheets_leave_the_training_as_it_was(tmp_path):
    looked = run(tmp_path / "looked", callbacks=[ExplanationSheets("tensorboard")])
    alone = run(tmp_path / "alone")
    assert digest(looked.model) == digest(alone.model)
    assert looked.measures == alone.measures


def test_every_picture_stands_upright_and_in_the_same_pose_each_time(tmp_path):
    watch = Drawn()
    run(tmp_path / "run", callbacks=[watch], epochs=1)
    upright, posed = watch.shown[::2], watch.shown[1::2]
    rows = torch.linspace(0, 19, 4).long()
    assert torch.equal(upright, digits(20, "test").images[rows].float() / 255)
    assert all((a != b).any() for a, b in zip(upright, posed, strict=True))
    again = Drawn()
    run(tmp_path / "run2", callbacks=[again], epochs=1)
    assert torch.equal(again.shown, watch.shown)


def test_a_resumed_run_has_no_second_beginning(tmp_path):
    run(tmp_path)
    run(tmp_path, resume=True, callbacks=[ExplanationSheets("tensorboard")])
    assert list(sheets(tmp_path / "logs")) == [6]


def test_a_black_box_has_no_sheets(tmp_path):
    run(tmp_path, make_black_box(), callbacks=[ExplanationSheets("tensorboard")], epochs=1)
    assert sheets(tmp_path / "logs") == {}


class FakeRun:
    """What a run of Weights & Biases is asked for."""

    def __init__(self, **options):
        self.options, self.logged, self.finished = options, [], False

    def log(self, values, step):
        assert not self.finished
        assert all(step >= earlier for earlier, _ in self.logged), "it drops what comes out of order"
        self.logged.append((step, values))

    def finish(self):
        self.finished = True


def test_weights_and_biases_gets_sheets_and_numbers(tmp_path, monkeypatch):
    runs = []
    made = SimpleNamespace(
        init=lambda **options: runs.append(FakeRun(**options)) or runs[-1],
        Image=lambda figure: ("picture", pixels(figure).shape),
    )
    monkeypatch.setitem(sys.modules, "wandb", made)
    run(tmp_path, callbacks=[ExplanationSheets("wandb")])
    (board,) = runs
    assert board.finished
    assert board.options["project"] == "torchsite"
    assert board.options["config"]["training"]["batch_size"] == 32
    pictures = [(step, values["explanations"]) for step, values in board.logged if "explanations" in values]
    assert [step for step, _ in pictures] == [0, 3, 6]
    assert all(kind == "picture" and shape[2] == 3 for _, (kind, shape) in pictures)
    numbers = {name for _, values in board.logged for name in values}
    assert {"loss", "validation accuracy"} <= numbers


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_that_is_not_installed_says_so_before_any_work(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"needs {name}.*pip install"):
        ExplanationSheets(name)


def test_an_unknown_board_names_the_nearest():
    with pytest.raises(ConfigError, match="'tensorboard'"):
        ExplanationSheets("tensorbord")


def test_tiles_keep_the_colours_of_their_pictures():
    grey, red = torch.full((1, 4, 4), 0.5), torch.tensor([[1.0, -1.0], [0.0, 0.5]])
    assert picture_tile(grey).shape == (4, 4, 3)
    assert (picture_tile(grey) == 0.5).all()
    coloured = heatmap_tile(red)
    assert coloured[0, 0, 0] > coloured[0, 0, 2], "for: red"
    assert coloured[0, 1, 2] > coloured[0, 1, 0], "against: blue"
    assert coloured[1, 0].min() > 0.95, "nothing: white"
    drawn = pixels(draw_tiles([[(coloured, "a"), (coloured, "b")]]))
    assert drawn.shape[1] > drawn.shape[0]
