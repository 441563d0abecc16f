"""Configurations: what cannot be built is refused with the reason, what compares equal is equal."""

import pytest

from torchsite.errors import ConfigError
from torchsite.model import SITE, BlackBox, SiteConfig
from torchsite.model.config import read_mapping

NAMES = ("cat", "dog", "frog")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: SITE("pyramids"), "'pyramids': .*'pyramid'"),
        (lambda: SITE("identity", "trunc"), "'trunc': .*'trunk'"),
        (lambda: SITE("pyramid", extractor_options={"width": 3}), "'width': .*'widths'"),
        (lambda: SITE("identity", generator_options={"codes": 3}), "'codes': .*'code'"),
        (lambda: SITE("identity", "lateral", 10, activation="relu"), "activation: "),
        (lambda: SITE("identity", "lateral", 1), "classes: "),
        (lambda: SITE("identity", "lateral", 2, classes=["a"]), "classes: "),
        (lambda: SITE("identity", "lateral", 2, classes=["a", "a"]), "classes: "),
        (lambda: SITE("identity", product_scale=0.0), "product_scale: "),
        (lambda: SITE("identity", image_shape=(3, 0, 4)), "image_shape: "),
        (lambda: SITE("identity", image_shape=(3, 4)), "image_shape: "),
        (lambda: SITE("pyramid", mean=(0.5,)), "mean and std: "),
        (lambda: SITE("pyramid", std=(0.0, 1.0, 1.0)), "std"),
        (lambda: SITE("identity", extractor_options={"depth": 4}), "identity"),
        (lambda: SITE("pyramid", extractor_options={"widths": "many"}), "pyramid"),
        (lambda: SITE("pyramid", extractor_options={"widths": (4,)}), "feature extractor"),
    ],
)
def test_what_cannot_be_built_is_refused(build, words):
    with pytest.raises(ConfigError, match=words):
        build()


def test_one_kind_does_not_take_the_configuration_of_the_other():
    black_box = BlackBox("identity", 3, image_shape=(1, 12, 12))
    with pytest.raises(ConfigError, match="SITE"):
        SITE.from_config(black_box.config)
    with pytest.raises(ConfigError, match="black box"):
        BlackBox.from_config(SITE("identity", "lateral", 3, image_shape=(1, 12, 12)).config)


def test_configs_compare_equal_whether_options_are_lists_or_tuples():
    common = {"image_shape": (1, 4, 4), "classes": NAMES}
    assert SiteConfig(**common, generator_options={"widths": [1, 2]}) == SiteConfig(
        **common, generator_options={"widths": (1, 2)}
    )


def test_an_unknown_option_is_refused_with_the_nearest_known_one():
    with pytest.raises(TypeError, match="zero_sun"):
        SITE("identity", zero_sun=True)
    with pytest.raises(ConfigError, match=r"'encoder_off': .*'encoder_of'") as refused:
        BlackBox("identity", encoder_off="lateral")
    assert "PARTS" not in str(refused.value), "only fields are options"


@pytest.mark.parametrize("kind", [None, "sight", 3, ["site"]])
def test_a_configuration_says_of_which_kind_it_is(kind):
    with pytest.raises(ConfigError, match=r"kind: .*site, black_box, b_cos, prototype_parts"):
        read_mapping({"kind": kind, "image_shape": [1, 4, 4], "classes": NAMES})


def test_names_of_classes_say_how_many_there_are():
    assert SITE("identity", "lateral", image_shape=(1, 12, 12), classes=NAMES).config.n_classes == 3
    assert SITE("identity", "lateral", image_shape=(1, 12, 12)).config.n_classes == 10
