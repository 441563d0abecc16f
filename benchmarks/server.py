"""The page and its server: updates a second under a dragging hand, and the server under a crowd.

Claim:    a drag gives at least 10 updates a second on two cores; a crowd meets no failure, memory stays flat.
Command:  python benchmarks/server.py [--seconds 20] [--clients 8] [--model FOLDER] [--out results/web.json]
Prints:   for each SITE model: updates a second in Chromium, its own explanation alone and beside Grad-CAM;
          requests a second, median and 99th percentile of their times, failures, memory before and after.

Server, browser and clients share the machine. Every update is a whole renewal of the page: one request, both
maps of each explainer, all bars, prototypes and contrasts. Times are the clients', waiting included.
"""

import argparse
import http.client
import importlib.util
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import load as open_model
from torchsite.model import shipped_models
from torchsite.results import Result

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
SERVE = "from torchsite.cli import main; main()"

N_SAMPLES = 5  # every model has as many


@dataclass
class Crowd:
    """What the clients of a load test saw."""

    seconds: list[float] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    megabytes: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Load:
    """A load test in figures."""

    requests: int
    per_second: float
    p50_milliseconds: float
    p99_milliseconds: float
    failures: dict[str, int]
    megabytes_before: float
    megabytes_after: float


@contextmanager
def server(folders: list[Path]) -> Iterator[tuple[str, int]]:
    """`torchsite serve` in a process of its own: its address without the scheme, and its process id."""
    words = [word for folder in folders for word in ("--model", str(folder))]
    command = [sys.executable, "-c", SERVE, "serve", "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = (re.search(r"http://(\S+)", line) for line in process.stdout)
            yield next(match[1] for match in found if match), process.pid
        finally:
            process.terminate()


def get(address: str, path: str) -> str:
    """The body of a page."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    body = connection.getresponse().read().decode()
    connection.close()
    return body


def megabytes(process: int) -> float:
    """The resident memory of the server, as Linux counts it."""
    match = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(), flags=re.MULTILINE)
    assert match
    return float(match[1]) / 2**10


def update_rate(browser: Any, address: str, model: str, second: str, seconds: float) -> float:
    """Renewals a second while a mouse drags the picture in circles."""
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.goto(f"http://{address}/#model={quote(model)}&sample=1&second={quote(second)}")
    box = page.locator("#stage").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    while updates(page) < 2:
        page.wait_for_timeout(100)
    page.mouse.move(*middle)
    page.mouse.down()
    drag_for(page, middle, 2)
    before, start = updates(page), time.monotonic()
    drag_for(page, middle, seconds)
    after, end = updates(page), time.monotonic()
    page.mouse.up()
    page.close()
    return (after - before) / (end - start)


def updates(page: Any) -> int:
    """How often the page was renewed so far."""
    return int(page.locator("main").get_attribute("data-updates"))


def drag_for(page: Any, middle: tuple[float, float], seconds: float) -> None:
    """Move the mouse on a circle, about 60 times a second."""
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        angle = 2 * math.pi * elapsed / 3
        page.mouse.move(middle[0] + 50 * math.cos(angle), middle[1] + 50 * math.sin(angle))
        page.wait_for_timeout(16)


def rates(address: str, models: list[dict[str, Any]], seconds: float) -> dict[str, dict[str, float]]:
    """Update rates of all models that explain themselves; none where there is no browser."""
    if CHROMIUM is None or importlib.util.find_spec("playwright") is None:
        print("no update rates: Chromium and playwright are needed")
        return {}
    from playwright.sync_api import sync_playwright

    found: dict[str, dict[str, float]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for model in models:
            name = model["name"]
            boxes = [other for other in model["companions"] if other.endswith("black_box")]
            beside = {"alone": f"self_explanation@{name}", "beside Grad-CAM": f"grad_cam@{(*boxes, name)[0]}"}
            found[name] = {
                title: round(update_rate(browser, address, name, second, seconds), 1)
                for title, second in beside.items()
            }
            print(f"{name}: updates a second {found[name]}", flush=True)
        browser.close()
    return found


def client(address: str, model: str, number: int, until: float, crowd: Crowd) -> None:
    """One of the crowd: asks again as soon as it is answered, another pose each time."""
    connection = http.client.HTTPConnection(address, timeout=120)
    turn = 37 * number
    while time.monotonic() < until:
        turn += 11
        pose = {"angle": turn % 360 - 180, "right": 0.2 * math.sin(turn), "down": 0.2 * math.cos(turn)}
        body = json.dumps({"sample": turn % N_SAMPLES, **pose})
        start = time.perf_counter()
        try:
            connection.request(
                "POST", f"/api/explain?model={quote(model)}", body, {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            response.read()
            outcome = str(response.status)
        except (OSError, http.client.HTTPException) as error:
            outcome = type(error).__name__
            connection.close()
        if outcome == "200":
            crowd.seconds.append(time.perf_counter() - start)
        else:
            crowd.failures[outcome] = crowd.failures.get(outcome, 0) + 1
    connection.close()


def load(address: str, process: int, model: str, n_clients: int, seconds: float) -> Load:
    """A crowd asks for some time; memory is read after a warm-up of the same crowd, and at the end."""
    for length, crowd in ((seconds / 4, Crowd()), (seconds, Crowd())):
        before = megabytes(process)
        until = time.monotonic() + length
        threads = [
            threading.Thread(target=client, args=(address, model, i, until, crowd)) for i in range(n_clients)
        ]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - start
    times = sorted(crowd.seconds)
    return Load(
        requests=len(times),
        per_second=round(len(times) / took, 1),
        p50_milliseconds=round(1000 * statistics.median(times), 1),
        p99_milliseconds=round(1000 * times[min(len(times) - 1, int(0.99 * len(times)))], 1),
        failures=crowd.failures,
        megabytes_before=round(before, 1),
        megabytes_after=round(megabytes(process), 1),
    )


def main() -> None:
    """Measure everything, print it, and keep it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--model", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    start = time.monotonic()
    with server(options.model) as (address, process):
        models = [one for one in json.loads(get(address, "/api/models")) if one["kind"] == "site"]
        found = rates(address, models, options.seconds)
        loads: dict[str, dict[str, Any]] = {}
        for model in models:
            loads[model["name"]] = asdict(
                load(address, process, model["name"], options.clients, options.seconds)
            )
            print(f"{model['name']}: {options.clients} clients {loads[model['name']]}", flush=True)
    if options.out:
        weights = {
            place.name: weights_of(open_model(place))
            for place in (*shipped_models().values(), *options.model)
        }
        config = {"weights": weights, "seconds": options.seconds, "clients": options.clients}
        values = {"updates_per_second": found, "load": loads}
        Result("web", values, config, 0, round(time.monotonic() - start, 1)).save(options.out)


if __name__ == "__main__":
    main()
