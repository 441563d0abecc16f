"""The audit on pictures whose shortcut is known: it is found, proved and named, and nothing else is."""

import pytest
import torch

import torchsite as ts
from tagged import Colours, coloured, true_maps, upper_left
from torchsite.data import Dataset
from torchsite.errors import ConfigError, DataError, NotApplicableError, ShapeError
from torchsite.evaluation.audit import limit_of
from torchsite.evaluation.audit_groups import places
from torchsite.evaluation.pieces import find_pieces, group_pieces, piece_side
from torchsite.evaluation.probes import elsewhere, quotient
from torchsite.metrics import plain
from torchsite.model import SITE
from torchsite.randomness import make_rng


@pytest.fixture(scope="module")
def tagged():
    """The audit of a model that trusts the tag, the data, and where the tags are."""
    data, tags = coloured()
    return ts.audit(Colours(), data, explain=true_maps, regions=tags), data, tags


def contents(audit, name):
    return [group for group in audit.groups if group["class"] == name and group["kind"] == "content"]


def test_the_tag_is_found_and_proved_and_nothing_else_stands_out(tagged):
    audit, _, _ = tagged
    (group,) = [group for group in audit.found if group["kind"] == "content"]
    assert {one["class"] for one in audit.found} == {group["class"]} == {"blue"}
    assert group["pictures"]["value"] == 1
    assert group["evidence"]["low"] > 0.5
    assert group["pasting"]["turns"]["low"] > 0.8
    assert group["pasting"]["random_turns"]["value"] < 0.2
    assert all(found["more"]["low"] > 0 for found in group["hiding"].values())
    assert group["shown"]["evidence"]["value"] > 0.5


def test_the_sentence_has_the_class_the_share_and_both_nulls(tagged):
    audit, _, _ = tagged
    (group,) = [group for group in audit.found if group["kind"] == "content"]
    sentence = next(said for said in audit.verdicts if f"group {group['number']}" in said)
    for figure in (group["evidence"], group["pasting"]["turns"], group["pasting"]["random_turns"]):
        assert f"{figure['value']:.0%}" in sentence
    assert "“blue”" in sentence
    assert not any("disagree" in said for said in audit.verdicts)


def test_regions_are_a_group_with_what_maps_and_hiding_say(tagged):
    audit, _, _ = tagged
    (group,) = [group for group in audit.groups if group["kind"] == "regions"]
    assert (group["class"], group["pointing"]["value"]) == ("blue", 1)
    assert group["evidence"]["low"] > 0.5 > group["area"]
    assert group["found"]


def test_nothing_is_said_of_a_model_without_the_shortcut():
    data, _ = coloured()
    audit = ts.audit(Colours(trust=0.0), data, explain=true_maps)
    assert audit.found == []
    assert len(audit.verdicts) == 1


def test_the_same_seed_finds_the_same(tagged):
    audit, data, tags = tagged
    again = ts.audit(Colours(), data, explain=true_maps, regions=tags)
    assert again.result.values == audit.result.values


def test_a_map_that_never_looks_is_contradicted(tagged):
    _, data, _ = tagged
    audit = ts.audit(Colours(), data, explain=upper_left)
    corners = [group for group in audit.groups if "in_others" in group]
    assert all(group["in_others"]["value"] == 1 for group in corners)
    assert any("depend on the place" in said for said in audit.verdicts)
    assert any("disagree" in said for said in audit.verdicts)


def test_maps_of_any_method_and_of_a_saved_kind(tagged):
    _, data, _ = tagged
    audit = ts.audit(Colours(), data, explain="occlusion", limit=20, n_probed=20)
    assert audit.result.config["method"] == "occlusion"
    assert [group["class"] for group in audit.found][:1] == ["blue"]


def test_what_cannot_be_audited_is_refused(tagged):
    _, data, tags = tagged
    for error, options in (
        (NotApplicableError, {}),
        (ConfigError, {"explain": "grad_camm"}),
        (ShapeError, {"explain": true_maps, "regions": tags[:3]}),
    ):
        with pytest.raises(error):
            ts.audit(Colours(), data, **options)
    with pytest.raises(DataError):
        ts.audit(Colours(), data[:9], explain=true_maps)


def test_classes_of_too_few_pictures_are_named():
    data, _ = coloured()
    few = data[torch.cat([(data.labels != 1).nonzero()[:, 0], torch.tensor([1, 4])])]
    assert "green" in ts.audit(Colours(), few, explain=true_maps).verdicts[-1]


def test_regions_of_too_few_pictures_are_named(tagged):
    _, data, tags = tagged
    few = tags & (torch.arange(len(data)) < 12)[:, None, None]
    assert "blue" in ts.audit(Colours(), data, explain=true_maps, regions=few).verdicts[-1]


def test_a_group_is_found_again_in_other_pictures(tagged):
    audit, _, _ = tagged
    other, tags = coloured(60, seed=1)
    (group,) = [group for group in audit.found if group["kind"] == "content"]
    regions = audit.regions_in(other, group["number"])
    assert (regions & tags).sum() > 0.9 * tags.sum()
    assert not regions[other.labels != 2].any()
    rest = [one["number"] for one in contents(audit, "blue") if not one["found"]]
    assert all((audit.regions_in(other, number) & tags).sum() < 0.2 * tags.sum() for number in rest)


