"""What each measure of a table cost: passes by its law, times from the rows of the result file."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from torch import nn

from experiments.bam import METRICS_OF_PAIRS
from experiments.study import IGNORANT_MARK, Row
from torchsite.attribution import METHODS
from torchsite.metrics import METRICS, Passes, Poses, as_explainer
from torchsite.report.format import NOTHING, markdown_table
from torchsite.shapes import Heatmaps, Images, Labels

# The options on which the number of passes depends.
COUNTED = ("fills", "fill", "fractions", "grid", "sides")
HEADER = ("measure", "maps a picture", "answers a picture", "ms a picture, first", "others", "of the time")
WORDS = """
What each measure costs: how many maps of the explainer and answers of the model it asks for each picture
(larger ones count for their pixels), and how long it took in this run, with methods of few passes on SITE.
Answers are remembered for all explainers, and maps for the measures of one: so the first explainer pays for
answers, the others for maps alone, and a measure pays for nothing that one before it has asked. Shares are of
the time of the whole table, on a machine that did other work as well.

"""


def passes_of(metric: str, options: Mapping[str, Any], n_transforms: int) -> Passes | None:
    """What a measure asks for a picture with the options of a row."""
    own = {name: options[name] for name in COUNTED if name in options}
    nobody = as_explainer(_no_map, nn.Identity())
    usual: dict[str, Any] = {"poses": Poses(n=n_transforms), "n_resamples": 0}
    kind: Any = {**METRICS, **METRICS_OF_PAIRS}[metric]
    measure = kind(nobody, nobody, **usual) if metric in METRICS_OF_PAIRS else kind(nobody, **usual, **own)
    passes: Passes | None = measure.passes()
    return passes


def costs_of(table: Sequence[Row], n_transforms: int) -> str:
    """A table of costs, in the order in which measures were made; empty if the rows hold no times."""
    timed = [row for row in table if row.get("seconds") and row["values"] is not None]
    total = sum(row["seconds"] for row in timed)
    rows = []
    for metric in dict.fromkeys(row["metric"] for row in timed):
        own = [row for row in timed if row["metric"] == metric]
        quick = [row for row in own if row["model"] == "site" and _is_fast(row["method"])]
        passes = passes_of(metric.split(" ")[-1], (quick or own)[0]["options"], n_transforms)
        asked = [NOTHING] * 2 if passes is None else [str(n) for n in passes]
        spent = [1000 * row["seconds"] / row["n_images"] for row in quick]
        share = sum(row["seconds"] for row in own) / total
        rows.append([metric.replace("_", " "), *asked, *_first_and_others(spent), f"{share:.0%}"])
    return WORDS + markdown_table(HEADER, rows) if rows else ""


def _first_and_others(milliseconds: Sequence[float]) -> list[str]:
    first, others = milliseconds[:1], milliseconds[1:]
    return [f"{median(part):.1f}" if part else NOTHING for part in (first, others)]


def _is_fast(method: str) -> bool:
    """Whether it is a method of few passes; map-makers that know nothing take none."""
    known = METHODS.get(method)
    return not method.startswith(IGNORANT_MARK) and (known is None or not known.is_slow())


def _no_map(images: Images, classes: Labels) -> Heatmaps:
    return images[:, 0]
