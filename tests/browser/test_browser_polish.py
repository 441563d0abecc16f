"""Maps over pictures, a hidden frame, the brush, galleries, and long names that never overlap."""

import pytest
from hands import figure, pixels, settled, updates
from screens import DESK, LONG_NAMES, PHONE

pytest.importorskip("playwright")
from playwright.sync_api import expect

MAP = '[data-row="first"] canvas >> nth=0'
# Boxes of text that lie over each other, and text that leaves the box of its card.
OVERLAPS = """() => {
    const boxes = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        const owner = node.parentElement;
        if (!node.data.trim() || !owner.checkVisibility()) continue;
        if (owner.closest("select, .visually-hidden, .skip")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const clip = owner.closest(".name")?.getBoundingClientRect();
        const card = owner.closest(".card")?.getBoundingClientRect();
        for (const box of range.getClientRects()) {
            const right = clip ? Math.min(box.right, clip.right) : box.right;
            const { left, top, bottom } = box;
            boxes.push({ node, text: node.data.trim(), left, right, top, bottom, card });
        }
    }
    const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
    const over = (a, b) =>
        a.node !== b.node && shared(a, b, "left", "right") > 1 && shared(a, b, "top", "bottom") > 4;
    const out = boxes.filter(({ card, right }) => card && right - card.right > 1);
    const found = out.map(({ text }) => `${text} leaves its card`);
    boxes.forEach((a, i) => {
        for (const b of boxes.slice(i + 1)) if (over(a, b)) found.push(`${a.text} | ${b.text}`);
    });
    return found;
}"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("model", ["pixels", "learned"])
def test_long_names_never_overlap(browser, wordy, size, model, picture):
    context = browser.new_context(viewport=size)
    page = context.new_page()
    page.goto(f"{wordy}/#model={model}&sample=1&angle=20&of={LONG_NAMES[0]}&against={LONG_NAMES[1]}")
    settled(page)
    expect(page.locator("#explained")).to_have_text(LONG_NAMES[0])
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    context.close()


def test_learned_features_show_the_training_pictures_that_they_fit(opened, picture):
    page = opened("/#model=cifar10&sample=8&angle=20&of=cat&against=truck")
    settled(page)
    expect(page.locator("#class-hint")).to_contain_text("16 learned features in 16×16 places")
    expect(page.locator("#class-hint")).to_contain_text("cifar10/train, as a small decoder draws them")
    expect(page.locator(".product img:visible")).to_have_count(2)
    expect(page.locator(".product .map canvas:visible")).to_have_count(2)
    expect(page.locator(".product .sign:visible")).to_have_count(0)
    names = page.locator(".product figcaption:visible").all_inner_texts()
    assert names == ["“cat” fits", "contributions", "“truck” fits", "contributions"]
    first, second = (page.locator(".product img:visible").nth(i).get_attribute("src") for i in (0, 1))
    assert first != second
    assert len(first) > 1000
    picture(page, "colour", full_page=True)


def test_without_a_gallery_the_page_says_why_no_prototype_is_drawn(browser, wordy):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{wordy}/#model=learned&sample=1")
    settled(page)
    expect(page.locator("#class-hint")).to_contain_text("the model has no gallery of training pictures")
    expect(page.locator(".product img:visible")).to_have_count(0)
    expect(page.locator(".product .map canvas").first).to_be_visible()
    context.close()


def test_maps_lie_over_the_picture_with_a_chosen_opacity(opened):
    page = opened("/#model=cifar10&sample=3&angle=20")
    settled(page)
    alone = pixels(page, MAP)
    page.locator("#over").fill("0.5")
    expect(page.locator('output[for="over"]')).to_have_text("50 %")
    mixed = pixels(page, MAP)
    page.locator("#over").fill("0")
    bare = pixels(page, MAP)
    assert len({alone, mixed, bare}) == 3
    page.wait_for_timeout(500)
    assert "over=0" in page.url
    # without opacity the canvas shows the moved picture, and both maps show the same
    assert bare == pixels(page, '[data-row="first"] canvas >> nth=1')
    page.locator("#over").fill("1")
    assert pixels(page, MAP) == alone


def test_the_frame_can_be_hidden(opened, picture):
    page = opened("/#model=cifar10&sample=3&angle=35&over=0.6")
    before = settled(page)
    black = page.locator("#stage").evaluate("c => [...c.getContext('2d').getImageData(2, 2, 1, 1).data]")
    assert black == [0, 0, 0, 255]
    shown = pixels(page, MAP)
    page.locator("#frame").check()
    settled(page, after=before)
    colour = page.locator("#stage").evaluate("c => [...c.getContext('2d').getImageData(2, 2, 1, 1).data]")
    assert min(colour) > 40
    assert pixels(page, MAP) != shown
    assert "corners=mean" in page.url
    picture(page.locator("#following"), "frame")


def test_the_brush_compares_the_evidence_with_the_effect(opened, picture):
    page = opened("/#sample=3&angle=20&second=grad_cam@mnist_black_box")
    before = settled(page)
    alike = figure(page)
    expect(page.locator("#brushed")).to_be_hidden()
    page.locator("#brush").click()
    box = page.locator("#stage").bounding_box()
    page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 0.35 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=8)
    page.mouse.up()
    settled(page, after=before)
    assert page.locator("#angle").input_value() == "20"  # the picture stays where it is
    expect(page.locator(".brushed")).to_have_count(2)
    own = page.locator('.brushed[data-method="self_explanation"]')
    read = lambda name: float(own.locator(name).inner_text().replace("−", "-"))  # noqa: E731
    assert read(".covered") > 0.5
    assert read(".fell") != 0
    assert page.locator('.brushed[data-method="grad_cam"] .covered').inner_text().endswith("%")
    assert figure(page) == alike  # the maps are those of the whole picture
    picture(page.locator("#following"), "brush")
    before = updates(page)
    page.locator("#brush").click()
    page.locator("#unhide").click()
    settled(page, after=before)
    expect(page.locator("#brushed")).to_be_hidden()
    expect(page.locator("#unhide")).to_be_disabled()


def test_the_brush_has_keys_and_a_link_keeps_what_it_hid(opened):
    page = opened("/#sample=3")
    before = settled(page)
    page.locator("#brush").click()
    page.locator("#stage").focus()
    for key in ["ArrowUp", "ArrowUp", "Space"]:
        page.keyboard.press(key)
    settled(page, after=before)
    expect(page.locator("#brushed-share")).not_to_have_text("0.0 %")
    assert page.locator("#down").input_value() == "0"
    page.wait_for_timeout(500)
    other = opened("/#" + page.url.partition("#")[2])
    settled(other)
    assert other.locator("#brushed-share").inner_text() == page.locator("#brushed-share").inner_text()
    before = updates(other)
    other.locator('[data-sample="5"]').click()
    settled(other, after=before)
    expect(other.locator("#brushed")).to_be_hidden()


def test_the_camera_gives_pictures_to_the_server_too(opened):
    page = opened("/#sample=3")
    before = settled(page)
    page.locator("#tab-camera").click()
    page.locator("#take").click()
    settled(page, after=before)
    assert "image=" in page.url
    page.locator("#tab-samples").click()
    assert page.locator("#video").evaluate("video => video.srcObject") is None


def test_a_group_shows_its_pictures_and_opens_under_the_brush(opened_with_groups):
    page = opened_with_groups()
    settled(page)
    expect(page.locator("#brushed")).to_be_hidden()
    page.locator("#tab-groups").click()
    groups = page.locator("#group option")
    assert 0 < groups.count() <= 12
    for number in (0, groups.count() - 1):
        page.locator("#group").select_option(index=number)
        name = groups.nth(number).inner_text()
        expect(page.locator("#group-said")).to_contain_text(f"“{name.split(' of ')[1].split(':')[0]}”")
        assert 0 < page.locator("#group-pictures img").count() <= 6
    page.locator("#group-pictures button").first.click()
    expect(page.locator("#brushed")).to_be_visible()
    expect(page.locator("#explained")).to_have_text(name.split(" of ")[1].split(":")[0])
    expect(page.locator("#brushed-share")).not_to_have_text("0.0 %")
    page.locator("#unhide").click()
    expect(page.locator("#brushed")).to_be_hidden()


def test_without_an_audit_there_are_no_groups(opened):
    page = opened()
    settled(page)
    expect(page.locator("#tab-groups")).to_be_hidden()
