"""A model is given back as it was lent, also after an exception, a wrong target, an interrupt."""

from contextlib import nullcontext, suppress

import pytest
import torch
from attribution_networks import batch, small_resnet, small_vgg
from torch import nn

from pairwise import pairwise
from torchsite.attribution import METHODS, lent
from torchsite.errors import NotApplicableError, ShapeError

POST_HOC = sorted(METHODS.keys() - {"self_explanation"})
QUICK = {"rise": {"n_masks": 8}, "extremal_perturbation": {"n_steps": 2}, "smooth_grad": {"n_samples": 2}}


class Interrupting(nn.Module):
    """Raises an error from pass number `at` on, the first being 0."""

    def __init__(self, net, error=None, at=None):
        super().__init__()
        self.net, self.error, self.left = net, error, at

    def forward(self, images):
        answers = self.net(images)
        if self.error is not None:
            self.left -= 1
            if self.left < 0:
                raise self.error("in the middle")
        return answers


def mixed_up(net):
    """A model in a state that nobody would guess: modes, gradients, hooks and flags all mixed."""
    net.train()
    next(net.children()).eval()
    for n, tensor in enumerate(net.parameters()):
        tensor.requires_grad_(n % 2 == 0)
    for module in net.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = True
    net.register_forward_hook(lambda *_: None)
    return net


def state(net):
    modules = [
        (
            name,
            module.training,
            getattr(module, "inplace", None),
            module._is_full_backward_hook,
            *(list(hooks) for key, hooks in sorted(vars(module).items()) if key.endswith("_hooks")),
        )
        for name, module in net.named_modules()
    ]
    tensors = [
        (name, tensor.requires_grad, tensor.grad, tensor.detach().clone())
        for name, tensor in [*net.named_parameters(), *net.named_buffers()]
    ]
    return modules, tensors


def same(before, after):
    assert before[0] == after[0]
    for (name, wants, grad, values), (other, wanted, other_grad, now) in zip(
        before[1], after[1], strict=True
    ):
        assert (name, wants, grad) == (other, wanted, other_grad)
        assert torch.equal(values, now)


ENDINGS = ["well", "a class too high", RuntimeError, KeyboardInterrupt, SystemExit]
CONTEXTS = [nullcontext, torch.no_grad, torch.inference_mode]
LAYERS = {small_vgg: "net.3", small_resnet: "net.last"}


@pytest.mark.parametrize(
    ("name", "build", "ending", "context"), pairwise(POST_HOC, [small_vgg, small_resnet], ENDINGS, CONTEXTS)
)
def test_a_model_is_given_back_as_it_was(name, build, ending, context):
    images, classes = batch(0)
    layered = "cam" in name or "excit" in name or name == "linear_approximation"
    options = QUICK.get(name, {}) | ({"layer": LAYERS[build]} if layered else {})
    expected = METHODS[name](Interrupting(build(0)), **options)(images, classes)
    failing = isinstance(ending, type)
    for at in range(3) if failing else [None]:
        model = Interrupting(mixed_up(build(0)), ending if failing else None, at)
        before, given = state(model), images.clone()
        asked = classes + 4 if ending == "a class too high" else classes
        with context(), suppress(ShapeError, RuntimeError, KeyboardInterrupt, SystemExit):
            found = METHODS[name](model, **options)(images * 1, asked * 1)
            torch.testing.assert_close(found.clone(), expected)  # some methods ask less often, or once more
            assert ending == "well" or failing
        same(before, state(model))
        assert torch.equal(images, given)
        assert not images.requires_grad


def test_after_a_refusal():
    net, (images, classes) = mixed_up(small_vgg(0, activation=nn.Tanh)), batch(0)
    before = state(net)
    with pytest.raises(NotApplicableError):
        METHODS["excitation_backprop"](net)(images, classes)
    same(before, state(net))


def test_while_lent_the_model_is_quiet():
    net = mixed_up(small_vgg(0))
    with lent(net) as quiet:
        assert not any(module.training or getattr(module, "inplace", False) for module in quiet.modules())
        assert not any(tensor.requires_grad for tensor in quiet.parameters())
        quiet[0].register_full_backward_hook(lambda *_: None)
        quiet[1].register_forward_pre_hook(lambda *_: None)
    assert not net[0]._backward_hooks
    assert not net[1]._forward_pre_hooks
    assert net[0]._is_full_backward_hook is None
