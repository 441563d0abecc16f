"""Files that are made to harm: pipes, small files that claim to be huge, tables that lead out of a folder."""

import io
import os
import tracemalloc
import zlib

import numpy as np
import pytest
from PIL import Image

from torchsite.data import as_images, load_dataset, stacks
from torchsite.data.duplicates import same_files
from torchsite.data.label_tables import read_label_table
from torchsite.data.pictures import decode, upright_rgb
from torchsite.data.stacks import n_channels
from torchsite.errors import DataError
from torchsite.files import regular
from torchsite.model import load

MEGABYTES = 5e6


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))


# Pipes: opening one waits for a writer, so a test that fails here hangs


@pytest.mark.parametrize("name", ["pipe.jpg", "pipe.npy", "pipe.tif", "pipe.dcm"])
def test_a_pipe_is_no_picture_and_never_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / name)
    for read in (lambda path: decode(path, 8), as_images, upright_rgb):
        with pytest.raises(DataError, match="regular"):
            read(tmp_path / name)


def test_a_pipe_in_a_class_folder_is_named_and_can_be_skipped(tmp_path):
    for name in "ab":
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(5):
            Image.new("RGB", (9, 9)).save(tmp_path / "set" / name / f"{number}.png")
    os.mkfifo(tmp_path / "set" / "a" / "pipe.jpg")
    with pytest.raises(DataError, match=r"pipe\.jpg cannot be read"):
        load_dataset(tmp_path / "set", size=8, holdout=0.01)
    assert load_dataset(tmp_path / "set", size=8, holdout=0.01, skip_unreadable=True).skipped == 1


def test_a_table_and_weights_are_regular_files_too(tmp_path):
    os.mkfifo(tmp_path / "table.csv")
    with pytest.raises(DataError, match="regular"):
        read_label_table(tmp_path / "table.csv", tmp_path)
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(Exception, match="regular"):
        load(tmp_path)
    with pytest.raises(OSError, match="regular"):
        same_files([tmp_path / "table.csv", tmp_path / "config.json"])


def test_links_to_files_are_followed_and_links_to_pipes_are_not(tmp_path):
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "good.png").symlink_to(tmp_path / "a.png")
    (tmp_path / "bad.png").symlink_to(tmp_path / "pipe")
    assert decode(tmp_path / "good.png", 8).shape == (3, 8, 8)
    with pytest.raises(OSError, match="regular"):
        regular(tmp_path / "bad.png")


def test_a_format_that_starts_a_program_is_not_tried(tmp_path):
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9)).save(buffer, "EPS")
    (tmp_path / "a.png").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="cannot identify image file"):
        decode(tmp_path / "a.png", 8)


# Small files that claim to be huge


