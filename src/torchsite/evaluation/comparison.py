"""The cells of a comparison: what was measured, under which settings, and how they become a result file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torchsite.errors import ConfigError
from torchsite.metrics.estimate import look_up
from torchsite.results import Result

MODEL = "model"  # the row of measures that look at the model alone


@dataclass(frozen=True)
class Cell:
    """One measure of one method: its values, or the reason why there are none; and what it cost."""

    method: str
    metric: str
    options: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None
    reason: str | None = None
    seconds: float = 0.0
    explain_seconds: float = 0.0
    n_explained: int = 0

    def score(self, path: str) -> Any:
        """A score by its dotted name, such as "transformed.tau_0.score"; None if the cell has a reason."""
        return look_up(self.values, *path.split("."))


@dataclass(frozen=True)
class Comparison:
    """The cells of a table, and the settings under which all of them were found."""

    config: Mapping[str, Any]
    seed: int
    cells: tuple[Cell, ...] = ()
    seconds: float = 0.0

    @property
    def methods(self) -> list[str]:
        """The rows, in order, the model itself first."""
        names = dict.fromkeys(cell.method for cell in self.cells)
        return sorted(names, key=lambda name: name != MODEL)

    @property
    def metrics(self) -> list[str]:
        """The measures, in order."""
        return list(dict.fromkeys(cell.metric for cell in self.cells))

    def cell(self, method: str, metric: str) -> Cell | None:
        """The cell of a method and a measure, if there is one."""
        found = [cell for cell in self.cells if (cell.method, cell.metric) == (method, metric)]
        return found[0] if found else None

    def cost(self, method: str) -> float | None:
        """Milliseconds per explained image, over all cells of the method."""
        cells = [cell for cell in self.cells if cell.method == method]
        n = sum(cell.n_explained for cell in cells)
        return 1000 * sum(cell.explain_seconds for cell in cells) / n if n else None

    def with_cell(self, cell: Cell) -> "Comparison":
        """The comparison with one cell more, or another in its place."""
        others = [c for c in self.cells if (c.method, c.metric) != (cell.method, cell.metric)]
        return replace(self, cells=(*others, cell), seconds=self.seconds + cell.seconds)

    def only(self, keys: Sequence[tuple[str, str]]) -> "Comparison":
        """The cells of these methods and measures, in this order."""
        found = [self.cell(method, metric) for method, metric in keys]
        return replace(self, cells=tuple(cell for cell in found if cell is not None))

    def to_result(self) -> Result:
        """As a result, ready to be saved."""
        values = {"cells": [asdict(cell) for cell in self.cells]}
        return Result("comparison", values, self.config, self.seed, self.seconds)

    @classmethod
    def from_result(cls, result: Result) -> "Comparison":
        """Back from a result."""
        if result.name != "comparison":
            raise ConfigError(f"expected the result of a comparison, got that of {result.name!r}")
        cells = tuple(Cell(**cell) for cell in result.values["cells"])
        return cls(result.config, result.seed, cells, result.seconds)

    def save(self, path: Path | str) -> Path:
        """Write the result file."""
        return self.to_result().save(path)

    @classmethod
    def load(cls, path: Path | str) -> "Comparison":
        """Read a result file."""
        return cls.from_result(Result.load(path))
