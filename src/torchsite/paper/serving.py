"""The section of docs/results.md about the page and its server."""

from torchsite.paper.text import markdown_table
from torchsite.results import Result


def web_section(result: Result) -> str:
    """How often the page follows a dragging hand, and how the server bears a crowd."""
    rates, loads, config = result.values["updates_per_second"], result.values["load"], result.config
    parts = [
        "## The page and its server\n",
        f"`python benchmarks/server.py` → `results/web.json` ({result.time}). Server, browser and clients "
        "share two cores. An update renews the whole page: both maps of each explainer, all bars, prototypes "
        "and contrasts. Asked: at least 10 a second.\n",
    ]
    if rates:
        columns = list(next(iter(rates.values())))
        rows = [[model, *(f"{rate[column]:.1f}" for column in columns)] for model, rate in rates.items()]
        parts.append(markdown_table(["updates a second, in Chromium", *columns], rows))
    rows = [
        [
            model,
            f"{load['requests']:,}",
            f"{load['per_second']:.1f}",
            f"{load['p50_milliseconds']:.0f}",
            f"{load['p99_milliseconds']:.0f}",
            str(sum(load["failures"].values())),
            f"{load['megabytes_before']:.0f} → {load['megabytes_after']:.0f}",
        ]
        for model, load in loads.items()
    ]
    title = f"{config['clients']} clients for {config['seconds']:g} seconds"
    header = [title, "requests", "a second", "p50, ms", "p99, ms", "failures", "memory, MB"]
    return "\n".join([*parts, markdown_table(header, rows)])