def sparse_array(path, shape, dtype="|u1"):
    """An array of zeros that takes no room on the disk."""
    with path.open("wb") as file:
        about = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, about)
        file.truncate(file.tell() + int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return path


def page_stack(path, n_pages, side, mode="L"):
    pages = [Image.new(mode, (side, side))] * n_pages
    pages[0].save(path, save_all=True, append_images=pages[1:], compression="tiff_lzw")
    return path


def dicom(path, frames, side):
    """A file of RLE-packed black frames."""
    pydicom = pytest.importorskip("pydicom", reason="the extra `dicom` is not installed")
    from pydicom.encaps import encapsulate
    from pydicom.uid import RLELossless, SecondaryCaptureImageStorage

    file = pydicom.Dataset()
    file.Rows = file.Columns = side
    file.NumberOfFrames, file.SamplesPerPixel, file.PhotometricInterpretation = frames, 1, "MONOCHROME2"
    file.BitsAllocated, file.BitsStored, file.HighBit, file.PixelRepresentation = 8, 8, 7, 0
    head = (1).to_bytes(4, "little") + (64).to_bytes(4, "little") + bytes(56)
    file.PixelData = encapsulate([head + b"\x81\x00" * (side * side // 128)] * frames)
    file["PixelData"].is_undefined_length = True
    file.SOPClassUID, file.SOPInstanceUID = SecondaryCaptureImageStorage, "1.2.3"
    file.file_meta = pydicom.dataset.FileMetaDataset()
    file.file_meta.TransferSyntaxUID = RLELossless
    file.file_meta.MediaStorageSOPClassUID, file.file_meta.MediaStorageSOPInstanceUID = (
        file.SOPClassUID,
        "1.2.3",
    )
    file.save_as(path, enforce_file_format=True)
    return path


def refused(path, channels):
    """Refused as too large by all readers."""
    for read in (lambda path: decode(path, 8, channels), as_images, upright_rgb):
        with pytest.raises(DataError, match=f"more than {stacks.MAX_PIXELS:,} pixels"):
            read(path)


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(stacks, "MAX_PIXELS", 100_000)


@pytest.mark.parametrize("dtype", ["|u1", "<f8"])
def test_an_array_counts_all_channels_before_memory_is_taken(dtype, tmp_path):
    side = int((stacks.MAX_PIXELS / 2) ** 0.5) + 1
    path = sparse_array(tmp_path / "a.npy", (2, side, side), dtype)
    tracemalloc.start()
    refused(path, 2)
    assert tracemalloc.get_traced_memory()[1] < MEGABYTES
    tracemalloc.stop()


def test_a_stack_counts_all_pages(tmp_path, small_limit):
    refused(page_stack(tmp_path / "a.tif", 8, 120), 8)
    assert n_channels(tmp_path / "a.tif") == 8
    assert decode(page_stack(tmp_path / "b.tif", 8, 110), 8, 8).shape == (8, 8, 8)


def test_dicom_counts_all_frames(tmp_path, small_limit):
    refused(dicom(tmp_path / "a.dcm", 30, 64), 3)
    assert decode(dicom(tmp_path / "b.dcm", 20, 64), 8).shape == (3, 8, 8)


def test_deflated_dicom_is_refused(tmp_path):
    """A file of some kilobytes can be inflated to gigabytes before anything says how large it is."""
    pydicom = pytest.importorskip("pydicom", reason="the extra `dicom` is not installed")
    path = dicom(tmp_path / "a.dcm", 1, 64)
    file = pydicom.dcmread(path)
    file.decompress()
    file.file_meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    file.save_as(path)
    with pytest.raises(DataError, match="deflated"):
        decode(path, 8)


def test_samples_count_in_files_that_pillow_does_not_know(tmp_path, small_limit):
    tifffile = pytest.importorskip("tifffile")
    pixels = np.zeros((150, 150, 5), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="minisblack", planarconfig="contig")
    refused(tmp_path / "a.tif", 5)


def test_of_colour_pages_only_the_first_is_decoded(tmp_path):
    path = page_stack(tmp_path / "a.tif", 40, 400, "RGB")
    decode(path, 8)
    tracemalloc.start()
    assert decode(path, 8).shape == (3, 8, 8)
    assert tracemalloc.get_traced_memory()[1] < MEGABYTES
    tracemalloc.stop()


def test_a_page_that_claims_too_much_is_refused(tmp_path):
    """A PNG of some bytes, whose head says 9,000 × 9,000."""
    head = b"IHDR" + (9000).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    chunk = (13).to_bytes(4, "big") + head + zlib.crc32(head).to_bytes(4, "big")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + b"\x00\x00\x00\x00IDAT" + bytes(8))
    with pytest.raises(DataError, match=f"more than {stacks.MAX_PIXELS:,} pixels"):
        decode(tmp_path / "a.png", 8)


# Tables of labels


@pytest.mark.parametrize(
    "file", ["../outside.png", "/etc/outside.png", "link/outside.png", "a/../../x.png", ""]
)
def test_a_table_cannot_lead_out_of_its_folder(file, tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / "table.csv").write_text(f"file,a,b\nfine.png,1,0\n{file},0,1\n")
    with pytest.raises(DataError, match="line 3: "):
        read_label_table(folder / "table.csv", folder)


def test_a_table_may_use_folders_and_links_inside_its_own(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    (tmp_path / "table.csv").write_text("file,a,b\ndeep/x.png,1,0\nlink/y.png,0,1\n./z.png,1,1\n")
    assert len(read_label_table(tmp_path / "table.csv", tmp_path).files) == 3
