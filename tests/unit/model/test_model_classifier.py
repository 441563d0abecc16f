"""A classifier of one's own becomes the front of a model that explains itself."""

import pytest
import torch
from torch import nn

from torchsite.errors import ConfigError, NotApplicableError
from torchsite.model import SITE, ClassifierFront
from torchsite.training import TrainingConfig
from torchsite.training.optimisers import make_optimisers

SHAPE = (1, 16, 16)
SMALL = {"widths": (4, 4), "trunk": (4, 4)}


class Branching(nn.Module):
    """A block whose code depends on values: nobody can read it ahead, but everybody can call it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, maps):
        return self.conv(maps) if float(maps.detach().sum()) < 1e9 else maps


class Net(nn.Module):
    """Somebody else's classifier: a stem, two stages, a head, and a norm with statistics."""

    def __init__(self, n_classes=4):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True)
        )
        self.stage1, self.stage2 = Branching(), nn.Sequential(nn.Conv2d(6, 8, 3, 2, 1), nn.ReLU(inplace=True))
        self.head = nn.Linear(8, n_classes)

    def forward(self, images):
        maps = self.stage2(self.stage1(self.stem(images)))
        return self.head(maps.mean((-2, -1)))


@pytest.fixture
def net():
    torch.random.manual_seed(0)
    return Net().eval()


def twin(net, **options):
    return SITE.from_classifier(net, SHAPE, generator="spatial", generator_options=SMALL, **options)


@pytest.mark.parametrize("layer", [None, "stage2", "stage1", "stem.0"])
def test_the_front_answers_what_the_network_has_at_the_layer(net, layer):
    front = ClassifierFront(net, SHAPE, layer).eval()
    assert front.layers == (layer or "stage2",)
    images = torch.rand(3, *SHAPE)
    expected = {"stem.0": net.stem[0](images)}
    expected["stage1"] = net.stage1(net.stem(images))
    expected["stage2"] = net.stage2(expected["stage1"].clone())
    (maps,) = front.body(images)
    assert torch.equal(maps, expected[front.layers[0]])


def test_a_layer_may_be_a_module(net):
    assert ClassifierFront(net, SHAPE, net.stage1).layers == ("stage1",)


def test_unless_told_all_maps_of_stride_8_and_more_are_summed():
    stages = [nn.Sequential(nn.Conv2d(n, n + 1, 3, 2, 1), nn.ReLU()) for n in range(1, 6)]
    deep = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2))
    model = SITE.from_classifier(deep, (1, 64, 64), generator="spatial", generator_options=SMALL)
    assert model.feature_extractor.layers == ("2", "3", "4")
    assert model.feature_shape == (16, 8, 8)
    assert ClassifierFront(deep, (1, 64, 64), ["1", deep[3]]).layers == ("1", "3")


def test_where_finer_layers_cannot_be_read_the_last_is_taken():
    class Net(nn.Sequential):
        def forward(self, images):
            maps = self[0](images)
            return self[2](self[1](maps) if float(maps.detach().sum()) < 1e9 else maps)

    inner = nn.Sequential(nn.Conv2d(1, 2, 8, 8), Net(nn.Conv2d(2, 2, 1), nn.ReLU(), nn.Conv2d(2, 2, 2, 2)))
    whole = nn.Sequential(inner, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
    assert ClassifierFront(whole, (1, 64, 64)).layers == ("0",)


def test_what_comes_after_the_layer_is_gone_and_names_are_kept(net):
    names = ClassifierFront(net, SHAPE, "stage1").body.state_dict().keys()
    assert names == {name for name in net.state_dict() if name.startswith(("stem.", "stage1."))}


def test_the_classifier_is_left_as_it_is(net):
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    model = twin(net)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    model.train()(torch.rand(4, *SHAPE)).square().sum().backward()
    optimiser.step()
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert net.stem[2].inplace
    assert all(p.grad is None for p in net.parameters())


def test_classes_and_normalisation_are_kept(net):
    plain = twin(net)
    assert plain.classes == ("0", "1", "2", "3")
    assert (plain.config.mean, plain.config.std) == ((0.0,), (1.0,))
    named = twin(net, classes=list("abcd"), mean=(0.3,), std=(0.2,))
    assert named.classes == tuple("abcd")
    images = torch.rand(2, *SHAPE)
    extractor = named.eval().feature_extractor
    assert torch.allclose(named.extract(images), extractor((images - 0.3) / 0.2))
    with pytest.raises(ConfigError, match="classes"):
        twin(net, classes=["a", "b"])


def test_the_copy_is_tuned_at_a_small_rate_and_its_statistics_stay(net):
    model = twin(net, fine_tuning=0.2)
    groups = [g for o in make_optimisers(model, TrainingConfig(learning_rate=0.01)) for g in o.param_groups]
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in model.feature_extractor.body.parameters()} == {0.002}
    model.train()(torch.rand(4, *SHAPE))
    assert torch.equal(model.feature_extractor.body.stem[1].running_mean, net.stem[1].running_mean)


def test_or_frozen(net):
    body = twin(net, fine_tuning=0.0).feature_extractor.body
    assert not any(p.requires_grad for p in body.parameters())


def test_a_twin_is_complete_and_comes_back_bit_for_bit(net, tmp_path):
    model, images = twin(net).eval(), torch.rand(2, *SHAPE)
    assert torch.allclose(model.explain(images).evidence.sum((-2, -1)), model(images), atol=1e-5)
    front = ClassifierFront(Net(), SHAPE)
    again = SITE.from_pretrained(model.save_pretrained(tmp_path), feature_extractor=front)
    assert torch.equal(again(images), model(images))


@pytest.mark.parametrize(
    ("layer", "error", "said"),
    [
        ("stage3", NotApplicableError, "'stage"),
        ("stage1.conv", NotApplicableError, "stage1.conv"),
        ("head", ConfigError, "head"),
    ],
)
def test_layers_that_will_not_do(net, layer, error, said):
    with pytest.raises(error, match=said):
        twin(net, layer=layer)


def test_a_layer_that_runs_twice_is_an_error():
    conv = nn.Conv2d(1, 1, 3, padding=1)
    with pytest.raises(NotApplicableError, match="2"):
        ClassifierFront(nn.Sequential(conv, conv, nn.Flatten(), nn.Linear(256, 2)), SHAPE, "0")


def test_what_is_no_classifier_is_an_error():
    with pytest.raises(ConfigError, match="logits"):
        twin(nn.Sequential(nn.Conv2d(1, 2, 3)))
