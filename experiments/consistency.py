"""Self-consistency of SITE and of every post-hoc method, on SITE and on the black box (the paper's Table 1).

Claim:    SITE's own explanation follows the picture better than any post-hoc one, on either model,
          calibrated by its floor and centred. The paper claims it for the raw score (0.8860 on CIFAR-10),
          where maps that hardly depend on the picture, such as RISE's, are ahead here.
Command:  torchsite reproduce cifar10_consistency   (or mnist_consistency)
Cost:     the whole test set, each picture in one pose; some hundred for the methods that ask many
          times (`STUDY`), RISE and extremal perturbation, which the paper left out, among them. CIFAR-10
          with the pyramid: 65 minutes of one core, about 35 on two, half of it for these two; each line of
          the result says what it cost. With --quick, a dozen digits.
"""

from collections.abc import Mapping, Sequence

from experiments.measuring import Asked
from experiments.study import Study, as_lines
from experiments.tables import CONSISTENCY, Columns, Row, Table, lines_of, notes_on, row_name
from torchsite.attribution import METHODS
from torchsite.report.format import look_up, number
from torchsite.results import Result

MEASURE = "self_consistency"
# Raw self-consistency on CIFAR-10: on SITE, on the black box.
PAPER: Mapping[str, tuple[float | None, float | None]] = {
    "self_explanation": (0.8860, None),
    "grad_cam": (0.8817, 0.8416),
    "guided_backprop": (0.7830, 0.8168),
    "excitation_backprop": (0.1159, 0.2460),
    "gradient": (0.7174, 0.6926),
    "linear_approximation": (0.8485, 0.4183),
    "deconvnet": (0.8591, 0.7721),
}


def first(table: Sequence[Row]) -> dict[str, str]:
    """Who is first in each score, among all methods on both models."""
    found = {}
    for name in ("raw", "calibrated", "centred"):
        scores = {row_name(row): look_up(row, MEASURE, name, "value") for row in table}
        known = {who: value for who, value in scores.items() if value is not None}
        if known:
            found[name] = max(known, key=lambda who: known[who])
    return found


def words(result: Result) -> str:
    """How many rows there are, and who is first."""
    leaders = ", ".join(f"{name}: {who}" for name, who in first(result.values["table"]).items())
    n_rows = sum(look_up(line, MEASURE) is not None for line in lines_of(result))
    return f"Of the {n_rows} rows that were measured, first in {leaders}.\n\n"


def of_the_paper(line: Row) -> float | None:
    """The paper's raw score, if it has one of this method on this kind of model and these pictures."""
    known = PAPER.get(line["method"], (None, None)) if line["recipe"] == "cifar10" else (None, None)
    return known[line["model"] != "site"]


COLUMNS: Columns = {
    **{name: (MEASURE, name) for name in CONSISTENCY},
    "paper, raw": lambda line: number(of_the_paper(line)),
    "pictures": lambda line: f"{line['n_images']:,}",
    "ms a picture": lambda line: number(line["ms_per_image"], 2),
}
STUDY = Study(
    "{}_consistency",
    "## {}: self-consistency (Table 1)",
    [Table(COLUMNS, digits=4, interval=True)],
    {MEASURE: Asked(10_000, passes=45_000)},
    methods=tuple(METHODS),
    gather=as_lines(lambda row: {MEASURE: {name: row["values"][name] for name in CONSISTENCY}}),
    words=words,
    notes=notes_on,
    shown=CONSISTENCY,
    chart="Raw, floor, calibrated and centred self-consistency of all methods",
)
