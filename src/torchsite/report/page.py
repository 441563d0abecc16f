"""A self-contained HTML page: style and figures are inline, nothing is loaded.

Layout and style are in `templates/`. Figures are inline SVG: black becomes the colour of the page's text, so
one drawing serves light, dark and paper; pictures inside are embedded pixel by pixel and stay crisp at any
size.
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from importlib import resources
from typing import Any, NamedTuple

import matplotlib
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from torchsite.results import Result

ENLARGED = 1.45  # how far a figure may grow beyond its size in points
READABLE = 0.9  # below this a wide figure scrolls instead of shrinking


class Drawing(NamedTuple):
    """A figure in a page."""

    svg: Markup
    caption: str


class Table(NamedTuple):
    """A table of texts; `folded` is the title of one that is opened by a click."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: str = ""
    notes: Sequence[str] = ()


def prose(name: str) -> dict[str, Any]:
    """The chapters, captions and notes of a kind of report."""
    text: dict[str, Any] = yaml.safe_load(
        resources.files("torchsite.report").joinpath("templates", f"{name}.yaml").read_text(encoding="utf-8")
    )
    return text


def render(
    result: Result,
    text: Mapping[str, Any],
    figures: Mapping[str, Figure],
    tables: Mapping[str, Table],
    cards: Sequence[tuple[str, str, str]],
    findings: Sequence[str],
    answers: str,
) -> str:
    """The HTML; `answers` describes the classes or labels. Everything but our own drawings is escaped.

    Parts that are not there are left out, and so are chapters without any.
    """
    config, model = result.config, result.config["model"]
    kind = "A classifier that explains itself" if model["kind"] == "site" else "A black box"
    shape = "×".join(map(str, model["image_shape"]))
    parts = {name: draw_inline(figure, name, text["captions"][name]) for name, figure in figures.items()}
    harms = [f"The data may mislead the training: {said}." for said in result.values.get("inspection", ())]
    content = {
        "title": f"{kind}: {config['data'].partition('/')[0]}",
        "subtitle": f"{answers}; pictures of {shape}, {config['parameters']:,} parameters, "
        f"{model['feature_extractor']} features. Measured on {config['n_images']:,} pictures of "
        f"{config['data']}, {result.time[:10]}.",
        "cards": cards,
        "findings": [*findings, *harms],
        "figures": parts,
        "tables": tables,
        "chapters": [one for one in text["chapters"] if {*one["parts"]} & {*parts, *tables}],
        "result": result,
        "versions": ", ".join(f"{name} {number}" for name, number in result.versions.items()),
        "settings": json.dumps(dict(config), indent=2, ensure_ascii=False),
        "numbers": asdict(result),
    }
    return _environment().get_template("page.html.j2").render(**content)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("torchsite.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    return environment


def draw_inline(figure: Figure, name: str, caption: str) -> Drawing:
    """A figure with its caption, which is also the label for screen readers."""
    return Drawing(Markup(svg(figure, name, caption)), caption)  # our own SVG: its texts are escaped


def svg(figure: Figure, name: str, label: str) -> str:
    """The figure as inline SVG, with text as text; identifiers are unlike those of other figures."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r"font: ([\w. ]*?)([\d.]+px)[^;\"]*", r"font: \1\2 system-ui, sans-serif", text)
    text = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'(<(?:g|image)\b[^>]*?) id="[^"]*"', r"\1", text)  # nothing refers to these
    width = figure.get_figwidth() * 72
    style = f"width:100%;max-width:{width * ENLARGED:.0f}px;min-width:{width * READABLE:.0f}px"
    text = re.sub(r'width="[^"]*"', f'style="{style}" role="img" aria-label="{escape(label)}"', text, count=1)
    return text.replace("#000000", "currentColor")
