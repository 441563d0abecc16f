"""Simple drawings of what a model may know: things on a ground, clothes on black. Unit: 1/32 of a side."""

from collections.abc import Iterator, Sequence

from PIL import Image, ImageDraw

UNIT = 8
Points = Sequence[tuple[float, float]]
Shape = tuple[str, str, Points]  # the kind, the colour, the corners (of the box, for an ellipse)

GROUNDS = {
    "airplane": ("#7fb2e5", "#cfe4f7", 32),
    "ship": ("#a9c9e8", "#2f5d8a", 19),
    "automobile": ("#b9c4cc", "#6d6f73", 22),
    "bird": ("#dfe9ee", "#8fae7c", 25),
    "frog": ("#8a9a5b", "#5f6b3a", 20),
}
THINGS: dict[str, list[Shape]] = {
    "airplane": [
        ("polygon", "#e8ecef", [(3, 17), (8, 14), (25, 14), (30, 16), (25, 18), (8, 18)]),
        ("polygon", "#c3cbd2", [(13, 16), (20, 16), (12, 27), (9, 27)]),
        ("polygon", "#d5dbe0", [(14, 14), (19, 14), (13, 6), (11, 6)]),
        ("polygon", "#b3402f", [(3, 17), (8, 14), (4, 8), (2, 8)]),
    ],
    "ship": [
        ("polygon", "#7d2e25", [(3, 18), (29, 18), (26, 24), (6, 24)]),
        ("polygon", "#f1f1ee", [(8, 13), (22, 13), (22, 18), (8, 18)]),
        ("polygon", "#e0a030", [(16, 6), (20, 6), (20, 13), (16, 13)]),
    ],
    "automobile": [
        ("polygon", "#c22f2f", [(2, 17), (8, 16), (12, 10), (22, 10), (26, 16), (30, 18), (30, 23), (2, 23)]),
        ("polygon", "#b8d8e8", [(10, 16), (13, 12), (21, 12), (24, 16)]),
        ("ellipse", "#1c1c1e", [(5, 20), (11, 26)]),
        ("ellipse", "#1c1c1e", [(21, 20), (27, 26)]),
    ],
    "bird": [
        ("ellipse", "#7a5230", [(8, 11), (23, 22)]),
        ("ellipse", "#8b6038", [(19, 7), (27, 15)]),
        ("polygon", "#d98f2b", [(26, 10), (31, 12), (26, 13)]),
        ("polygon", "#5a3c22", [(2, 13), (11, 14), (10, 19)]),
        ("ellipse", "#101010", [(23.5, 9.5), (24.8, 10.8)]),
    ],
    "frog": [
        ("ellipse", "#3f8a3a", [(5, 12), (27, 27)]),
        ("ellipse", "#56a84f", [(7, 8), (14, 15)]),
        ("ellipse", "#56a84f", [(18, 8), (25, 15)]),
        ("ellipse", "#101010", [(9.5, 10), (12, 12.5)]),
        ("ellipse", "#101010", [(20.5, 10), (23, 12.5)]),
        ("polygon", "#2c6428", [(10, 21), (22, 21), (20, 23), (12, 23)]),
    ],
}
CLOTHES: dict[str, list[Shape]] = {
    "T-shirt": [
        (
            "polygon",
            "#c8c8c8",
            [
                (10, 4),
                (13, 6),
                (19, 6),
                (22, 4),
                (29, 9),
                (26, 14),
                (23, 12),
                (23, 28),
                (9, 28),
                (9, 12),
                (6, 14),
                (3, 9),
            ],
        )
    ],
    "trouser": [
        ("polygon", "#b4b4b4", [(11, 2), (21, 2), (23, 30), (18, 30), (16, 10), (14, 30), (9, 30)]),
    ],
    "dress": [("polygon", "#d2d2d2", [(13, 2), (19, 2), (19, 13), (24, 30), (8, 30), (13, 13)])],
    "bag": [
        ("ellipse", "#8c8c8c", [(10, 4), (22, 18)]),
        ("ellipse", "#000000", [(12, 6), (20, 18)]),
        ("polygon", "#dcdcdc", [(4, 12), (28, 12), (29, 28), (3, 28)]),
    ],
    "ankle boot": [
        ("polygon", "#bebebe", [(9, 4), (18, 4), (19, 15), (28, 20), (30, 25), (3, 25), (4, 14)]),
        ("polygon", "#6e6e6e", [(3, 25), (30, 25), (30, 28), (3, 28)]),
    ],
    "sneaker": [
        ("polygon", "#aaaaaa", [(2, 13), (8, 12), (12, 16), (20, 17), (29, 21), (30, 24), (2, 24)]),
        ("polygon", "#f0f0f0", [(2, 24), (30, 24), (30, 26), (2, 26)]),
    ],
}


def things() -> Iterator[tuple[str, Image.Image]]:
    """Coloured drawings with a ground."""
    for name, shapes in THINGS.items():
        above, below, horizon = GROUNDS[name]
        canvas = Image.new("RGB", (32 * UNIT, 32 * UNIT), above)
        ImageDraw.Draw(canvas).rectangle((0, horizon * UNIT, 32 * UNIT, 32 * UNIT), fill=below)
        yield f"drawn {name}", _drawn(canvas, shapes)


def clothes() -> Iterator[tuple[str, Image.Image]]:
    """Grey drawings on black."""
    for name, shapes in CLOTHES.items():
        yield f"drawn {name}", _drawn(Image.new("RGB", (32 * UNIT, 32 * UNIT)), shapes)


def _drawn(canvas: Image.Image, shapes: Sequence[Shape]) -> Image.Image:
    pen = ImageDraw.Draw(canvas)
    for kind, colour, points in shapes:
        corners = [(x * UNIT, y * UNIT) for x, y in points]
        (pen.ellipse if kind == "ellipse" else pen.polygon)(corners, fill=colour)
    return canvas
