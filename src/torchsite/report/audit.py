"""The page of an audit: the groups of each class by their pictures, what hiding and pasting them does.

write_audit(ts.audit(model, data), "audit.html")
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from torchsite.data import to_float
from torchsite.evaluation.audit import Audit, strongest_first
from torchsite.evaluation.audit_groups import CONTENT, box_of
from torchsite.evaluation.pieces import strongest_window
from torchsite.evaluation.verdicts import called, percent
from torchsite.files import write_atomically
from torchsite.model.drawing import Raster, draw_tiles, picture_tile
from torchsite.report.charts import draw_intervals, words
from torchsite.report.format import estimate
from torchsite.report.page import Table, prose, render

N_CROPS = 9
MOST_SHOWN = 40  # groups of which pieces are drawn
TILE = 48  # pixels

Groups = Sequence[Mapping[str, Any]]


def write_audit(audits: Audit | Sequence[Audit], path: Path | str) -> Path:
    """Write the page of an audit; of several with different maps, the first in full beside a row of each."""
    audits = [audits] if isinstance(audits, Audit) else audits
    first, result = audits[0], audits[0].result
    n_classes = len({group["class"] for group in first.groups})
    answers = f"{len(first.groups)} groups of evidence in {n_classes} classes"
    tables = audit_tables(first)
    if len(audits) > 1:
        tables["table_of_methods"] = _methods(audits)
    figures = audit_figures(first)
    page = render(result, prose("audit"), figures, tables, _cards(first), first.verdicts, answers)
    return write_atomically(Path(path), page)


def audit_figures(audit: Audit) -> dict[str, Figure]:
    """The figures of the page by name."""
    shown = strongest_first(audit.groups)[:MOST_SHOWN]
    tried = [group for group in shown if group["pasting"] is not None]
    figures = {"groups": draw_groups(audit, shown)}
    if tried:
        pairs = {"pasted": "turns", "random part": "random_turns"}
        found = {label: [group["pasting"][key] for group in tried] for label, key in pairs.items()}
        names = [f"{group['class']}: {called(group)}" for group in tried]
        figures["turns"] = draw_intervals(names, found, "share of pictures that become the class")
    pairs = {"hidden": "falls", "random place": "random_falls"}
    found = {label: [group["hiding"]["mean"][key] for group in shown] for label, key in pairs.items()}
    names = [f"{group['class']}: {called(group)}" for group in shown]
    figures["falls"] = draw_intervals(names, found, "fall of the logit")
    return figures


def draw_groups(audit: Audit, groups: Groups) -> Figure:
    """A row for each group: where it stands, then its pieces."""
    rows = []
    for group in groups:
        mark = f"{'! ' if group['found'] else ''}{called(group)}"
        tiles = [(_stands(audit, group), f"{group['class']}\n{mark}")]
        rows.append([*tiles, *((_tile(crop), "") for crop in crops(audit, group))])
    return draw_tiles(rows, tile=0.62)


def crops(audit: Audit, group: Mapping[str, Any], n: int = N_CROPS) -> list[Tensor]:
    """A piece of the group from each of its first pictures; places and regions in pictures that are faded."""
    part = audit.parts[group["number"]].first(n)
    images = to_float(audit.pictures.images[part.rows])
    if group["kind"] != CONTENT:
        return list(torch.where(part.masks[:, None], images, 0.8 + 0.2 * images))
    windows = [around(strongest_window(mask.float())) for mask in part.masks]
    return [image[:, rows, cols] for image, (rows, cols) in zip(images, windows, strict=True)]


def around(mask: Tensor) -> tuple[slice, slice]:
    """The rows and columns of the smallest rectangle that holds a mask."""
    left, top, right, bottom = box_of(mask)
    return slice(top, bottom), slice(left, right)


def _stands(audit: Audit, group: Mapping[str, Any]) -> Raster:
    often = audit.parts[group["number"]].masks.float().mean(0)
    return _tile(1 - often[None] / often.max().clamp_min(1e-6))


def _tile(picture: Tensor) -> Raster:
    return picture_tile(F.interpolate(picture[None], (TILE, TILE))[0])


def audit_tables(audit: Audit) -> dict[str, Table]:
    """All figures of all groups."""
    groups = strongest_first(audit.groups)
    header = ["group", "class", "in its pictures", "evidence", "area", "stands", "stands out"]
    rows = [
        [
            called(group),
            group["class"],
            percent(group["pictures"]),
            percent(group["evidence"]),
            f"{group['area']:.1%}",
            f"{group['stands']['place']} ({group['stands']['share']:.0%})",
            "yes" if group["found"] else "no",
        ]
        for group in groups
    ]
    checks = ["group", "class", "pasted: turns", "random part", "logit rises", "random part"]
    fillings = list(groups[0]["hiding"]) if groups else []
    for name in fillings:
        checks += [f"hidden ({name}): turns", "random place", "logit falls more than at random"]
    return {
        "table_of_groups": Table(header, rows, folded="shares of all groups"),
        "table_of_checks": Table(checks, [_checks(group) for group in groups], folded="all checks"),
    }


def _checks(group: Mapping[str, Any]) -> list[str]:
    pasted = group["pasting"] or {}
    shares = [percent(pasted[key]) if pasted else "–" for key in ("turns", "random_turns")]
    rises = [estimate(pasted.get(key), 2) for key in ("rises", "random_rises")]
    hidden = [
        text
        for found in group["hiding"].values()
        for text in (percent(found["turns"]), percent(found["random_turns"]), estimate(found["more"], 2))
    ]
    return [called(group), group["class"], *shares, *rises, *hidden]


def _methods(audits: Sequence[Audit]) -> Table:
    """What stands out by the maps of each method, and its strongest group."""
    rows = []
    for audit in audits:
        best = strongest_first(audit.groups)[0]
        turns = best["pasting"]["turns"] if best["pasting"] else {"value": None}
        found = ", ".join(f"{called(group)} of {group['class']}" for group in audit.found) or "nothing"
        strongest = f"{called(best)} of {best['class']}"
        rows.append(
            [
                words(audit.result.config["method"]),
                found,
                strongest,
                percent(best["evidence"]),
                percent(turns),
            ]
        )
    return Table(["maps", "stands out", "turns most", "its evidence", "it turns"], rows)


def _cards(audit: Audit) -> list[tuple[str, str, str]]:
    classes = audit.result.values["classes"].values()
    n, hits = (
        sum(one["n"] for one in classes),
        sum(one["n"] * (one["accuracy"]["value"] or 0) for one in classes),
    )
    of = {group["class"] for group in audit.found}
    maps = words(audit.result.config["method"])
    return [
        (
            "groups that stand out",
            str(len(audit.found)),
            f"of {len(audit.groups)}; classes: {', '.join(sorted(of)) or 'none'}",
        ),
        (
            "accuracy",
            f"{hits / n:.1%}",
            f"on {n:,} pictures, at most {audit.result.config['limit']} of a class",
        ),
        ("maps", maps, "relative to all classes" if maps == "its own" else "of the method"),
    ]
