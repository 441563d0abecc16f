import io
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from torchsite.data.pictures import UnreadableImageError, decode, read_picture
from torchsite.errors import DataError


def saved(tmp_path, image, kind="png", **options):
    path = tmp_path / f"picture.{kind}"
    image.save(path, **options)
    return path


def colour(path, size=8):
    pixels = decode(path, size)
    assert pixels.shape == (3, size, size)
    assert pixels.dtype == np.uint8
    return pixels.reshape(3, -1).mean(1).round().tolist()


@pytest.mark.parametrize(
    ("image", "kind", "expected"),
    [
        (Image.new("RGB", (9, 9), (10, 20, 30)), "png", [10, 20, 30]),
        (Image.new("L", (9, 9), 77), "png", [77, 77, 77]),
        (Image.new("1", (9, 9), 1), "png", [255, 255, 255]),
        (Image.new("CMYK", (9, 9), (0, 255, 255, 0)), "tiff", [255, 0, 0]),
        (Image.new("RGBA", (9, 9), (0, 0, 0, 0)), "png", [255, 255, 255]),
        (Image.new("RGBA", (9, 9), (0, 0, 200, 51)), "png", [204, 204, 244]),
        (Image.new("LA", (9, 9), (0, 0)), "png", [255, 255, 255]),
        (Image.new("I;16", (9, 9), 40_000), "png", [156, 156, 156]),
        (Image.new("I;16", (9, 9), 65_535), "tiff", [255, 255, 255]),
        (Image.new("I", (9, 9), 40_000), "tiff", [156, 156, 156]),
    ],
)
def test_every_kind_of_picture_shows_its_colour(tmp_path, image, kind, expected):
    assert colour(saved(tmp_path, image, kind)) == expected


def test_a_cmyk_jpeg_shows_its_colour(tmp_path):
    path = saved(tmp_path, Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "jpg", quality=95)
    assert np.abs(np.array(colour(path)) - [255, 0, 0]).max() <= 3


def test_palettes_with_and_without_transparency(tmp_path):
    image = Image.new("P", (9, 9), 1)
    image.putpalette([0, 0, 0, 250, 100, 50])
    assert colour(saved(tmp_path, image)) == [250, 100, 50]
    assert colour(saved(tmp_path, image, transparency=1)) == [255, 255, 255]


def test_sixteen_bit_colour(tmp_path):
    row = b"\0" + np.full((4, 3), 40_000, ">u2").tobytes()
    header = struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(row * 4)), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    path = tmp_path / "deep.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    assert colour(path) == [156, 156, 156]


STORED = {  # by EXIF orientation: what its row 0 and column 0 show of the upright picture
    1: lambda upright: upright,  # top, left
    2: np.fliplr,  # top, right
    3: lambda upright: np.rot90(upright, 2),  # bottom, right
    4: np.flipud,  # bottom, left
    5: lambda upright: upright.swapaxes(0, 1),  # left, top
    6: lambda upright: np.rot90(upright, 1),  # right, top
    7: lambda upright: np.rot90(upright, 2).swapaxes(0, 1),  # right, bottom
    8: lambda upright: np.rot90(upright, -1),  # left, bottom
}


@pytest.mark.parametrize("orientation", STORED)
def test_exif_rotations_are_undone(tmp_path, orientation):
    upright = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright)))
    assert np.array_equal(decode(saved(tmp_path, stored, exif=exif), 16).transpose(1, 2, 0), upright)


def test_the_aspect_is_kept_and_the_centre_cropped(tmp_path):
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 255
    assert (decode(saved(tmp_path, Image.fromarray(wide)), 10) == 255).all()


def test_a_large_jpeg_decodes_at_a_fraction_of_its_size(tmp_path):
    ramp = np.linspace(0, 255, 1024).astype(np.uint8)
    image = Image.fromarray(np.broadcast_to(ramp[:, None, None], (1024, 1024, 3)).copy())
    rows = decode(saved(tmp_path, image, "jpg", quality=95), 32).mean((0, 2))
    assert np.abs(rows - ramp.reshape(32, 32).mean(1)).max() < 3


@pytest.mark.parametrize(
    "content", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, b"\xff\xd8\xff\xe0"]
)
def test_what_is_no_picture_is_named(tmp_path, content):
    path = tmp_path / "broken.png"
    path.write_bytes(content)
    with pytest.raises(UnreadableImageError, match=r"broken\.png.*skip_unreadable"):
        decode(path, 8)


@pytest.mark.parametrize("kind", ["png", "jpg", "webp", "bmp", "gif", "tiff"])
def test_a_truncated_picture_is_an_error(tmp_path, kind):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    path = saved(tmp_path, Image.fromarray(noise), kind)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UnreadableImageError, match="picture"):
        decode(path, 8)


@pytest.mark.parametrize("side", [9_000, 12_000, 40_000])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_decompression_bomb_is_an_error(tmp_path, side):
    buffer = io.BytesIO()
    Image.new("1", (8, 8)).save(buffer, "png")
    content = bytearray(buffer.getvalue())
    content[16:24] = struct.pack(">II", side, side)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path = tmp_path / "bomb.png"
    path.write_bytes(content)
    with pytest.raises(UnreadableImageError, match=r"bomb\.png.*pixels"):
        decode(path, 8)


def test_unclear_depths_are_refused(tmp_path):
    with pytest.raises(UnreadableImageError, match="float"):
        decode(saved(tmp_path, Image.new("F", (4, 4), 0.5), "tiff"), 4)
    with pytest.raises(UnreadableImageError, match="16 bits"):
        decode(saved(tmp_path, Image.new("I", (4, 4), 1_000_000), "tiff"), 4)


def test_a_photo_becomes_what_the_model_takes(tmp_path):
    Image.new("RGB", (40, 20), (255, 0, 0)).save(tmp_path / "red.png")
    assert read_picture(tmp_path / "red.png", (3, 8, 12)).shape == (3, 8, 12)
    grey = read_picture(tmp_path / "red.png", (1, 8, 8))
    torch.testing.assert_close(grey, torch.full((1, 8, 8), 0.299), atol=1e-5, rtol=0)
    with pytest.raises(DataError, match="3 channels, 5 "):
        read_picture(tmp_path / "red.png", (5, 8, 8))
