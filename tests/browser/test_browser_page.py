"""The page as people use it: look, drag, turn, draw, upload, choose, sweep, share; desk and phone."""

import re

import pytest
from hands import digit_on_paper, drag, draw_a_one, figure, pixels, settled, updates
from screens import PHONE

pytest.importorskip("playwright")
from playwright.sync_api import expect

MOVED = "/#sample=3&angle=30&right=0.1"


def test_the_page_shows_both_explanations_and_their_figures(opened, picture):
    page = opened(MOVED)
    settled(page)
    assert figure(page) > 0.95
    assert 0 < float(page.locator('[data-row="first"] dd').first.inner_text()) < 0.8
    expect(page.locator("#seen")).to_contain_text("Seen as 3")
    expect(page.locator(".class")).to_have_count(10)
    expect(page.locator(".product")).to_have_count(2)
    expect(page.locator("#spoken")).to_contain_text("alike")
    picture(page, "desk", full_page=True)


def test_the_page_follows_a_dark_colour_scheme(opened, picture):
    page = opened(MOVED, color_scheme="dark")
    settled(page)
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(18, 20, 23)"
    picture(page, "dark", full_page=True)


def test_bars_are_the_sums_that_they_say(opened):
    page = opened(MOVED)
    settled(page)
    for text in page.locator(".class .sums").all_inner_texts():
        gained, lost, total = (
            float(part.replace("−", "-").replace(" ", "")) for part in re.findall(r"[+−]? ?[\d.]+", text)
        )
        assert gained + lost == pytest.approx(total, abs=0.02)


def test_a_drag_shifts_the_picture_and_the_explanation_follows(opened):
    page = opened("/#sample=3")
    before = settled(page)
    shown = pixels(page, '[data-row="first"] canvas >> nth=0')
    drag(page, (0.5, 0.6), (0.6, 0.65))
    settled(page, after=before)
    assert page.locator("#right").input_value() == "0.1"
    assert page.locator("#down").input_value() == "0.05"
    assert pixels(page, '[data-row="first"] canvas >> nth=0') != shown
    assert figure(page) > 0.9


def test_hiding_is_told_when_the_picture_rests(opened):
    page = opened(MOVED)
    settled(page)
    told = page.locator('[data-row="first"] dt:text-is("hiding") + dd')
    expect(told).to_have_text(re.compile(r"^−?[01]\.\d{3}$"))
    assert -1 <= float(told.inner_text().replace("−", "-")) <= 1


def test_the_handle_turns(opened):
    page = opened("/#sample=3")
    before = settled(page)
    drag(page, (0.5, 0.14), (0.14, 0.5))
    settled(page, after=before)
    assert float(page.locator("#angle").input_value()) == pytest.approx(90, abs=2)
    assert figure(page) > 0.9


def test_the_wheel_turns_and_scales(opened):
    page = opened("/#sample=3")
    before = settled(page)
    page.locator("#stage").hover()
    page.mouse.wheel(0, 100)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Shift")
    settled(page, after=before)
    assert float(page.locator("#angle").input_value()) == -5
    assert float(page.locator("#scale").input_value()) == pytest.approx(1.11, abs=0.02)


def test_the_keys_do_all_that_the_mouse_does(opened):
    page = opened("/#sample=3")
    before = settled(page)
    page.locator("#stage").focus()
    for key in ["ArrowRight", "ArrowRight", "ArrowDown", "[", "[", "]", "+"]:
        page.keyboard.press(key)
    settled(page, after=before)
    assert float(page.locator("#right").input_value()) == pytest.approx(2 / 28, abs=0.01)
    assert float(page.locator("#down").input_value()) == pytest.approx(1 / 28, abs=0.01)
    assert page.locator("#angle").input_value() == "5"
    assert page.locator("#scale").input_value() == "1.05"
    page.keyboard.press("0")
    assert page.locator("#angle").input_value() == "0"
    expect(page.locator('output[for="right"]')).to_have_text("0 %")


def test_a_class_is_looked_at_and_held_against_another(opened):
    page = opened("/#sample=3&angle=20")
    before = settled(page)
    page.locator('.class[data-class="8"]').click()
    settled(page, after=before)
    expect(page.locator("#explained")).to_have_text("8")
    expect(page.locator('.class[data-class="8"]')).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#details figcaption").nth(1)).to_have_text("“8” here")
    before = updates(page)
    page.locator("#why-against").select_option("5")
    settled(page, after=before)
    expect(page.locator("#contrast figcaption")).to_have_text("8 − 5")
    sums = page.locator(".class .sums b").all_inner_texts()
    shown = float(page.locator("#contrast .sums b").inner_text().replace("−", "-"))
    assert shown == pytest.approx(float(sums[8]) - float(sums[5]), abs=0.03)


def test_any_method_stands_beside(opened):
    page = opened("/#sample=3&angle=45")
    before = settled(page)
    choice = page.locator('[data-row="second"] select')
    choice.select_option("gradient@mnist")
    settled(page, after=before)
    assert figure(page, "second") < figure(page)
    choice.select_option("smooth_grad@mnist_black_box")
    expect(page.locator('[data-row="second"] .note')).to_contain_text("when the picture rests")
    expect(page.locator('[data-row="second"] .big')).to_have_text(re.compile(r"\d\.\d"))
    choice.select_option("contrastive_excitation_backprop@mnist")
    expect(page.locator('[data-row="second"] .note')).to_contain_text("does not apply here")


