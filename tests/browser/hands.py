"""What people do on the page, and what they read there."""

import io

from PIL import Image, ImageDraw
from playwright.sync_api import expect


def updates(page):
    return int(page.locator("main").get_attribute("data-updates"))


def settled(page, *, after=0):
    """Wait until the page has been renewed, and no renewal is on its way."""
    expect(page.locator("main")).not_to_have_attribute("data-updates", str(after))
    seen = -1
    while seen != updates(page):
        seen = updates(page)
        page.wait_for_timeout(700)
    return seen


def figure(page, row="first"):
    return float(page.locator(f'[data-row="{row}"] .big').inner_text())


def pixels(page, selector):
    """What a canvas shows."""
    data = page.locator(selector).evaluate("canvas => canvas.toDataURL()")
    return data


def drag(page, start, end, *, steps=6, on="#stage"):
    box = page.locator(on).bounding_box()
    at = lambda place: (box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"])  # noqa: E731
    page.mouse.move(*at(start))
    page.mouse.down()
    page.mouse.move(*at(end), steps=steps)
    page.mouse.up()


def draw_a_one(page):
    """A stroke from above to below on the pad."""
    page.locator("#pad").scroll_into_view_if_needed()
    drag(page, (0.5, 0.2), (0.5, 0.8), steps=10, on="#pad")


def digit_on_paper():
    """A dark 1 on white paper, as a photograph would show it."""
    paper = Image.new("RGB", (200, 260), "white")
    ImageDraw.Draw(paper).line([(100, 70), (100, 190)], fill="black", width=20)
    buffer = io.BytesIO()
    paper.save(buffer, "JPEG")
    return buffer.getvalue()
