"""A model is given back as it was lent, also after an exception, a wrong target, an interrupt."""

import pytest
import torch
from attribution_networks import batch, small_resnet, small_vgg
from torch import nn

from torchsite.attribution import METHODS, lent
from torchsite.errors import NotApplicableError, ShapeError

POST_HOC = sorted(METHODS.keys() - {"self_explanation"})
QUICK = {"rise": {"n_masks": 8}, "extremal_perturbation": {"n_steps": 2}, "smooth_grad": {"n_samples": 2}}


class Interrupting(nn.Module):
    """Raises in the nth pass of the model."""

    def __init__(self, net, error, at):
        super().__init__()
        self.net, self.error, self.left = net, error, at

    def forward(self, images):
        answers = self.net(images)
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


@pytest.mark.parametrize("build", [small_vgg, small_resnet])
@pytest.mark.parametrize("name", POST_HOC)
def test_after_an_explanation(name, build):
    net, (images, classes) = mixed_up(build(0)), batch(0)
    before, given = state(net), images.clone()
    METHODS[name](net, **QUICK.get(name, {}))(images, classes)
    same(before, state(net))
    assert torch.equal(images, given)
    assert not images.requires_grad


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("name", POST_HOC)
def test_after_an_error(name, error):
    for at in (0, 1, 2):
        net, (images, classes) = mixed_up(small_vgg(0)), batch(0)
        model = Interrupting(net, error, at)
        before = state(model)
        options = QUICK.get(name, {}) | ({"layer": "net.3"} if "cam" in name or "excit" in name else {})
        try:
            METHODS[name](model, **options)(images, classes)
        except BaseException as raised:
            assert isinstance(raised, error)  # noqa: PT017
        same(before, state(model))


@pytest.mark.parametrize("name", POST_HOC)
def test_after_a_wrong_target(name):
    net, (images, _) = mixed_up(small_vgg(0)), batch(0)
    before = state(net)
    with pytest.raises(ShapeError, match="below 4"):
        METHODS[name](net, **QUICK.get(name, {}))(images, torch.tensor([0, 4, 1]))
    same(before, state(net))


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


@pytest.mark.parametrize("name", POST_HOC)
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_inside_no_grad_and_inference_mode(name, context):
    net, (images, classes) = small_vgg(0), batch(0)
    options = QUICK.get(name, {})
    expected = METHODS[name](net, **options)(images, classes)
    with context():
        found = METHODS[name](net, **options)(images * 1, classes * 1)
    torch.testing.assert_close(found.clone(), expected)
