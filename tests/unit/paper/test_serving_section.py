"""The section about the page says what the benchmark measured, failures included."""

from torchsite.paper.pages import results_page
from torchsite.results import Result

LOAD = {
    "requests": 1234,
    "per_second": 41.1,
    "p50_milliseconds": 150.2,
    "p99_milliseconds": 310.7,
    "failures": {"503": 2, "500": 1},
    "megabytes_before": 700.2,
    "megabytes_after": 703.9,
}


def page_of(folder, rates):
    values = {"updates_per_second": rates, "load": {"mnist": LOAD}}
    Result("web", values, {"seconds": 30.0, "clients": 8}, 0, 90.0).save(folder / "web.json")
    return results_page(folder)


def test_rates_loads_and_failures_have_their_columns(tmp_path):
    page = page_of(tmp_path, {"mnist": {"alone": 23.4, "beside Grad-CAM": 14.0}})
    assert "| mnist | 23.4 | 14.0 |" in page
    assert "8 clients for 30 seconds" in page
    assert "| mnist | 1,234 | 41.1 | 150 | 311 | 3 | 700 → 704 |" in page


def test_without_a_browser_there_are_no_rates(tmp_path):
    page = page_of(tmp_path, {})
    assert "in Chromium" not in page
    assert "| mnist | 1,234 |" in page
