"""A 1×1 convolution with a stride: our own is torch's, without the part of torch that may corrupt memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torchsite.attribution import METHODS
from torchsite.model import EXTRACTORS, GENERATORS, SITE
from torchsite.model.blocks import PointwiseConv2d
from torchsite.randomness import make_rng

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
COLOUR = (3, 32, 32)

widths = st.integers(1, 9)
sides = st.integers(1, 17)


class Plain(nn.Conv2d):
    """Torch's own strided convolution in double precision, for which there is no code but the safe one."""

    def forward(self, maps):
        return F.conv2d(maps.double(), self.weight, self.bias, self.stride).to(maps.dtype)


def twins(inputs, outputs, stride, bias, dtype=torch.float64):
    ours = PointwiseConv2d(inputs, outputs, stride, bias)
    plain = Plain(inputs, outputs, 1, stride=stride, bias=bias)
    plain.load_state_dict(ours.state_dict())
    return ours.to(dtype=dtype, memory_format=torch.channels_last), plain.double()


def gradients(conv, maps, signal):
    maps = maps.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    answer = conv(maps)
    return answer, *torch.autograd.grad(answer, [maps, *conv.parameters()], signal)


@settings(max_examples=50, deadline=None)
@given(
    widths,
    widths,
    sides,
    sides,
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(list(TOLERANCE)),
    st.sampled_from([torch.channels_last, torch.contiguous_format]),
)
def test_it_is_the_strided_convolution_forward_and_backward(
    inputs, outputs, rows, cols, stride, bias, dtype, layout
):
    ours, plain = twins(inputs, outputs, stride, bias, dtype)
    rng = make_rng(0, "maps")
    maps = torch.randn(2, inputs, rows, cols, generator=rng, dtype=dtype).to(memory_format=layout)
    signal = torch.randn(plain(maps).shape, generator=rng, dtype=dtype)
    for found, expected in zip(gradients(ours, maps, signal), gradients(plain, maps, signal), strict=True):
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected.to(dtype), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_weights_start_and_are_called_as_in_torch():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        ours = PointwiseConv2d(4, 5, stride=2)
        torch.manual_seed(0)
        plain = nn.Conv2d(4, 5, 1, stride=2)
    assert ours.state_dict().keys() == plain.state_dict().keys()
    assert all(torch.equal(ours.state_dict()[name], tensor) for name, tensor in plain.state_dict().items())


def test_channels_last_stays_channels_last():
    maps = torch.rand(2, 8, 6, 6).to(memory_format=torch.channels_last)
    ours, _ = twins(8, 16, stride=2, bias=False, dtype=torch.float32)
    assert ours(maps).is_contiguous(memory_format=torch.channels_last)


class Block(nn.Module):
    """A stage that halves, with a skip: what a residual network is made of."""

    def __init__(self, skip):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU())
        self.main = nn.Conv2d(4, 5, 3, stride=2, padding=1)
        self.skip = skip
        self.head = nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3))

    def forward(self, images):
        maps = self.stem(images)
        return self.head(self.main(maps) + self.skip(maps))


@pytest.mark.parametrize(
    "method",
    ["gradient", "guided_backprop", "deconvnet", "excitation_backprop", "contrastive_excitation_backprop"],
)
def test_attributions_know_it_as_they_know_the_strided_one(method):
    ours, plain = twins(4, 5, stride=2, bias=False)
    ours, plain = Block(ours).double(), Block(plain).double()
    plain.load_state_dict(ours.state_dict())
    images = torch.rand(2, 1, 9, 9, generator=make_rng(0, "pictures"), dtype=torch.float64)
    classes = torch.tensor([1, 2])
    options = {"layer": "stem"} if "excitation" in method else {}
    found, expected = (METHODS[method](model, **options)(images, classes) for model in (ours, plain))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


PARTS = [(extractor, "lateral") for extractor in EXTRACTORS] + [("identity", name) for name in GENERATORS]


@pytest.mark.parametrize(("extractor", "generator"), PARTS)
def test_no_part_of_ours_has_the_dangerous_one(extractor, generator):
    model = SITE(extractor, generator, 2, image_shape=COLOUR)
    assert not [name for name, module in model.named_modules() if is_dangerous(module)]


def is_dangerous(module):
    return (
        type(module) is nn.Conv2d and module.kernel_size == (1, 1) and any(step > 1 for step in module.stride)
    )
