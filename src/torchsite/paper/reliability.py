"""docs/reliability.md, written from `results/faults.json` and `results/fuzz.json`."""

from pathlib import Path

from torchsite.paper.text import markdown_table
from torchsite.results import Result

INTRODUCTION = """# Reliability

What was done to torchsite on purpose, how often, and what happened. Written by `python
tools/write_results.py` from the files in `results/`; short forms of everything here run with the tests
(`tests/faults`, `tests/fuzz`).
"""

FAULTS_TEXT = """
A run must not lose more than the step it is in. Every fault below fell on a small run of {steps} steps that
saves after each; afterwards the run was resumed, and "as it should" means that it ended with the very bits
of an undisturbed run (two processes against one: to the rounding of float64), or, where there was nothing
to resume, that it stopped with an error that says what to do. `make faults` → `results/faults.json`
({time}).

"""

HOW = """
How it works:

- **Checkpoints** are written beside their place, flushed, and renamed to a name that carries their
  checksum; the one before goes only after the next is there. Resuming takes the newest whose checksum is
  right.
- **Batches, poses and targets are functions of seed and step**, so nothing that a run has drawn must be
  restored.
- **SIGTERM** lets the running step end, writes a checkpoint and ends with exit code 143 (`StoppedError` in
  Python); if one process of several is told, all stop. `--resume` goes on, and begins where nothing was
  begun, so a job script can always give it.
- **A loss that is no number** stops the run, on all processes, and names the pictures of the batch (their
  row numbers in the data set); `last_good/` in the run's folder holds the weights of the last whole epoch.
- **A process that dies under `torchrun --max-restarts`** takes the others with it; all start again from the
  last checkpoint. The new group meets under a name of its own, since `torchrun` remembers the addresses of
  the dead.
- **Image folders** are decoded in shards of 4,096 pictures; finished ones are kept for the next process.
- **Files** (weights, results, exports) appear whole or not at all.

What is not covered: hardware that lies about what it has flushed, and memory errors. Dropout in a module of
your own differs between numbers of processes, since each process draws its own.
"""

FUZZ_TEXT = """
## Bad files

Every reader of files that users bring was fed damaged ones, by a fuzzer that follows which lines of code an
input reaches (atheris, which is libFuzzer for Python), starting from small valid files. A finding would be
an error that is not torchsite's own, a crash, more than {hang} s for an input, more than {memory:,} MB, or
an attempt to start a process or open a connection. `make fuzz` → `results/fuzz.json` ({time}).

"""

FOUND = """
Found by fuzzing, mended, and kept as tests: a recipe of nested YAML aliases whose error message would have
had ten billion words; deeply nested JSON and YAML that ended in Python's own error; dates and numbers in
YAML that cannot be; an idx header with a zero beside sizes that no array has; a small `config.json` that
describes a model larger than memory (the list of tensors is now compared before anything is built); a
pickle of 200 bytes for which Python makes room for two billion values; 16-bit pictures that took forty
bytes a pixel. The HTTP interface is tested by schemathesis, from its own schema (`tests/unit/web`).
"""


def reliability_page(folder: Path) -> str | None:
    """The whole page; None if no campaign was run."""
    sections = [INTRODUCTION]
    for name, section in (("faults", _faults), ("fuzz", _fuzz)):
        path = folder / f"{name}.json"
        if path.is_file():
            sections.append(section(Result.load(path)))
    return "".join(sections) if len(sections) > 1 else None


def _faults(result: Result) -> str:
    rows = [
        [one["what"].rstrip("."), str(one["tried"]), f"{one['survived']} of {one['runs']} runs"]
        for one in result.values.values()
    ]
    text = FAULTS_TEXT.format(steps=result.config["steps"], time=result.time)
    return text + markdown_table(["fault, and what should happen", "tried", "as it should"], rows) + HOW


def _fuzz(result: Result) -> str:
    rows = [
        [
            name,
            f"{one['inputs']:,}" if one["inputs"] is not None else "–",
            f"{one['seconds']:.0f}",
            f"{one['largest memory, MB']}" if one["largest memory, MB"] is not None else "–",
            str(one["findings"]),
        ]
        for name, one in result.values["targets"].items()
    ]
    config = result.config
    text = FUZZ_TEXT.format(hang=config["hang, s"], memory=config["memory, MB"], time=result.time)
    header = ["reader", "inputs tried", "seconds", "memory, MB", "findings"]
    return text + markdown_table(header, rows) + FOUND
