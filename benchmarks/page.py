"""The page without a server: how large it is, how soon it is there, how often it is renewed under a hand.

Claim:    at most 25 MB; first view within 2 s of the first byte asked for; 30 updates a second, 60 for MNIST.
Command:  python benchmarks/page.py [--seconds 10] [--model NAME …] [--out results/page.json]
Prints:   for each model: megabytes, seconds to the first view (median of several visits, each with an empty
          cache), updates a second while the picture is moved, milliseconds of the main thread per update,
          and the load of the machine, before and after: other work makes all times longer.

A server of files and a headless Chromium without a GPU. The hand moves some 200 times a second, so that
the page and not the hand is the limit; every update is a whole renewal of the page.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, load, shipped_models
from torchsite.results import Result
from torchsite.web.page import write_page
from torchsite.web.runtime import VERSION, runtime_files

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
DESK = {"width": 1280, "height": 860}
VISITS = 5
MOVE = """async (milliseconds) => {
    const stage = document.getElementById("stage");
    const main = document.querySelector("main");
    const box = stage.getBoundingClientRect();
    const said = (name, x, y) => stage.dispatchEvent(
        new PointerEvent(name, { pointerId: 1, clientX: box.left + x, clientY: box.top + y, bubbles: true }));
    stage.setPointerCapture = () => {}; // there is no pointer of that number
    const middle = box.width / 2;
    said("pointerdown", middle, middle + 20);
    const before = Number(main.dataset.updates);
    const start = performance.now();
    let now = start;
    while ((now = performance.now()) - start < milliseconds) {
        said("pointermove", middle + 40 * Math.cos(now / 500), middle + 40 * Math.sin(now / 500));
        await new Promise((done) => setTimeout(done, 4));
    }
    const updates = Number(main.dataset.updates) - before;
    said("pointerup", middle, middle);
    return { updates, seconds: (now - start) / 1000 };
}"""
FIRST = 'main:not([data-updates="0"])'  # a function to wait for would need what the page's policy forbids


class Quiet(SimpleHTTPRequestHandler):
    """What `python -m http.server` answers with, without its log."""

    def log_message(self, *said: Any) -> None:
        """Nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of the files of a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def first_view(browser: Any, address: str) -> float:
    """Seconds from the address to the first whole answer, for a visitor who was never here."""
    context = browser.new_context(viewport=DESK)
    page = context.new_page()
    start = time.monotonic()
    page.goto(address, wait_until="commit")
    page.locator(FIRST).wait_for()
    took = time.monotonic() - start
    context.close()
    return took


def updates(browser: Any, address: str, seconds: float) -> dict[str, float]:
    """Renewals a second while the picture is moved, and what each costs the main thread."""
    page = browser.new_page(viewport=DESK)
    page.goto(f"{address}/#sample=1&angle=20")
    page.locator(FIRST).wait_for()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.evaluate(MOVE, 2000)  # what is used often has been compiled by then
    busy = _busy(session)
    found = page.evaluate(MOVE, 1000 * seconds)
    cost = (_busy(session) - busy) / max(1, found["updates"])
    page.close()
    rate = found["updates"] / found["seconds"]
    return {"updates_per_second": round(rate, 1), "main_thread_milliseconds": round(1000 * cost, 2)}


def _busy(session: Any) -> float:
    """Seconds that the main thread has worked so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def measured(browser: Any, name: str, model: SITE, folder: Path, seconds: float) -> dict[str, Any]:
    """All figures of one page."""
    written = write_page(model, name, folder, runtime_files())
    before = os.getloadavg()[0]
    with serving(folder) as address:
        views = [first_view(browser, address) for _ in range(VISITS)]
        moved = updates(browser, address, seconds)
    return {
        "megabytes": round(written.bytes / 1e6, 1),
        "max_difference": written.max_difference,
        "first_view_seconds": round(statistics.median(views), 2),
        **moved,
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
    }


def main() -> None:
    """Measure everything, print it, and keep it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if CHROMIUM is None or importlib.util.find_spec("playwright") is None:
        print("nothing is measured: Chromium and playwright are needed")
        return
    from playwright.sync_api import sync_playwright

    start, found = time.monotonic(), {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in options.model or shipped_models():
            model = load(name)
            if isinstance(model, SITE):
                found[name] = measured(browser, name, model, Path(folder) / name, options.seconds)
                print(f"{name}: {found[name]}", flush=True)
        version = browser.version
        browser.close()
    if options.out:
        weights = {name: weights_of(load(name)) for name in found}
        config = {
            "weights": weights,
            "seconds": options.seconds,
            "visits": VISITS,
            "chromium": version,
            "runtime": VERSION,
        }
        Result("page", {"pages": found}, config, 0, round(time.monotonic() - start, 1)).save(options.out)


if __name__ == "__main__":
    main()
