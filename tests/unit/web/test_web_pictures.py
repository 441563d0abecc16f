"""Uploads are limited before they are decoded, and judged by their content."""

import base64
import io
import struct
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from web_makers import file

from torchsite.randomness import make_rng
from torchsite.web.pictures import from_base64, png, read_picture
from torchsite.web.problems import ProblemError
from torchsite.web.rendering import quantise


def read(content, shape=(1, 28, 28), *, max_pixels=10_000, invert=False):
    return read_picture(content, shape, max_pixels=max_pixels, invert=invert)


def bomb(side):
    """A PNG of a few bytes that claims to be huge."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 24), (3, 20, 36)])
def test_every_format_becomes_the_shape_of_the_model(kind, shape):
    picture = read(file(kind=kind), shape)
    assert picture.shape == shape
    assert 0 <= float(picture.min()) <= float(picture.max()) <= 1


def test_inverting_exchanges_light_and_dark():
    content = file(mode="L")
    torch.testing.assert_close(read(content, invert=True), 1 - read(content))


def test_pixels_come_back_as_they_were_sent():
    picture = torch.rand(1, 28, 28, generator=make_rng(0))
    again = read(from_base64(png(picture)))
    torch.testing.assert_close(again, picture, atol=0.5 / 255 + 1e-6, rtol=0)
    torch.testing.assert_close(read(from_base64(png(again))), again, atol=1e-6, rtol=0)


def test_a_bomb_is_refused_before_it_is_decoded():
    with pytest.raises(ProblemError, match="24,000,000 pixels") as refused:
        read(bomb(30_000), max_pixels=24_000_000)
    assert refused.value.status == 413


@pytest.mark.parametrize(("side", "said"), [(6_000, "6000×6000"), (10_000, "size")])
def test_smaller_bombs_are_refused_too(side, said):
    with pytest.raises(ProblemError, match=said) as refused:
        read(bomb(side), max_pixels=24_000_000)
    assert refused.value.status == 413


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"II*\x00" + bytes(50)],
)
def test_what_is_no_picture_is_refused_whatever_it_says_it_is(content):
    with pytest.raises(ProblemError, match="PNG"):
        read(content)


def test_a_format_that_is_not_offered_is_refused():
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "TIFF")
    with pytest.raises(ProblemError, match="PNG, JPEG"):
        read(buffer.getvalue())


def test_half_a_picture_is_refused():
    content = file(size=(90, 90))
    with pytest.raises(ProblemError, match="image"):
        read(content[: len(content) // 2])


@pytest.mark.parametrize("text", ["not base64!", "abc", "data:image/png,%%%", "é"])
def test_text_that_is_not_base64_is_refused(text):
    with pytest.raises(ProblemError, match="base64"):
        from_base64(text)


def test_a_data_uri_is_taken():
    assert from_base64("data:image/png;base64," + base64.b64encode(b"abc").decode()) == b"abc"


@given(seed=st.integers(0, 1000), scale=st.floats(1e-6, 1e6), rows=st.integers(1, 9), cols=st.integers(1, 9))
def test_bytes_keep_a_map_to_half_a_step(seed, scale, rows, cols):
    heatmap = (torch.rand(rows, cols, generator=make_rng(seed)) - 0.5) * scale
    sent = quantise(heatmap)
    steps = np.frombuffer(base64.b64decode(sent.data), np.int8).reshape(sent.rows, sent.cols)
    received = torch.from_numpy(steps.astype(np.float64)) * sent.limit / 127
    assert float((received - heatmap).abs().max()) <= sent.limit / 254 * (1 + 1e-5)


def test_a_map_of_zeros_is_sent_as_zeros():
    assert set(base64.b64decode(quantise(torch.zeros(3, 4)).data)) == {0}
