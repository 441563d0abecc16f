"""The demo's report: one HTML file with digits in several poses, their prototypes and their reasons."""

from html import escape
from pathlib import Path

import torch
from matplotlib.figure import Figure

from torchsite.data import Dataset, to_float
from torchsite.model import SITE
from torchsite.model.drawing import data_uri, draw_sheet, new_figure, png, show_heatmap, show_picture
from torchsite.randomness import make_rng
from torchsite.report.results import headline
from torchsite.results import Result, write_atomically
from torchsite.shapes import Images
from torchsite.transforms import AffineTransform

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; } table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; }
"""


def write_demo(model: SITE, data: Dataset, result: Result, folder: Path, n_digits: int = 4) -> Path:
    """Write sheets as PNG and one self-contained page that shows them."""
    images = to_float(data.images[:n_digits])
    posed = model.config.family.sample(n_digits, rng=make_rng(0, "demo"))(images)
    sheets = {
        "Digits, their ten prototypes (above) and their evidence (below)": draw_sheet(
            images, model.explain(images)
        ),
        "The same digits in random poses": draw_sheet(posed, model.explain(posed)),
        "Does the explanation follow the picture?": draw_following(model, images[:1]),
    }
    for number, figure in enumerate(sheets.values(), start=1):
        write_atomically(folder / f"sheet-{number}.png", png(figure))
    figures = "".join(
        f'<h2>{escape(title)}</h2><img alt="{escape(title)}" src="{data_uri(figure)}">'
        for title, figure in sheets.items()
    )
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in headline(result).items())
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>torchsite demo</title>'
        f"<style>{STYLE}</style><h1>A classifier that explains itself</h1>"
        f"<p>Trained on {escape(str(result.config['data']).replace('/test', ''))}; measured on "
        f"{result.config['n_images']} test digits, poses {escape(str(model.config.family))}. "
        f"Red pixels speak for a class, blue ones against it; each logit is the sum of its heatmap.</p>"
        f"<table>{rows}</table>{figures}</html>"
    )
    return write_atomically(folder / "report.html", page.encode())


def draw_following(model: SITE, image: Images, n_angles: int = 7) -> Figure:
    """One picture turned step by step: the explanation of each pose above the turned explanation."""
    angles = torch.linspace(-90, 90, n_angles, dtype=torch.float64)
    turns = AffineTransform.rotation(angles)
    pictures = image.repeat(n_angles, 1, 1, 1)
    label = model.explain(image).predicted.repeat(n_angles)
    renewed = model.explain(turns(pictures)).heatmaps(classes=label)
    carried = turns(model.explain(pictures).heatmaps(classes=label))
    figure, grid = new_figure(3, n_angles, 1.0)
    turned = turns(pictures)
    for column in range(n_angles):
        show_picture(grid[0][column], turned[column], f"T x, {angles[column]:.0f}°")
        show_heatmap(grid[1][column], renewed[column], "I(T x)" if column == 0 else "")
        show_heatmap(grid[2][column], carried[column], "T(I x)" if column == 0 else "")
    return figure
