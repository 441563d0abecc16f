"""A page in one file: style and figures stand in it, and it asks nothing of any network.

Figures are inline SVG: black becomes the colour of the page's text, so one drawing serves light, dark and
paper; pictures inside are embedded pixel by pixel and stay crisp at any size.
"""

import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

import matplotlib
from matplotlib.figure import Figure

ENLARGED = 1.45  # how far a figure may grow beyond its size in points
READABLE = 0.9  # below this a wide figure scrolls instead of shrinking


@dataclass(frozen=True)
class Section:
    """A chapter of a page: its anchor, its title, what to look for, and its body as HTML."""

    name: str
    title: str
    words: str
    body: str

    def html(self) -> str:
        """The chapter."""
        return (
            f'<section id="{escape(self.name)}"><h2>{escape(self.title)}</h2>'
            f"<p>{escape(self.words)}</p>{self.body}</section>"
        )


def page(title: str, subtitle: str, top: str, sections: Sequence[Section], bottom: str, data: Any) -> str:
    """The whole document; `data` travels inside, for scripts that want the numbers."""
    style = resources.files("torchsite.report").joinpath("page.css").read_text()
    links = "".join(f'<a href="#{escape(s.name)}">{escape(s.title)}</a>' for s in sections)
    carried = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p></header>'
        f'<main>{top}<nav aria-label="Contents">{links}</nav>'
        f"{''.join(section.html() for section in sections)}</main>"
        f"<footer>{bottom}</footer>"
        f'<script type="application/json" id="result">{carried}</script></body></html>\n'
    )


def figure_html(name: str, figure: Figure, caption: str) -> str:
    """A figure with its caption; it scrolls sideways where the screen is narrower than is readable."""
    return (
        f'<figure id="figure-{escape(name)}"><div class="wide">{svg(figure, name, caption)}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


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


def cards(entries: Iterable[tuple[str, str, str]]) -> str:
    """Key figures: name, value, a note below."""
    shown = "".join(
        f'<div class="card"><span class="name">{escape(name)}</span>'
        f'<span class="value">{escape(value)}</span><span class="note">{escape(note)}</span></div>'
        for name, value, note in entries
    )
    return f'<div class="cards">{shown}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table that scrolls sideways if it must."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def details(title: str, body: str) -> str:
    """What is there for those who ask."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def bullets(sentences: Iterable[str]) -> str:
    """A list of findings."""
    return f'<ul class="findings">{"".join(f"<li>{escape(s)}</li>" for s in sentences)}</ul>'
