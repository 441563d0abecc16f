"""A page in one file: style and figures stand in it, and it asks nothing of any network.

How it looks stands in `templates/`. Figures are inline SVG: black becomes the colour of the page's text, so
one drawing serves light, dark and paper; pictures inside are embedded pixel by pixel and stay crisp at any
size.
"""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from typing import Any, NamedTuple

import matplotlib
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from torchsite.results import Result

ENLARGED = 1.45  # how far a figure may grow beyond its size in points
READABLE = 0.9  # below this a wide figure scrolls instead of shrinking


class Chapter(NamedTuple):
    """A chapter of a page: its anchor, its title, and what to look for."""

    name: str
    title: str
    words: str


class Drawing(NamedTuple):
    """A figure as it stands in a page."""

    svg: Markup
    caption: str


class Table(NamedTuple):
    """A table of texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def render(template: str, **content: Any) -> str:
    """A template of this package, filled; all text is escaped."""
    return _environment().get_template(template).render(**content)


def about(result: Result, answers: str, how: str = "") -> dict[str, Any]:
    """What the report of any model begins and ends with; `answers` are what it tells apart."""
    config, model = result.config, result.config["model"]
    kind = "A classifier that explains itself" if model["kind"] == "site" else "A black box"
    shape = "×".join(map(str, model["image_shape"]))
    return {
        "title": f"{kind}: {config['data'].partition('/')[0]}",
        "subtitle": f"{answers}; pictures of {shape}, {config['parameters']:,} parameters, "
        f"{model['feature_extractor']} features. Measured on {config['n_images']:,} pictures of "
        f"{config['data']}{how}, {result.time[:10]}.",
        "result": result,
        "versions": ", ".join(f"{name} {number}" for name, number in result.versions.items()),
        "settings": json.dumps(dict(config), indent=2, ensure_ascii=False),
        "numbers": asdict(result),
    }


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
    """A figure with its caption, which is also what screen readers say."""
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
