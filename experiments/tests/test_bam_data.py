import numpy as np
import pytest
import torch
from PIL import Image

from data_makers import write_cutouts, write_folder
from experiments.bam.sources import compose_bam, decode_cutout, load_bam
from torchsite.data.pictures import UnreadableImageError
from torchsite.errors import ConfigError, DataError


@pytest.fixture
def parts(tmp_path):
    scenes = write_folder(tmp_path / "scenes", ("beach", "forest", "street"), n=4, size=(40, 40))
    return scenes, write_cutouts(tmp_path / "objects")


def test_every_pair_is_there_and_each_round_shows_all(parts):
    bam = compose_bam(*parts, size=32, per_pair=5)
    pairs = torch.stack([bam.object_labels, bam.scene_labels], 1)
    assert len(bam) == 2 * 3 * 5
    for start in range(0, 30, 6):
        assert len(pairs[start : start + 6].unique(dim=0)) == 6


def test_the_region_is_where_the_object_is(parts):
    bam = compose_bam(*parts, size=32, per_pair=5)
    changed = (bam.images != bam.scenes_only).any(1)
    assert (changed & ~bam.regions).float().mean() < 0.02  # soft edges of the alpha
    red = bam.images[:, 0].masked_fill(~bam.regions, 255)
    assert red.min() > 100
    share = bam.regions.flatten(1).float().mean(1)
    assert share.min() > 0.05
    assert share.max() <= 0.25


def test_the_twin_is_a_scene_of_the_class(parts):
    bam = compose_bam(*parts, size=32, per_pair=5)
    assert torch.equal(bam.scenes_only[:, 0, 0, 0], (40 * bam.scene_labels).to(torch.uint8))


def test_both_labellings_are_of_the_same_pictures(parts):
    bam = compose_bam(*parts, size=32, per_pair=2)
    by_object, by_scene = bam.labelled("object"), bam.labelled("scene")
    assert torch.equal(by_object.images, by_scene.images)
    assert by_object.classes == ("apple", "pear")
    assert by_scene.classes == ("beach", "forest", "street")
    with pytest.raises(ConfigError, match="'object'"):
        bam.labelled("objects")


def test_seeds_repeat_and_differ(parts):
    first, again, other = (compose_bam(*parts, size=32, per_pair=3, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.images, again.images)
    assert torch.equal(first.regions, again.regions)
    assert not torch.equal(first.regions, other.regions)


def test_another_class_leaves_the_other_pairs_alone(parts):
    before = compose_bam(*parts, size=32, per_pair=2)
    write_cutouts(parts[1], ("zebra",))
    after = compose_bam(*parts, size=32, per_pair=2)
    kept = after.object_labels < 2
    assert torch.equal(after.images[kept], before.images)


def test_slices_keep_everything_together(parts):
    bam = compose_bam(*parts, size=32, per_pair=2)
    part = bam[torch.tensor([3, 1])]
    assert torch.equal(part.images, bam.images[[3, 1]])
    assert torch.equal(part.scenes_only, bam.scenes_only[[3, 1]])
    assert torch.equal(part.regions, bam.regions[[3, 1]])


def test_bam_by_name(tmp_path):
    for half in ("train", "test"):
        write_folder(tmp_path / "bam" / "scenes" / half, ("beach", "forest"), n=2)
        write_cutouts(tmp_path / "bam" / "objects_fruit" / half)
    data = load_bam("test", objects="fruit", data_dir=tmp_path, size=16, per_pair=2).labelled("scene")
    assert (data.classes, len(data), data.title) == (("beach", "forest"), 8, "bam-scene/test")
    with pytest.raises(ConfigError, match="'fruit'"):
        load_bam("train", data_dir=tmp_path, objects="fruits")
    with pytest.raises(ConfigError, match="per_pair"):
        load_bam("test", data_dir=tmp_path, per_pair=0)


def test_cutouts_without_splits_are_split_by_photo(tmp_path):
    """Two cut-outs of one photo, of whatever class, never lie on both sides."""
    write_folder(tmp_path / "bam" / "scenes" / "train", ("beach", "forest"), n=2)
    write_folder(tmp_path / "bam" / "scenes" / "test", ("beach", "forest"), n=2)
    for name in ("dog", "kite"):
        folder = tmp_path / "bam" / "objects_coco" / name
        folder.mkdir(parents=True)
        for photo in range(10):
            for part in range(2):
                colour = (photo * 20, 10 * part, 0, 255)
                Image.new("RGBA", (6, 6), colour).save(folder / f"{photo:04d}_{name}{part}.png")

    def photos(split):
        bam = load_bam(split, objects="coco", data_dir=tmp_path, size=24, per_pair=40)
        reds = [
            image[0][region].median().item() for image, region in zip(bam.images, bam.regions, strict=True)
        ]
        return {round(red / 20) for red in reds}

    assert photos("train") | photos("test") == set(range(10))
    assert not photos("train") & photos("test")


def test_bad_parts(tmp_path, parts):
    scenes, objects = parts
    with pytest.raises(DataError, match=r"(?s)bam .*scenes.*objects_.*TORCHSITE_DATA"):
        load_bam("train", data_dir=tmp_path / "scenes")
    Image.fromarray(np.zeros((5, 5, 3), np.uint8)).save(objects / "apple" / "opaque.png")
    with pytest.raises(DataError, match=r"opaque\.png.*alpha"):
        compose_bam(scenes, objects, size=16)
    assert compose_bam(scenes, objects, size=16, skip_unreadable=True).skipped == 1


def saved(folder, picture):
    picture.save(folder / "cutout.png")
    return folder / "cutout.png"


def test_a_cutout_is_trimmed_to_what_is_opaque(tmp_path):
    cutout = Image.new("RGBA", (30, 20), (0, 0, 0, 0))
    cutout.paste((255, 0, 0, 255), (5, 5, 15, 10))
    assert decode_cutout(saved(tmp_path, cutout), 100).size == (10, 5)
    assert decode_cutout(saved(tmp_path, cutout), 4).size == (4, 2)
    with pytest.raises(UnreadableImageError, match="transparent everywhere"):
        decode_cutout(saved(tmp_path, Image.new("RGBA", (4, 4), (9, 9, 9, 0))), 4)
    with pytest.raises(UnreadableImageError, match="alpha channel"):
        decode_cutout(saved(tmp_path, Image.new("RGB", (4, 4))), 4)
