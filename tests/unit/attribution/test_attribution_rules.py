"""Which operations the modified-backward methods know, and how they refuse the rest."""

import pytest
import torch
from attribution_networks import batch, small_vgg
from torch import nn
from torch.nn import functional as F

from torchsite.attribution import METHODS
from torchsite.errors import NotApplicableError

RECTIFIERS = {
    "relu": (F.relu, 1.0, 0.0),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), 1.0, 0.2),
    "elu": (F.elu, 1.0, 0.0),
    "celu": (F.celu, 1.0, 0.0),
    "selu": (F.selu, 1.0507009873554805, 0.0),
    "gelu": (F.gelu, 1.0, 0.0),
    "silu": (F.silu, 1.0, 0.0),
    "mish": (F.mish, 1.0, 0.0),
    "softplus": (F.softplus, 1.0, 0.0),
    "hardswish": (F.hardswish, 1.0, 0.0),
    "prelu": (lambda x: F.prelu(x, torch.tensor([0.3], dtype=x.dtype)), 1.0, 0.3),
    "clamp": (lambda x: x.clamp(min=0), 1.0, 0.0),
    "clamp_min": (lambda x: torch.clamp_min(x, 0), 1.0, 0.0),
    "threshold": (lambda x: F.threshold(x, 0, 0), 1.0, 0.0),
    "relu in place": (lambda x: F.relu(x * 1, inplace=True), 1.0, 0.0),
    "relu_": (lambda x: torch.relu_(x * 1), 1.0, 0.0),
    "leaky_relu, in place by position": (lambda x: F.leaky_relu(x * 1, 0.2, True), 1.0, 0.2),
}
CLIPPED = {
    "relu6": (F.relu6, 6.0),
    "nn.ReLU6": (nn.ReLU6(), 6.0),
    "clamp": (lambda x: x.clamp(0, 1.5), 1.5),
    "hardtanh": (lambda x: F.hardtanh(x, 0.0, 2.0), 2.0),
}


class Pointwise(nn.Module):
    """logits = Σ w_k ⊙ f(v ⊙ x): one rectifier between two known linear maps."""

    def __init__(self, f):
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.f = f
        self.v = torch.randn(1, 6, 6, generator=rng, dtype=torch.float64)
        self.w = torch.randn(3, 1, 6, 6, generator=rng, dtype=torch.float64)

    def forward(self, images):
        return (self.f(images * self.v)[:, None] * self.w).sum((2, 3, 4))

    def parts(self, images, classes):
        """Input of the rectifier, signal at its output."""
        return (images * self.v)[:, 0], self.w[classes, 0]


@pytest.fixture
def pictures():
    rng = torch.Generator().manual_seed(1)
    return 4 * torch.randn(3, 1, 6, 6, generator=rng, dtype=torch.float64), torch.tensor([0, 1, 2])


@pytest.mark.parametrize("name", RECTIFIERS)
def test_rules_at_every_rectifier(name, pictures):
    f, above, below = RECTIFIERS[name]
    model, (images, classes) = Pointwise(f), pictures
    x, p = model.parts(images, classes)
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x).sum(), x)
    guided = (slope.clamp(min=0) * p.clamp(min=0) * model.v[0]).abs()
    torch.testing.assert_close(METHODS["guided_backprop"](model)(images, classes), guided)
    homogeneous = above * p.clamp(min=0) + below * p.clamp(max=0)
    torch.testing.assert_close(METHODS["deconvnet"](model)(images, classes), (homogeneous * model.v[0]).abs())
    large = f(1e6 * p) / 1e6  # the homogeneous function is the rectifier seen from far away
    torch.testing.assert_close(homogeneous, large, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CLIPPED)
def test_rules_at_a_clipped_rectifier(name, pictures):
    f, upper = CLIPPED[name]
    model, (images, classes) = Pointwise(f), pictures
    x, p = model.parts(images, classes)
    expected = {
        "guided_backprop": p.clamp(min=0) * ((x > 0) & (x < upper)),
        "deconvnet": p.clamp(min=0) * (x < upper),
    }
    for method, signal in expected.items():
        torch.testing.assert_close(METHODS[method](model)(images, classes), (signal * model.v[0]).abs())


@pytest.mark.parametrize("method", ["guided_backprop", "deconvnet"])
@pytest.mark.parametrize(
    "f", [torch.tanh, torch.sigmoid, F.hardtanh, lambda x: x.clamp(-2, 2), lambda x: x * x, F.softsign]
)
def test_what_is_no_rectifier_keeps_its_gradient(method, f, pictures):
    model = Pointwise(f)
    torch.testing.assert_close(METHODS[method](model)(*pictures), METHODS["gradient"](model)(*pictures))


