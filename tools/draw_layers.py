"""Draw the layers of the house from the list that the tests enforce: docs/pictures/layers.svg."""

import runpy
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "layers.svg"
LAYERS = runpy.run_path(str(ROOT / "tests" / "architecture" / "layers.py"))["LAYERS"]
WIDTH, ROW, GAP, LEFT, CHARACTER, MARGIN = 860, 34, 8, 40, 7.4, 22


def rows_of(parts: set[str]) -> list[list[str]]:
    """The parts of a layer in lines that fit the picture."""
    lines: list[list[str]] = [[]]
    for part in sorted(parts):
        if sum(width_of(one) + GAP for one in [*lines[-1], part]) > WIDTH - LEFT - MARGIN:
            lines.append([])
        lines[-1].append(part)
    return lines


def width_of(part: str) -> float:
    """How wide the box of a part is."""
    return CHARACTER * len(part) + MARGIN


def draw(layers: list[set[str]] = LAYERS) -> str:
    """Later layers above earlier ones: everything stands on what is below it."""
    shapes, y = [], GAP
    for number in range(len(layers), 0, -1):
        lines = rows_of(layers[number - 1])
        height = len(lines) * (ROW + GAP) + GAP
        shade = "#f4f6f8" if number % 2 else "#e9edf1"
        shapes.append(f'<rect x="0" y="{y}" width="{WIDTH}" height="{height}" fill="{shade}"/>')
        shapes.append(f'<text x="12" y="{y + height / 2 + 5}" fill="#667">{number}</text>')
        for line_number, line in enumerate(lines):
            x, top = float(LEFT), y + GAP + line_number * (ROW + GAP)
            for part in line:
                shapes.append(
                    f'<rect x="{x:.1f}" y="{top}" width="{width_of(part):.1f}" height="{ROW}" rx="4" '
                    f'fill="#fff" stroke="#9ab"/><text x="{x + MARGIN / 2:.1f}" y="{top + 22}">'
                    f"{escape(part)}</text>"
                )
                x += width_of(part) + GAP
        y += height + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + GAP}" '
        f'font-family="monospace" font-size="12" fill="#123">\n' + "\n".join(shapes) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
