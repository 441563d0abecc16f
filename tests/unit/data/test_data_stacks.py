"""Images as people have them: stacks of channels, 16 bits, arrays, medicine."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from torchsite.autotrain.choices import choose_settings
from torchsite.autotrain.survey import Survey
from torchsite.data import as_images, load_dataset
from torchsite.data.pictures import decode, read_picture
from torchsite.data.stacks import n_channels, read_stack, to_bytes
from torchsite.errors import DataError, MissingExtraError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))


def stack(path, n=4, dtype=np.uint8, seed=0):
    """A TIFF of grey pages, each brighter than the last."""
    rng = np.random.default_rng(seed)
    top = np.iinfo(dtype).max
    pages = [(rng.random((20, 30)) * top * (i + 1) / n).astype(dtype) for i in range(n)]
    first, *rest = (Image.fromarray(page) for page in pages)
    first.save(path, save_all=True, append_images=rest)
    return np.stack(pages)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_pages_of_a_tiff_are_channels(tmp_path, n, dtype):
    pages = stack(tmp_path / "a.tif", n, dtype)
    assert n_channels(tmp_path / "a.tif") == n
    assert np.array_equal(read_stack(tmp_path / "a.tif"), to_bytes(pages))
    assert decode(tmp_path / "a.tif", 16, n).shape == (n, 16, 16)
    assert as_images(tmp_path / "a.tif").shape == (1, n, 20, 30)
    assert read_picture(tmp_path / "a.tif", (n, 8, 8)).shape == (n, 8, 8)


def test_samples_of_a_tiff_are_channels(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    pixels = np.random.default_rng(0).integers(0, 65535, (5, 12, 12)).astype(np.uint16)
    tifffile.imwrite(
        tmp_path / "a.tif", np.moveaxis(pixels, 0, -1), photometric="minisblack", planarconfig="contig"
    )
    assert n_channels(tmp_path / "a.tif") == 5
    assert np.array_equal(read_stack(tmp_path / "a.tif"), to_bytes(pixels))


def test_one_page_is_a_picture_as_before(tmp_path):
    Image.fromarray(np.full((9, 9), 65535, np.uint16)).save(tmp_path / "a.tif")
    assert n_channels(tmp_path / "a.tif") == 3
    assert decode(tmp_path / "a.tif", 9).min() == 255


def test_a_folder_of_stacks_is_a_data_set_of_as_many_channels(tmp_path):
    for number in range(12):
        folder = tmp_path / "cells" / ("a" if number % 2 else "b")
        folder.mkdir(parents=True, exist_ok=True)
        stack(folder / f"{number}.tif", 4, seed=number)
    np.save(tmp_path / "cells" / "a" / "x.npy", np.zeros((16, 16, 4), np.uint8))
    found = load_dataset(tmp_path / "cells", size=16)
    assert found.images.shape[1:] == (4, 16, 16)
    Image.new("RGB", (20, 20)).save(tmp_path / "cells" / "a" / "colour.png")
    with pytest.raises(DataError, match="3 channels, 4 "):
        decode(tmp_path / "cells" / "a" / "colour.png", 16, 4)


def test_arrays_are_read_without_unpickling(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError):
        decode(tmp_path / "a.npy", 8, 4)
    np.save(tmp_path / "b.npy", np.zeros((8, 8)))
    with pytest.raises(DataError, match="channels"):
        decode(tmp_path / "b.npy", 8, 4)
    with pytest.raises(ValueError, match="8 or 16 bits"):
        to_bytes(np.array([-1]))


def test_dicom_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydicom", None)
    (tmp_path / "a.dcm").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"torchsite\[dicom\]"):
        decode(tmp_path / "a.dcm", 8)


@pytest.mark.parametrize("way_round", ["MONOCHROME1", "MONOCHROME2"])
def test_dicom_by_its_window_and_the_right_way_round(tmp_path, monkeypatch, way_round):
    """A stand-in for pydicom, with the attributes that its data sets have."""
    content = SimpleNamespace(
        Rows=2,
        Columns=2,
        pixel_array=np.array([[0, 1000], [2000, 4000]], np.uint16),
        RescaleSlope=1,
        RescaleIntercept=-1000,
        WindowCenter=[500],
        WindowWidth=[1000],
        PhotometricInterpretation=way_round,
    )
    reader = SimpleNamespace(read_file_meta_info=lambda path: SimpleNamespace())
    pydicom = SimpleNamespace(dcmread=lambda path: content, filereader=reader)
    monkeypatch.setitem(sys.modules, "pydicom", pydicom)
    (tmp_path / "a.dcm").write_bytes(b"")
    expected = np.array([[0, 0], [255, 255]])
    expected = 255 - expected if way_round == "MONOCHROME1" else expected
    assert np.array_equal(read_stack(tmp_path / "a.dcm")[0], expected)
    assert decode(tmp_path / "a.dcm", 4).shape == (3, 4, 4)


def test_a_real_dicom_file(tmp_path):
    pydicom = pytest.importorskip("pydicom", reason="the extra `dicom` is not installed")
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage

    pixels = (np.arange(64).reshape(8, 8) * 65).astype(np.uint16)  # twelve bits
    file = pydicom.Dataset()
    file.Rows = file.Columns = 8
    file.SamplesPerPixel, file.PhotometricInterpretation = 1, "MONOCHROME2"
    file.BitsAllocated, file.BitsStored, file.HighBit, file.PixelRepresentation = 16, 12, 11, 0
    file.PixelData = pixels.tobytes()
    file.SOPClassUID, file.SOPInstanceUID = SecondaryCaptureImageStorage, "1.2.3"
    file.file_meta = FileMetaDataset()
    file.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    file.file_meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    file.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    file.save_as(tmp_path / "a.dcm", enforce_file_format=True)
    assert np.array_equal(read_stack(tmp_path / "a.dcm")[0], (pixels / 4095 * 255).round())


def test_networks_of_three_channels_are_not_chosen_for_others():
    plan = choose_settings("cells", Survey(200, 50, 3, 128, (), 5), minutes=10, pretrained=True)
    assert plan.recipe.model.feature_extractor == "pyramid"


def test_arrays_of_the_models_channels_are_images():
    assert as_images(np.zeros((6, 6, 5), np.uint8), (5, 6, 6)).shape == torch.Size([1, 5, 6, 6])