def test_a_place_is_found_again_in_all_pictures_of_its_class(tagged):
    audit, _, _ = tagged
    other, _ = coloured(60, seed=1)
    for group in audit.groups:
        if group["kind"] in ("frame", "corners", "fixed spot"):
            regions = audit.regions_in(other, group["number"])
            own = other.labels == other.classes.index(group["class"])
            assert (regions.flatten(1).any(1) == own).all()
            assert torch.equal(regions[own][0], audit.parts[group["number"]].masks[0])


def test_groups_that_cannot_be_found_again_are_refused(tagged):
    audit, data, _ = tagged
    (given,) = [group["number"] for group in audit.groups if group["kind"] == "regions"]
    others = Dataset(data.images, data.labels, ("a", "b", "c"))
    for error, number, where in (
        (NotApplicableError, given, data),
        (ConfigError, 99, data),
        (DataError, 1, others),
    ):
        with pytest.raises(error):
            audit.regions_in(where, number)


def test_pieces_do_not_overlap_and_are_the_strongest_first():
    maps, seen = (
        torch.rand(5, 20, 24, generator=make_rng(0)) ** 4,
        torch.rand(5, 3, 10, 12, generator=make_rng(1)),
    )
    found, side = find_pieces(maps, seen, n=4), piece_side((20, 24))
    for picture in range(5):
        boxes = found.boxes[found.rows == picture]
        sums = [float(maps[picture, t:b, a:z].sum()) for a, t, z, b in boxes.tolist()]
        assert sums == sorted(sums, reverse=True)
        mask = found.by_picture((20, 24))[1][picture]
        assert int(mask.sum()) == len(boxes) * side**2
    assert found.features.shape == (len(found.rows), 3)


def test_a_map_without_peaks_has_no_pieces():
    assert len(find_pieces(torch.ones(2, 9, 9), torch.ones(2, 1, 9, 9)).rows) == 0
    assert len(find_pieces(-torch.ones(2, 9, 9), torch.ones(2, 1, 9, 9)).rows) == 0


def test_groups_are_what_is_alike_the_largest_first():
    noise = 0.01 * torch.rand(30, 4, generator=make_rng(0))
    numbers = group_pieces(noise + torch.eye(4)[torch.tensor([0] * 5 + [1] * 15 + [2] * 10)], seed=0)
    assert numbers.tolist() == [2] * 5 + [0] * 15 + [1] * 10
    assert group_pieces(torch.ones(6, 2), seed=0).tolist() == [0] * 6


def test_elsewhere_has_the_same_area_and_little_in_common():
    masks = torch.zeros(3, 16, 16, dtype=torch.bool)
    masks[:, 2:6, 3:7] = True
    moved, _ = elsewhere(masks, make_rng(0))
    assert (moved.sum((1, 2)) == 16).all()
    assert not (moved & masks).any()


def test_places_are_symmetric():
    for mask in places((20, 20)).values():
        assert torch.equal(mask, mask.T)
        assert torch.equal(mask, mask.flip(0))
        assert 0 < mask.float().mean() < 0.5


def test_the_limit_rises_with_what_other_classes_turn_up_to_a_half():
    assert limit_of([]) == limit_of([0.0] * 5) == 0.1
    assert limit_of([0.2] * 5) == 0.2
    assert limit_of([0.0, 0.4, 0.8]) == 0.5


def test_a_quotient_of_nothing_is_no_number():
    assert plain(quotient(torch.zeros(4), torch.zeros(4)))["value"] is None
    assert quotient(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0])).value == 1


def local_site(seed=0):
    """A SITE whose features see three pixels."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        options = {"depth": 4, "widths": [8, 8, 8], "common": 8}
        return SITE(
            "pyramid",
            "lateral",
            3,
            image_shape=(3, 20, 20),
            zero_sum=True,
            extractor_options=options,
            generator_options={"widths": (8, 8), "code": 8, "trunk": (8, 8)},
        )


@pytest.mark.slow
def test_a_trained_model_is_audited_by_its_own_maps():
    """Half of the squares are washed out, all tags are there: the model learns the tag, and it is found."""
    data, tags = coloured(300)
    images, grey = data.images.float() / 255, torch.tensor([0.35])
    washed = (torch.arange(300) % 2 == 0)[:, None, None] & ~tags & (images.amax(1) == 1)
    images = torch.where(washed[:, None], grey, images)
    data = Dataset((255 * images).round().to(torch.uint8), data.labels, data.classes)
    model, order = local_site().train(), make_rng(0, "order")
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        rows = torch.randint(300, (32,), generator=order)
        loss = torch.nn.functional.cross_entropy(model.run(images[rows]).logits, data.labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    audit = ts.audit(model, data)
    assert "blue" in {group["class"] for group in audit.found}
    assert all(group["pasting"]["more"]["low"] > 0 for group in audit.found)
