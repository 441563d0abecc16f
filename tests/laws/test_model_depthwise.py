"""A convolution of each channel by itself: torch's, and in float32 where autocast asks for less."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torchsite.model.blocks import DepthwiseConv2d
from torchsite.model.fine_tuned import prepared
from torchsite.randomness import make_rng


def answer_and_gradients(conv, maps):
    maps = maps.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    answer = conv(maps)
    return answer, *torch.autograd.grad(answer.square().sum(), [maps, *conv.parameters()])


def twins(channels, kernel, stride, bias):
    options = {"stride": stride, "padding": kernel // 2, "groups": channels, "bias": bias}
    ours, plain = (form(channels, channels, kernel, **options) for form in (DepthwiseConv2d, nn.Conv2d))
    plain.load_state_dict(ours.state_dict())
    return ours, plain


cases = (st.integers(1, 9), st.sampled_from([1, 3, 5]), st.integers(1, 2), st.booleans(), st.integers(1, 13))


@settings(max_examples=30, deadline=None)
@given(*cases)
def test_it_is_the_convolution_of_torch(channels, kernel, stride, bias, side):
    ours, plain = twins(channels, kernel, stride, bias)
    maps = torch.randn(2, channels, side, side, generator=make_rng(0))
    for found, expected in zip(*(answer_and_gradients(conv, maps) for conv in (ours, plain)), strict=True):
        assert torch.equal(found, expected)


@settings(max_examples=30, deadline=None)
@given(*cases)
def test_under_autocast_only_its_input_and_answer_are_rounded(channels, kernel, stride, bias, side):
    ours, plain = twins(channels, kernel, stride, bias)
    maps = torch.randn(2, channels, side, side, generator=make_rng(0)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = ours(maps)
    assert found.dtype == maps.dtype
    assert torch.equal(found, plain(maps.float()).bfloat16())


def test_networks_of_others_are_given_it_with_their_weights():
    network = nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 6, 3, groups=2), nn.Conv2d(1, 1, 3))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    after = prepared(network)
    assert [type(conv) for conv in after] == [DepthwiseConv2d, nn.Conv2d, nn.Conv2d]
    assert all(torch.equal(before[name], tensor) for name, tensor in after.state_dict().items())
