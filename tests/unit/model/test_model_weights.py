"""Weights on disk: back bit for bit, or refused with the reason; never half, never unpickled."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import experiments  # noqa: F401  # its forms of the parts obey the same laws
import trunk_generator  # noqa: F401  # as does that of tests
from torchsite.errors import ConfigError, WeightsError
from torchsite.model import EXTRACTORS, GENERATORS, SITE, BlackBox, load, pretrained
from torchsite.transforms import TransformFamily

EXTRACTOR_OPTIONS = {
    "identity": {},
    "small_cnn": {"depth": 3, "widths": (4, 5, 6)},
    "pyramid": {"depth": 3, "widths": (4, 5, 6, 7), "common": 4},
}
GENERATOR_OPTIONS = {
    "trunk": {"widths": (4, 5), "code": 6, "trunk": (4, 5, 6)},
    "lateral": {"widths": (4, 5), "code": 6, "trunk": (4, 5)},
    "spatial": {"widths": (4, 5), "trunk": (4, 5)},
    "two_scales": {"widths": (4, 5), "trunk": (4, 5)},
    "shared_patterns": {"widths": (4, 5), "trunk": (4, 5)},
    "constant": {},
}
PRETRAINED = ("efficientnet", "two_scales")  # which have tests of their own
FREE = sorted(name for name in EXTRACTORS if not name.startswith(PRETRAINED))
PARTS = [(extractor, "lateral") for extractor in FREE] + [("pyramid", name) for name in sorted(GENERATORS)]
SHAPE = (3, 12, 12)


def make_site(extractor="identity", generator="trunk", **options):
    return SITE(
        extractor,
        generator,
        3,
        image_shape=SHAPE,
        extractor_options=EXTRACTOR_OPTIONS.get(extractor) if isinstance(extractor, str) else None,
        generator_options=GENERATOR_OPTIONS[generator],
        **options,
    ).eval()


def pictures(n=4):
    return torch.rand(n, *SHAPE, generator=torch.Generator().manual_seed(0))


def assert_same(first, second):
    one, other = first.state_dict(), second.state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    with torch.no_grad():
        assert torch.equal(first(pictures()), second(pictures()))


@pytest.fixture
def folder(tmp_path):
    return make_site().save_pretrained(tmp_path / "model")


# There and back


@pytest.mark.parametrize(("extractor", "generator"), PARTS)
def test_models_come_back_bit_for_bit(extractor, generator, tmp_path):
    family = TransformFamily(max_rotation=30, scale=(0.5, 2))
    model = make_site(extractor, generator, classes=["katt", "hund", "höna"], family=family)
    model.train()(pictures())  # statistics of batch norm that are not the initial ones
    model.eval().save_pretrained(tmp_path)
    back = SITE.from_pretrained(tmp_path)
    assert not back.training
    assert back.config == model.config
    assert_same(model, back)
    assert_same(model, load(tmp_path))


@pytest.mark.parametrize("extractor", FREE)
def test_black_boxes_come_back_bit_for_bit(extractor, tmp_path):
    options = {"extractor_options": EXTRACTOR_OPTIONS[extractor], "encoder_options": {"widths": (4, 5)}}
    model = BlackBox(extractor, 3, image_shape=SHAPE, **options).eval()
    back = load(model.save_pretrained(tmp_path))
    assert isinstance(back, BlackBox)
    assert back.config == model.config
    assert_same(model, back)


def test_half_precision_takes_half_the_room(tmp_path):
    model = make_site("pyramid")
    full = model.save_pretrained(tmp_path / "full") / "model.safetensors"
    half = model.save_pretrained(tmp_path / "half", dtype=torch.float16) / "model.safetensors"
    stored = load_file(half)
    assert sum(t.nbytes for t in stored.values()) < 0.51 * sum(t.nbytes for t in load_file(full).values())
    back = SITE.from_pretrained(half.parent)
    for name, tensor in model.state_dict().items():
        expected = tensor.half().float() if tensor.is_floating_point() else tensor
        assert torch.equal(back.state_dict()[name], expected)
    assert_same(back, SITE.from_pretrained(back.save_pretrained(tmp_path / "again")))


def test_parts_may_share_weights(tmp_path):
    shared = nn.Conv2d(3, 3, 3, padding=1)
    model = make_site(nn.Sequential(shared, nn.ReLU(), shared))
    back = SITE.from_pretrained(
        model.save_pretrained(tmp_path),
        feature_extractor=nn.Sequential(again := nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(), again),
    )
    assert_same(model, back)


def test_a_module_of_ones_own_must_be_passed_again(tmp_path):
    model = make_site(nn.Conv2d(3, 4, 3, stride=2))
    model.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="`feature_extractor=…`"):
        SITE.from_pretrained(tmp_path)
    assert_same(model, SITE.from_pretrained(tmp_path, feature_extractor=nn.Conv2d(3, 4, 3, stride=2)))
    with pytest.raises(WeightsError, match="shape"):
        SITE.from_pretrained(tmp_path, feature_extractor=nn.Conv2d(3, 4, 2, stride=2, padding=0))


def test_modules_and_options_that_have_no_place_are_refused(folder):
    with pytest.raises(ConfigError, match="'feature_extractor'"):
        SITE.from_pretrained(folder, feature_extractor=nn.Conv2d(3, 4, 3))
    with pytest.raises(ConfigError, match=r"'revison': .*'revision'"):
        SITE.from_pretrained(folder, revison="main")


def test_each_kind_loads_only_its_own(folder):
    with pytest.raises(ConfigError, match="black box"):
        BlackBox.from_pretrained(folder)


# Strictness


def edit_config(folder, **changes):
    path = folder / "config.json"
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clases": ["a", "b", "c"]}, "'clases': .*'classes'"),
        ({"activation": "softmax"}, "activation: "),
        ({"image_shape": [3, 12]}, "image_shape: "),
        ({"classes": ["a", 2, "c"]}, "classes: "),
        ({"family": {"max_rotations": 3}}, "'max_rotation'"),
        ({"kind": None}, "kind"),
        ({"kind": "other"}, "kind: "),
    ],
)
def test_unknown_fields_and_wrong_values_are_refused(folder, changes, words):
    edit_config(folder, **changes)
    with pytest.raises(WeightsError, match=words):
        load(folder)


def edit_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.pop("generator.heads.bias"), r"generator\.heads\.bias"),
        (lambda t: t.update(extra=torch.zeros(2)), "'extra'"),
        (
            lambda t: t.update({"generator.heads.bias": torch.zeros(1)}),
            r"generator\.heads\.bias .*\(1,\)",
        ),
        (
            lambda t: t.update({"generator.heads.bias": torch.zeros(9, dtype=torch.int32)}),
            r"generator\.heads\.bias .*int32",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(folder, change, words):
    edit_tensors(folder, change)
    with pytest.raises(WeightsError, match=words):
        SITE.from_pretrained(folder)


def test_weights_of_another_architecture_are_refused(folder):
    edit_config(folder, generator_options={"widths": [4, 7], "code": 6, "trunk": [4, 5, 6]})
    with pytest.raises(WeightsError, match="shape"):
        SITE.from_pretrained(folder)


# Damage


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(folder, share):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(WeightsError, match="model"):
        SITE.from_pretrained(folder)


def test_a_flipped_bit_in_the_header_is_refused_or_changes_nothing(folder):
    path = folder / "model.safetensors"
    content, whole = path.read_bytes(), load_file(path)
    header = int.from_bytes(content[:8], "little")
    rng = torch.Generator().manual_seed(0)
    expected = make_site().state_dict()
    refused = 0
    for _ in range(150):
        place, bit = (int(torch.randint(n, (), generator=rng)) for n in (8 + header, 8))
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            found = pretrained.read_tensors(folder, expected)
        except WeightsError:
            refused += 1
        else:
            assert all(torch.equal(found[name], whole[name]) for name in expected)
    assert refused > 100


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"site"', "\udcff"])
def test_a_damaged_config_is_refused(folder, text):
    (folder / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(WeightsError, match=r"config\.json"):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(WeightsError, match=f"{name}: .*save_pretrained"):
        load(folder)


def test_pickles_are_never_read(folder, monkeypatch):
    torch.save(torch.load, folder / "pytorch_model.bin")
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("unpickled"))
    SITE.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        SITE.from_pretrained(folder)
    shutil.copy(folder / "pytorch_model.bin", folder / "model.safetensors")
    with pytest.raises(WeightsError, match="model"):
        SITE.from_pretrained(folder)


# Names


@pytest.mark.parametrize("name", ["mnits", "no/such/folder", "/no/such/folder", "../nothing"])
def test_a_name_that_cannot_be_a_hub_id_is_refused_without_asking_the_hub(name, monkeypatch):
    monkeypatch.setattr(pretrained, "snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    monkeypatch.setattr(pretrained, "shipped_models", lambda: {"mnist": None})
    with pytest.raises(WeightsError, match="owner/name"):
        load(name)


def test_a_misspelt_shipped_name_gets_a_hint(monkeypatch):
    monkeypatch.setattr(pretrained, "shipped_models", lambda: {"mnist": None})
    with pytest.raises(WeightsError, match="'mnist'"):
        load("mnits")


def test_a_hub_that_is_out_of_reach_is_an_error_in_plain_words(tmp_path):
    with pytest.raises(WeightsError, match="'nobody/nothing'"):
        load("nobody/nothing", local_files_only=True, cache_dir=tmp_path)


@pytest.mark.parametrize("error", [OSError("broken"), RuntimeError(""), ConnectionError("no route\nmore")])
def test_whatever_the_network_raises_becomes_a_weights_error(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(pretrained, "snapshot_download", fail)
    with pytest.raises(WeightsError, match=type(error).__name__):
        SITE.from_pretrained("owner/name")


def test_the_hub_is_asked_for_its_files_and_with_the_callers_options(folder, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        pretrained, "snapshot_download", lambda name, **options: asked.update(options, name=name) or folder
    )
    load("owner/name", revision="v2")
    assert asked == {
        "name": "owner/name",
        "revision": "v2",
        "allow_patterns": ["config.json", "model.safetensors", "gallery.safetensors"],
    }


# Saving is all or nothing


@pytest.mark.parametrize("failing", ["save_file", "to_mapping", "config"])
def test_a_save_that_fails_leaves_the_old_model(failing, folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*arguments, **_):
        if failing == "config" and arguments[0].name != "config.json":
            return write(*arguments)
        raise OSError(28, "No space left on device")

    write = pretrained.write_atomically
    monkeypatch.setattr(pretrained, "write_atomically" if failing == "config" else failing, fail)
    with pytest.raises(OSError, match="No space left"):
        make_site("identity", "lateral").save_pretrained(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    SITE.from_pretrained(folder)


# Black boxes of earlier versions


def test_the_old_names_of_a_black_boxs_encoder_are_still_read(tmp_path):
    model = BlackBox("identity", 3, image_shape=SHAPE, encoder_options={"widths": (4, 5)}).eval()
    folder = model.save_pretrained(tmp_path)
    values = json.loads((folder / "config.json").read_text())
    assert not {"generator", "generator_options", "activation", "zero_sum"} & values.keys()
    old = {"activation": "relu", "product_scale": 1.0, "zero_sum": False}
    old |= {"generator": values["encoder_of"], "generator_options": values["encoder_options"]}
    edit_config(folder, encoder_of=None, encoder_options=None, **old)
    back = load(folder)
    assert back.config == model.config
    assert_same(model, back)


def test_a_black_box_has_no_option_of_sites(folder):
    with pytest.raises(ConfigError, match="'zero_sum'"):
        BlackBox("identity", 3, image_shape=SHAPE, zero_sum=True)
    edit_config(folder, encoder_of="trunk")
    with pytest.raises(WeightsError, match="'encoder_of'"):
        load(folder)
