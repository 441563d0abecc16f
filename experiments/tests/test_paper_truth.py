"""The truth of maps: every measure of every method, those that know nothing among them."""

import pytest
from made_up import section

from experiments import truth
from experiments.measuring import Asked, Explaining
from torchsite.results import Result

METHODS = ["self_explanation", "gradient", "ignorant_frame_template"]


@pytest.mark.slow
def test_a_slice_measures_all_and_goes_on_from_its_steps(tmp_path):
    place = tmp_path / "mnist_truth-quick"
    lane = truth.STUDY.measure("mnist", place, models=("black_box",), methods=METHODS, quick=True)
    steps = {path: path.stat().st_mtime_ns for path in (place / "steps").iterdir()}
    assert lane == len(steps) == 2 * len(truth.STUDY.measures)
    result = truth.STUDY.run("mnist", place, methods=METHODS, quick=True)
    defined = {path: time for path, time in steps.items() if Result.load(path).values["cells"][0]["values"]}
    assert len(defined) >= 10
    assert all(path.stat().st_mtime_ns == time for path, time in defined.items())
    rows = {(row["model"], row["method"], row["metric"]) for row in result.values["table"]}
    assert {("site", "self_explanation", name) for name in truth.STUDY.measures} <= rows
    assert Result.load(place / "mnist_truth.json").values == result.values
    text = section(result)
    assert "SITE's own maps: calibrated consistency is " in text
    assert "| SITE itself | on SITE |" in text
    assert "| knows nothing: frame template | on the black box |" in text
    assert "a score that they reach is no merit." in text
    assert "Not measured yet: " in text
    assert "RISE" in text.partition("Not measured yet: ")[2]
    assert list(truth.STUDY.figures(result, {})) == ["mnist_truth"]


def test_slow_methods_see_fewer_pictures_and_a_slice_a_few():
    fast, slow = (Explaining("any", lambda _: None, {}, passes > 100, passes) for passes in (1, 500))
    amount = Asked(1000, passes=10_000)
    assert [amount.of(one) for one in (fast, slow)] == [1000, 20]
    assert [amount.of(one, quick=True) for one in (fast, slow)] == [12, 4]
    assert Asked(1000, slow=16).of(slow) == 16
    assert Asked(8, slow=16).of(slow) == 8
    assert Asked(200).of(slow) == 200
    assert Asked(200, passes=100).of(slow) == 1
    assert Asked(200, slow=0).of(slow) == Asked(200, slow=0).of(slow, quick=True) == 0