def test_an_in_place_rectifier_whose_result_is_dropped_still_acts(pictures):
    def dropped(x):
        x = x * 1
        F.relu_(x)
        return x

    images, classes = pictures
    for method in ("guided_backprop", "deconvnet", "gradient"):
        maps = [METHODS[method](Pointwise(f))(images, classes) for f in (dropped, F.relu)]
        torch.testing.assert_close(*maps)


def test_a_rectifier_used_twice_is_two_rectifiers():
    class Twice(nn.Module):
        def __init__(self, one, other):
            super().__init__()
            self.net = small_vgg(0)
            self.one, self.other = one, other

        def forward(self, images):
            features = self.other(self.net[2](self.one(self.net[0](images))))
            return self.net[4:](features)

    shared = nn.ReLU()
    images, classes = batch(0)
    for method in ("guided_backprop", "deconvnet"):
        maps = [
            METHODS[method](model)(images, classes)
            for model in (Twice(shared, shared), Twice(nn.ReLU(), nn.ReLU()))
        ]
        assert torch.equal(*maps)


class Secret(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, p):
        return p * (ctx.saved_tensors[0] > 0)


@pytest.mark.parametrize("method", ["guided_backprop", "deconvnet", "excitation_backprop"])
def test_a_rectifier_that_hides_is_refused(method):
    images, classes = batch(0)
    hidden = {
        "SecretBackward": lambda x: Secret.apply(x),
        "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    }
    for message, f in hidden.items():
        net = small_vgg(0, activation=lambda f=f: Hidden(f))
        options = {"layer": "2"} if method == "excitation_backprop" else {}
        with pytest.raises(NotApplicableError, match=message):
            METHODS[method](net, **options)(images, classes)


class Hidden(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["guided_backprop", "deconvnet", "excitation_backprop"])
def test_a_scripted_part_is_refused(method):
    net, (images, classes) = small_vgg(0), batch(0)
    net[7] = torch.jit.trace(net[7], torch.rand(2, 6, dtype=torch.float64))
    with pytest.raises(NotApplicableError, match="'7'"):
        METHODS[method](net)(images, classes)


@pytest.mark.parametrize(
    ("activation", "name"),
    [(nn.Tanh, "Tanh"), (nn.GELU, "GELU"), (nn.LeakyReLU, "LeakyReLU"), (nn.SiLU, "SiLU")],
)
def test_excitation_backprop_refuses_negative_activations_by_name(activation, name):
    net, (images, classes) = small_vgg(0, activation=activation), batch(0)
    with pytest.raises(NotApplicableError, match=r"'\d' \((Linear|Conv2d)\).*non-negative"):
        METHODS["excitation_backprop"](net, layer="0")(images, classes)


class Head(nn.Module):
    """A positive feature map, then some operation on the way to the logits."""

    def __init__(self, operation, n_outputs=4):
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.conv = nn.Conv2d(2, 4, 3, padding=1).double()
        self.relu = nn.ReLU()
        self.operation = operation
        with torch.no_grad():
            for tensor in self.conv.parameters():
                tensor.copy_(torch.rand(tensor.shape, generator=rng))

    def forward(self, images):
        return self.operation(self.relu(self.conv(images)))


CONSERVING = {
    "mean": lambda x: x.mean((2, 3)),
    "sum": lambda x: x.sum((2, 3)),
    "average pool": lambda x: F.avg_pool2d(x, 8).flatten(1),
    "adaptive average pool": lambda x: F.adaptive_avg_pool2d(x, 1)[:, :, 0, 0],
    "max pool": lambda x: F.max_pool2d(x, 8).squeeze(-1).squeeze(-1),
    "maximum": lambda x: x.amax((2, 3)),
    "upsampled": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear").mean((2, 3)),
    "nearest": lambda x: F.interpolate(x, scale_factor=3, mode="nearest").mean((2, 3)),
    "pixel shuffle": lambda x: F.pixel_shuffle(x, 2).flatten(1).unflatten(1, (4, -1)).sum(2),
    "scaled and shifted": lambda x: ((x - 0.01) / 2 * 3 + 1).mean((2, 3)),
    "concatenated": lambda x: torch.cat([x, x], 2).mean((2, 3)),
    "stacked and permuted": lambda x: torch.stack([x, x]).permute(1, 2, 0, 3, 4).sum((2, 3, 4)),
    "padded": lambda x: F.pad(x, (1, 2, 3, 4)).mean((2, 3)),
    "skip sum": lambda x: (x + x * 0.5).mean((2, 3)),
    "in-place sum": lambda x: (x * 1).add_(x).mean((2, 3)),
    "gated": lambda x: (x * torch.sigmoid(x)).mean((2, 3)),
    "squeezed and excited": lambda x: (x * torch.sigmoid(x.mean((2, 3), keepdim=True))).mean((2, 3)),
    "squared": lambda x: (x * x).mean((2, 3)),
    "three factors": lambda x: torch.einsum("nchw,nchw,nchw->nc", x, x, x),
    "matmul": lambda x: x.flatten(2) @ torch.ones(64, 1, dtype=x.dtype),
    "einsum with weights": lambda x: torch.einsum("nchw,hw->nc", x, torch.ones(8, 8, dtype=x.dtype)),
    "transposed convolution": lambda x: F.conv_transpose2d(
        x, torch.ones(4, 4, 2, 2, dtype=x.dtype), stride=2
    ).mean((2, 3)),
    "grouped convolution": lambda x: F.conv2d(x, torch.ones(4, 1, 3, 3, dtype=x.dtype), groups=4).mean(
        (2, 3)
    ),
    "batch norm": lambda x: F.batch_norm(x, torch.zeros(4).to(x), torch.ones(4).to(x)).mean((2, 3)),
    "dropout": lambda x: F.dropout(x, training=False).mean((2, 3)),
    "masked": lambda x: (x * (x > -1)).mean((2, 3)),
    "assigned": lambda x: assigned(x).mean((2, 3)),
}


def assigned(x):
    out = torch.zeros_like(x)
    out[:, :, :4] = x[:, :, 4:]
    out[:, :, 4:] = x[:, :, :4]
    return out


@pytest.mark.parametrize("name", CONSERVING)
def test_excitation_backprop_conserves_probability_through(name):
    images, classes = batch(0)
    operation = CONSERVING[name]
    model = Head(lambda x: operation(x).reshape(len(x), -1))
    maps = METHODS["excitation_backprop"](model, layer="relu")(images, classes)
    torch.testing.assert_close(maps.sum((1, 2)), torch.ones(3, dtype=torch.float64))
    assert maps.min() >= 0


REFUSED = {
    "difference": (lambda x: (x - 0.5 * x).mean((2, 3)), "difference"),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic").mean((2, 3)), "bicubic"),
    "negated": (lambda x: (-x).mean((2, 3)), "neg"),
    "negative factor": (lambda x: (x * -2 + 99).mean((2, 3)), "factor of -2"),
    "negative product": (lambda x: (torch.tanh(x - 9) * x).mean((2, 3)), "non-negative"),
    "softmax": (lambda x: x.mean((2, 3)).softmax(1), "softmax"),
    "reciprocal": (lambda x: (1 / x).mean((2, 3)), "reciprocal|div|rdiv"),
    "power": (lambda x: (x**2).mean((2, 3)), "pow"),
    "exponential": (lambda x: x.exp().mean((2, 3)), "exp"),
    "dynamic weights": (
        lambda x: F.linear(x.mean((2, 3)), x.mean((0, 2, 3))[None].expand(4, 4)),
        "weights that depend",
    ),
    "sum with alpha": (lambda x: torch.add(x, x, alpha=2).mean((2, 3)), "alpha"),
    "division by a negative": (lambda x: (x / -2.0 + 99).mean((2, 3)), "positive constants"),
    "in-place exponential": (lambda x: (x * 1).exp_().mean((2, 3)), "exp_"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_excitation_backprop_refuses_by_name(name):
    operation, message = REFUSED[name]
    images, classes = batch(0)
    with pytest.raises(NotApplicableError, match=message) as refusal:
        METHODS["excitation_backprop"](Head(operation), layer="relu")(images, classes)
    assert "Head" in str(refusal.value)


def test_what_happens_before_the_explained_layer_does_not_matter():
    """A normalised, negative picture through tanh and exp: no probability goes there."""
    images, classes = batch(0)
    model = Head(lambda x: x.mean((2, 3)))
    free = nn.Sequential(Hidden(lambda x: torch.tanh(x - 0.5).exp() - 1), model)
    maps = METHODS["excitation_backprop"](free, layer="1.relu")(images, classes)
    torch.testing.assert_close(maps.sum((1, 2)), torch.ones(3, dtype=torch.float64))
    with pytest.raises(NotApplicableError, match="conv"):
        METHODS["excitation_backprop"](free, layer="0")(images, classes)


def test_contrast_needs_a_weighted_layer_at_the_top():
    images, classes = batch(0)
    with pytest.raises(NotApplicableError, match="weights"):
        METHODS["contrastive_excitation_backprop"](Head(lambda x: (x * x).mean((2, 3))), layer="relu")(
            images, classes
        )


def test_what_by_passes_the_layer_is_not_counted():
    """Two branches of equal weight: the explained one gets half."""

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Identity(), nn.Identity()

        def forward(self, images):
            return (self.left(images) + self.right(images)).mean((2, 3))

    images, classes = batch(0, n_classes=2)
    maps = METHODS["excitation_backprop"](Branches(), layer="left")(images, classes)
    torch.testing.assert_close(maps.sum((1, 2)), torch.full((3,), 0.5, dtype=torch.float64))
