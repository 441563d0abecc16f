"""The study of planted shortcuts: what is planted is where it is said to be; the page says what was found."""

import pytest
import torch

from experiments.section import Pictures
from experiments.shortcuts import AREA, KINDS, TABLE, Line, plant, run, section
from torchsite.data import Dataset
from torchsite.randomness import make_rng


def pictures(n=30, side=40):
    pixels = torch.randint(256, (n, 3, side, side), dtype=torch.uint8, generator=make_rng(0))
    return Dataset(pixels, torch.arange(n) % 3, ("a", "b", "c"), "noise", "train")


@pytest.mark.parametrize("anywhere", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_is_the_region_and_only_in_its_class(kind, anywhere):
    data = pictures()
    planted, regions = plant(data, kind, 0.6, label=1, anywhere=anywhere)
    changed = (planted.images != data.images).any(1)
    assert not (changed & ~regions).any()
    has = regions.flatten(1).any(1)
    assert changed[has].flatten(1).any(1).all()
    assert (int(has.sum()), set(data.labels[has].tolist())) == (6, {1})
    if kind in ("tag", "watermark"):
        assert regions[has].float().mean() == pytest.approx(AREA, rel=0.3)


def test_lines_have_names_of_their_own_and_only_parts_can_be_ignored():
    assert len({line.name for line in TABLE}) == len(TABLE)
    assert Line("eurosat").can_be_ignored
    assert not any(
        line.can_be_ignored for line in TABLE if line.kind in ("blur", "frequency") or not line.share
    )


@pytest.mark.slow
def test_the_study_runs_and_its_tables_have_a_row_for_each_line(tmp_path):
    result = run(tmp_path, quick=True)
    clean, tagged = result.values["rows"]
    assert clean["second"] is None
    assert tagged["second"]["caught"] is not None
    assert set(result.config["weights"]) >= {
        "painted-tag-100-anywhere-0 first",
        "painted-tag-100-anywhere-0 second",
    }
    text = section(result, Pictures(None))
    assert text.count("| painted |") == 4
    assert run(tmp_path, quick=True, done=True).values == result.values
