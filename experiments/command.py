"""What `torchsite reproduce` does in a checkout: list experiments, run them, publish what they found."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from experiments.publish import draw_figures, find_checkout, publish
from experiments.registry import EXPERIMENTS, Experiment, find_experiment, plan
from torchsite.cli.terminal import say_figures, say_json, terminal
from torchsite.errors import ConfigError, NotApplicableError, TorchsiteError
from torchsite.report.format import headline

ALL = "all"


def list_experiments(as_json: bool) -> None:
    """Print the name of each experiment, and what it shows."""
    shows = {name: experiment.shows for name, experiment in EXPERIMENTS.items()}
    if as_json:
        say_json(shows)
        return
    table = Table("experiment", "shows")
    for row in shows.items():
        table.add_row(*row)
    terminal().print(table)


def run_experiments(
    name: str, out: Path, rows: Mapping[str, Any], *, quick: bool, publishing: bool, as_json: bool
) -> None:
    """Run one experiment, or all that are not done; of all, those that fail are named at the end."""
    if publishing and quick:
        raise ConfigError("--publish is for whole runs: leave --quick away")
    if name == ALL and quick:
        raise ConfigError("`all` is for whole runs: leave --quick away, or name one experiment")
    chosen = [find_experiment(name)] if name != ALL else _planned(plan(out))
    checkout = find_checkout(Path.cwd()) if publishing else None
    failed = []
    for experiment in chosen:
        try:
            _run(experiment, out, rows, checkout, quick=quick, as_json=as_json)
        except TorchsiteError as error:
            if name != ALL:
                raise
            terminal(stderr=True).print(f"{experiment.name}: {error}")
            failed.append(experiment.name)
    if failed:
        raise NotApplicableError(f"{len(failed)} of {len(chosen)} could not be run: {', '.join(failed)}")


def _planned(experiments: Sequence[tuple[Experiment, bool]]) -> list[Experiment]:
    """What is not done yet, after a table of what is and what the rest costs."""
    table = Table("experiment", "CPU minutes", "state")
    for experiment, done in experiments:
        table.add_row(experiment.name, f"{experiment.minutes:g}", "done" if done else "to do")
    left = [experiment for experiment, done in experiments if not done]
    terminal(stderr=True).print(table)
    minutes = sum(experiment.minutes for experiment in left)
    terminal(stderr=True).print(
        f"{len(left)} of {len(experiments)} to do, about {minutes / 60:.0f} hours of one core; delete a "
        "result from the folder of its run to have it measured again"
    )
    return left


def _run(
    experiment: Experiment,
    out: Path,
    rows: Mapping[str, Any],
    checkout: Path | None,
    *,
    quick: bool,
    as_json: bool,
) -> None:
    place = out / (f"{experiment.name}-quick" if quick else experiment.name)
    result = experiment.run(place, quick=quick, progress=terminal(stderr=True).is_terminal, **rows)
    drawn = draw_figures(experiment, place)
    published = [] if checkout is None else publish(experiment, place, checkout)
    if as_json:
        say_json(asdict(result))
        return
    say_figures(headline(result))
    for path in drawn:
        terminal().print(f"figure: {path}")
    terminal().print(f"the result file is in {place}")
    for path in published:
        terminal().print(f"published: {path}")