def test_a_black_box_has_no_sums(opened):
    page = opened("/#model=mnist_black_box&sample=4&angle=15")
    settled(page)
    expect(page.locator("#evidence-title")).to_have_text("The logits")
    expect(page.locator("#class")).to_be_hidden()
    assert figure(page, "second") > 0.9  # the SITE model beside it
    before = updates(page)
    page.locator("#model").select_option("mnist")
    settled(page, after=before)
    expect(page.locator("#class")).to_be_visible()


def test_a_drawing_is_a_picture(opened):
    page = opened()
    before = settled(page)
    page.locator("#tab-draw").click()
    draw_a_one(page)
    settled(page, after=before)
    expect(page.locator("#explained")).to_have_text("1")
    assert "image=" in page.url


def test_a_file_is_prepared_and_explained(opened):
    page = opened()
    before = settled(page)
    page.locator("#tab-upload").click()
    page.locator("#file").set_input_files(
        {"name": "x.jpg", "mimeType": "image/jpeg", "buffer": digit_on_paper()}
    )
    settled(page, after=before)
    expect(page.locator("#invert")).to_be_checked()  # dark ink on light paper was noticed
    expect(page.locator("#explained")).to_have_text("1")


def test_a_file_that_is_no_picture_is_refused_with_a_reason(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.goto(server)
    settled(page)
    page.locator("#tab-upload").click()
    page.locator("#file").set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": b"no picture"})
    expect(page.locator("#problem")).to_contain_text("its content is none of PNG")
    context.close()


def test_a_picture_is_pasted(opened):
    page = opened("/#sample=3")
    before = settled(page)
    page.evaluate(
        """bytes => {
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array(bytes)], "x.jpg", { type: "image/jpeg" }));
            document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files, bubbles: true }));
        }""",
        list(digit_on_paper()),
    )
    settled(page, after=before)
    expect(page.locator("#explained")).to_have_text("1")


def test_a_sweep_draws_its_curve(opened, picture):
    page = opened("/#sample=3&angle=40")
    settled(page)
    page.locator("#sweep").click()
    expect(page.locator("#sweep")).to_have_text("Stop")
    expect(page.locator("#sweep")).to_have_text("Sweep", timeout=240_000)
    raw = page.locator("#plot polyline").nth(1)
    assert len(raw.get_attribute("points").split()) == 61
    assert page.locator("#angle").input_value() == "40"
    settled(page)
    picture(page.locator("#following"), "sweep")


def test_a_link_brings_the_same_state_to_another(opened):
    page = opened("/#sample=5&angle=-50&down=0.1&scale=0.9&second=gradient@mnist&of=6&against=0")
    settled(page)
    other = opened("/" + page.url.partition("/#")[1].lstrip("/") + page.url.partition("#")[2])
    settled(other)
    assert other.url.partition("#")[2] == page.url.partition("#")[2]
    assert figure(other, "second") == figure(page, "second")
    expect(other.locator("#explained")).to_have_text("6")
    expect(other.locator("#why-against")).to_have_value("0")


def test_a_link_from_elsewhere_can_do_no_harm(opened):
    page = opened("/#model=<script>&sample=999&angle=1e9&scale=nan&of=&first=x&second=y@z")
    settled(page)
    assert figure(page) > 0.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_on_a_phone(opened, picture, scheme):
    page = opened(
        MOVED, size=PHONE, device_scale_factor=2, is_mobile=True, has_touch=True, color_scheme=scheme
    )
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    stage, first = page.locator("#stage").bounding_box(), page.locator('[data-row="first"]').bounding_box()
    assert (
        first["y"] + 200 < PHONE["height"]
    )  # the explanation is in sight while the finger is on the picture
    assert stage["width"] >= 200
    small = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.innerText?.trim() && e.checkVisibility() "
        "&& parseFloat(getComputedStyle(e).fontSize) < 12 && e.tagName !== 'text').length"
    )
    assert small == 0
    if scheme == "light":
        picture(page, "phone")


def test_two_fingers_turn_and_scale(opened):
    page = opened("/#sample=3", size=PHONE, is_mobile=True, has_touch=True)
    before = settled(page)
    box = page.locator("#stage").bounding_box()
    client = page.context.new_cdp_session(page)
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def touch(kind, places):
        points = [{"x": middle[0] + x, "y": middle[1] + y, "id": i} for i, (x, y) in enumerate(places)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", [(-40, 0), (40, 0)])
    touch("touchMove", [(-30, 30), (30, -30)])
    touch("touchMove", [(0, 60), (0, -60)])
    touch("touchEnd", [])
    settled(page, after=before)
    assert float(page.locator("#angle").input_value()) == pytest.approx(90, abs=2)
    assert float(page.locator("#scale").input_value()) == pytest.approx(1.5, abs=0.05)


def test_every_control_has_a_name_for_screen_readers(opened):
    page = opened()
    settled(page)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas[role], img")].filter(e => {
            const said = [e.getAttribute("aria-label"), e.getAttribute("alt"), e.title, e.textContent.trim(),
                          e.labels?.length ? e.labels[0].textContent.trim() : "", e.closest("[role=tab]")];
            return !said.some(Boolean) && e.checkVisibility();
        }).map(e => e.outerHTML)"""
    )
    assert nameless == []
    page.locator("#tab-samples").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#upload")).to_be_visible()
