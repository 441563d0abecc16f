"""The truth of maps: every measure of every method, those that know nothing among them."""

from made_up import section

from torchsite.metrics import IGNORANT
from torchsite.paper import truth, truth_steps
from torchsite.results import Result


def test_a_slice_measures_all_and_goes_on_from_its_steps(folder):
    place = folder / "mnist_truth-quick"
    lane = truth_steps.measure("mnist", place, models=("black_box",), quick=True)
    steps = {path.name: path.stat().st_mtime_ns for path in (place / "steps").iterdir()}
    assert lane == len(steps)
    result = truth.run("mnist", place, methods=["self_explanation", "gradient"], quick=True)
    assert all((place / "steps" / name).stat().st_mtime_ns == time for name, time in steps.items())
    rows = {(row["model"], row["method"], row["metric"]) for row in result.values["table"]}
    assert {("site", "self_explanation", name) for name in truth_steps.N_PICTURES} <= rows
    assert Result.load(place / "mnist_truth.json").values == result.values
    text = section(result)
    assert "SITE's own maps: calibrated consistency is " in text
    assert "| SITE itself | on SITE |" in text
    assert list(truth.figures(result, {})) == ["mnist_truth"]
    ignorant = [name for name in steps if "ignorant" in name]
    assert len(ignorant) == len(IGNORANT) * len(truth_steps.N_PICTURES)
