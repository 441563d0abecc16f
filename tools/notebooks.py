"""The notebooks of docs/notebooks: read, run, and written as a page or as a file for Jupyter.

A notebook is a Python file in the percent format that Jupyter, VS Code and PyCharm open: `# %%` begins a
cell of code, `# %% [markdown]` one of text in comments. No kernel is needed to run one: cells are executed in
order, what they print and what their last line gives is their output.
"""

import ast
import base64
import contextlib
import io
import json
import re
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from torchsite.model.drawing import png

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
DPI = 110


@dataclass(frozen=True)
class Cell:
    """Text, or code with what came of it."""

    text: str
    is_code: bool
    said: str = ""
    figure: bytes = b""


def read_cells(text: str) -> list[Cell]:
    """The cells of a file in the percent format."""
    parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)[1:]
    return [_cell(kind, body.strip("\n")) for kind, body in zip(parts[::2], parts[1::2], strict=True)]


def _cell(kind: str, body: str) -> Cell:
    if "[markdown]" not in kind:
        return Cell(body, is_code=True)
    return Cell("\n".join(line.removeprefix("#").removeprefix(" ") for line in body.splitlines()), False)


def run_cells(cells: list[Cell], folder: Path) -> list[Cell]:
    """All cells after one another, in one namespace, with `folder` as the place to write."""
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        return [_run(cell, names, number) if cell.is_code else cell for number, cell in enumerate(cells)]


def _run(cell: Cell, names: dict[str, object], number: int) -> Cell:
    tree, last = ast.parse(cell.text), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = None if last is None else eval(compile(last, f"cell {number}", "eval"), names)
    if isinstance(value, Figure):
        return replace(cell, said=said.getvalue(), figure=png(value, DPI))
    answer = "" if value is None else f"{value!r}\n"
    return replace(cell, said=said.getvalue() + answer)


def to_markdown(cells: list[Cell], name: str) -> tuple[str, dict[str, bytes]]:
    """The page, and the pictures that it shows by name."""
    blocks, pictures = [], {}
    for number, cell in enumerate(cells):
        blocks.append(f"```python\n{cell.text}\n```" if cell.is_code else cell.text)
        if cell.said:
            blocks.append(textwrap.indent(cell.said.rstrip("\n"), "    "))
        if cell.figure:
            pictures[f"{name}-{number}.png"] = cell.figure
            blocks.append(f"![What the cell above drew]({name}-{number}.png)")
    return "\n\n".join(blocks) + "\n", pictures


def to_ipynb(cells: list[Cell]) -> str:
    """The notebook with its outputs, as Jupyter keeps it."""
    metadata = {"language_info": {"name": "python"}}
    content = [_to_json(cell, f"cell-{number}") for number, cell in enumerate(cells)]
    return json.dumps({"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _to_json(cell: Cell, name: str) -> dict[str, object]:
    common = {"id": name, "metadata": {}, "source": cell.text.splitlines(keepends=True)}
    if not cell.is_code:
        return common | {"cell_type": "markdown"}
    outputs: list[dict[str, object]] = []
    if cell.said:
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": cell.said.splitlines(keepends=True)}
        )
    if cell.figure:
        data = {"image/png": base64.b64encode(cell.figure).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return common | {"cell_type": "code", "execution_count": None, "outputs": outputs}
