"""One way to write a number, a name, a table."""

import pytest

from torchsite.metrics import METRICS
from torchsite.report.format import (
    HEADLINES,
    estimate,
    headline,
    look_up,
    markdown_table,
    method_name,
    number,
    score,
    score_name,
    score_paths,
    words,
)
from torchsite.results import Result

KNOWN = {"value": 0.5, "low": 0.25, "high": 0.75}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (KNOWN, "0.5000  [0.2500, 0.7500]"),
        ({"value": 0.5, "low": None, "high": None}, "0.5000"),
        ({"value": None, "low": None, "high": None}, "–"),
        (1.3e-6, "1.3e-06"),
        (None, "–"),
        ("a text", "–"),
    ],
)
def test_an_estimate_is_written_as_far_as_it_is_there(found, text):
    assert estimate(found) == text


def test_digits_and_intervals_are_the_callers():
    assert estimate(KNOWN, 2, interval=False) == "0.50"
    assert number(None) == "–"
    assert number(2 / 3, 1) == "0.7"


def test_scores_are_found_by_their_place():
    assert score({"a": {"b": KNOWN}}, "a", "b", digits=1) == "0.5  [0.2, 0.8]"
    assert score({}, "a") == "–"
    assert look_up({"a": {"b": 1}}, "a", "c") is None


def test_names_of_the_code_become_words():
    assert words("transformed.tau_0.score") == "transformed τ0 score"
    assert method_name("grad_cam") == "Grad-CAM"
    assert method_name("my_own") == "my own"


def test_a_table_escapes_what_would_end_a_cell():
    assert markdown_table(["", "|w|"], [["a", "1"]]) == "|  | \\|w\\| |\n| --- | ---: |\n| a | 1 |\n"


def test_every_measure_has_headlines_without_being_listed():
    other = next(name for name in METRICS if name not in {path[0] for path in HEADLINES.values()})
    (path,) = score_paths({}, METRICS[other].headline[0])
    values = {other: {path[0]: KNOWN}}
    assert list(headline(Result("any", values, {}, 0, 0.0)).values()) == [estimate(KNOWN)]


def test_a_headline_of_fillings_is_shown_for_each_of_them():
    pattern = "fills.*.accuracy.area"
    both = {"fills": {"black": {}, "Colour(values=(0.5,))": {}}}
    assert score_paths(both, pattern) == [("fills", name, "accuracy", "area") for name in both["fills"]]
    assert score_paths({}, pattern) == [("accuracy", "area")], "files from before have one filling"
    assert score_name(score_paths(both, pattern)[0]) == "black accuracy area"
    found = {"deletion": {"fills": {name: {"area": KNOWN} for name in ("black", "blur")}}}
    shown = headline(Result("any", found, {}, 0, 0.0))
    assert list(shown) == ["deletion, black area", "deletion, blur area"]
