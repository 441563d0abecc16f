"""Every attribution method against Captum, or a plain loop, doing the same picture by picture.

A small ResNet on 32×32 pictures, in a batch of 32, trained for some seconds to tell four stripe patterns that
stand anywhere in noise. Ours explains the batch; the reference goes through a few of the same pictures one at
a time, as TorchRay and most scripts do. Short rounds alternate and the best of each counts, as in `timeit`:
other work on the machine can only slow a round down.

RISE and extremal perturbation stand in the table twice: doing the same work, and reaching the same quality.
- RISE: ours with 256 balanced masks against 1152 independent ones. The quality is the root mean
  square distance to a map of very many masks, over four pictures and three seeds.
- Extremal perturbation: ours with its 200 steps against the paper's schedule, 800 steps with a penalty from
  300 growing by 1.0035 a step. The quality is the logit of the picture with all but the best tenth blurred.
Both qualities are printed. Where the `torchray` package imports, its own RISE and extremal perturbation are
measured too.

    python benchmarks/attribution.py [--batch 32] [--rounds 3] [--threads N] [--clock cpu] [--only rise …]
                                     [--out results/attribution_speed.json]

With one thread, `--clock cpu` counts the seconds that the processor worked, on a machine that has other work.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import captum.attr as captum
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F

from torchsite.attribution import METHODS
from torchsite.attribution.extremal_perturbation import MaxConvolution, blurred, perturbed
from torchsite.attribution.rise import cropped, independent_coins
from torchsite.randomness import Rng, make_rng
from torchsite.results import Result

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
N_MASKS, N_BALANCED = 1152, 256
N_STEPS, PAPER_STEPS = 200, 800
OUR_SCHEDULE, PAPER_SCHEDULE = (1.0, 1000.0), (300.0, 300.0 * 1.0035**PAPER_STEPS)
SAME_QUALITY = ("rise, same quality", "extremal_perturbation, same quality", "rise, torchray")
TARGETS = dict.fromkeys((*SAME_QUALITY, "extremal_perturbation, torchray"), 5.0)


class Block(nn.Module):
    """Two convolutions and a skip connection."""

    def __init__(self, depth_in: int, depth: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(depth_in, depth, 3, stride, 1, bias=False), nn.BatchNorm2d(depth), nn.ReLU()
        )
        self.second = nn.Sequential(nn.Conv2d(depth, depth, 3, 1, 1, bias=False), nn.BatchNorm2d(depth))
        self.skip = nn.Conv2d(depth_in, depth, 1, stride) if stride > 1 else nn.Identity()
        self.relu = nn.ReLU()

    def forward(self, features: Tensor) -> Tensor:
        """Features of the block."""
        return self.relu(self.second(self.first(features)) + self.skip(features))


def resnet(n_classes: int = 4) -> nn.Sequential:
    """A small ResNet for 32×32 pictures."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        Block(16, 16, 1),
        Block(16, 32, 2),
        Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, n_classes),
    )


def pictures(n: int, rng: Rng) -> tuple[Tensor, Tensor]:
    """Noise with an 8×8 patch of stripes anywhere; the class is the direction of the stripes."""
    line = torch.arange(8)
    rows, cols = torch.meshgrid(line, line, indexing="ij")
    patterns = torch.stack([(k % 4 < 2).float() for k in (rows, cols, rows + cols, rows - cols)])
    classes = torch.randint(4, (n,), generator=rng)
    images = 0.5 * torch.rand(n, 3, 32, 32, generator=rng)
    corners = torch.randint(25, (n, 2), generator=rng)
    for image, label, (top, left) in zip(images, classes, corners.tolist(), strict=True):
        image[:, top : top + 8, left : left + 8] = patterns[label]
    return images, classes


def trained(rng: Rng, n_steps: int = 80) -> nn.Sequential:
    """The network, after some seconds of training."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = resnet()
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(n_steps):
        images, classes = pictures(64, rng)
        optimiser.zero_grad()
        F.cross_entropy(net(images), classes).backward()
        optimiser.step()
    return net.eval().requires_grad_(False)


@dataclass(frozen=True)
class Contest:
    """Our method on a batch against a reference on one picture."""

    name: str
    ours: Callable[[Tensor, Tensor], Tensor]
    reference: Callable[[Tensor, Tensor], Tensor]
    versus: str
    n_reference: int = 4


def contests(net: nn.Sequential) -> Sequence[Contest]:
    """One entry per method."""
    layer = net[3]
    to_size = {"size": (32, 32), "mode": "bilinear", "align_corners": False}

    def at_layer(method: type, **options: bool) -> Callable[[Tensor, Tensor], Tensor]:
        explain = method(net, layer)
        return lambda x, y: F.interpolate(explain.attribute(x, target=y, **options), **to_size)

    def at_input(method: object, **options: object) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda x, y: method.attribute(x.requires_grad_(), target=y, **options)  # type: ignore[attr-defined]

    def one_by_one(name: str, **options: object) -> Callable[[Tensor, Tensor], Tensor]:
        return METHODS[name](net, **options)

    window = {"sliding_window_shapes": (3, 8, 8), "strides": (3, 4, 4)}
    tunnel = {"nt_samples": 50, "stdevs": 0.15}
    few = lambda x, y: extremal_perturbation(net, x, y, 20, OUR_SCHEDULE, 0.1)  # noqa: E731
    many = lambda x, y: extremal_perturbation(net, x, y, PAPER_STEPS, PAPER_SCHEDULE, 0.01)  # noqa: E731
    return [
        Contest("gradient", one_by_one("gradient"), at_input(captum.Saliency(net)), "Captum", 16),
        Contest(
            "guided_backprop",
            one_by_one("guided_backprop"),
            at_input(captum.GuidedBackprop(net)),
            "Captum",
            16,
        ),
        Contest("deconvnet", one_by_one("deconvnet"), at_input(captum.Deconvolution(net)), "Captum", 16),
        Contest(
            "linear_approximation",
            one_by_one("linear_approximation", layer="3"),
            at_layer(captum.LayerGradientXActivation),
            "Captum",
            16,
        ),
        Contest(
            "grad_cam",
            one_by_one("grad_cam", layer="3"),
            at_layer(captum.LayerGradCam, relu_attributions=True),
            "Captum",
            16,
        ),
        Contest(
            "excitation_backprop",
            one_by_one("excitation_backprop", layer="1"),
            one_by_one("excitation_backprop", layer="1"),
            "ours, one by one",
            16,
        ),
        Contest(
            "contrastive_excitation_backprop",
            one_by_one("contrastive_excitation_backprop", layer="1"),
            one_by_one("contrastive_excitation_backprop", layer="1"),
            "ours, one by one",
            16,
        ),
        Contest(
            "integrated_gradients",
            one_by_one("integrated_gradients"),
            at_input(captum.IntegratedGradients(net)),
            "Captum",
        ),
        Contest(
            "smooth_grad",
            one_by_one("smooth_grad"),
            at_input(captum.NoiseTunnel(captum.Saliency(net)), **tunnel),
            "Captum",
        ),
        Contest("occlusion", one_by_one("occlusion"), at_input(captum.Occlusion(net), **window), "Captum"),
        Contest(
            "score_cam", one_by_one("score_cam", layer="3"), lambda x, y: score_cam(net, x, y), "plain loop"
        ),
        Contest(
            "rise",
            one_by_one("rise", n_masks=N_BALANCED),
            lambda x, y: rise(net, x, y, N_BALANCED),
            f"plain loop, {N_BALANCED} masks each",
            2,
        ),
        Contest(
            "rise, same quality",
            one_by_one("rise", n_masks=N_BALANCED),
            lambda x, y: rise(net, x, y, N_MASKS),
            f"plain loop, {N_MASKS} masks against {N_BALANCED}",
            1,
        ),
        Contest(
            "extremal_perturbation",
            one_by_one("extremal_perturbation", n_steps=20),
            few,
            "plain loop, 20 steps each",
            2,
        ),
        Contest(
            "extremal_perturbation, same quality",
            one_by_one("extremal_perturbation", n_steps=N_STEPS),
            many,
            f"plain loop, {PAPER_STEPS} steps against {N_STEPS}",
            1,
        ),
        *torchray_contests(net),
    ]


def torchray_contests(net: nn.Sequential) -> Sequence[Contest]:
    """The package itself, where it imports."""
    try:
        from torchray.attribution import extremal_perturbation as perturbation
        from torchray.attribution import rise as randomised
    except ImportError:
        return []

    def extremal(image: Tensor, label: Tensor) -> Tensor:
        masks: Tensor = perturbation.extremal_perturbation(net, image, int(label), areas=[0.1])[0]
        return masks.detach()

    return [
        Contest(
            "rise, torchray",
            METHODS["rise"](net, n_masks=N_BALANCED),  # type: ignore[call-arg]
            lambda x, y: randomised.rise(net, x, num_masks=N_MASKS),
            f"torchray, {N_MASKS} masks against {N_BALANCED}",
            1,
        ),
        Contest(
            "extremal_perturbation, torchray",
            METHODS["extremal_perturbation"](net),
            extremal,
            f"torchray, 800 steps against {N_STEPS}",
            1,
        ),
    ]


@torch.no_grad()
def score_cam(net: nn.Sequential, image: Tensor, label: Tensor) -> Tensor:
    """Score-CAM of one picture, its channels in one batch."""
    features = net[:4](image)
    masks = F.interpolate(features[0][:, None], size=(32, 32), mode="bilinear", align_corners=False)
    low, high = masks.amin((2, 3), keepdim=True), masks.amax((2, 3), keepdim=True)
    scores = net(image * (masks - low) / (high - low).clamp(min=1e-12))[:, int(label)]
    return F.interpolate(
        (scores.softmax(0)[:, None, None] * features[0]).sum(0).relu()[None, None], size=(32, 32)
    )


@torch.no_grad()
def rise(net: nn.Module, image: Tensor, label: Tensor, n_masks: int, seed: int = 0) -> Tensor:
    """RISE of one picture with independent masks, 32 in a pass, as TorchRay does it."""
    total = torch.zeros(32, 32)
    rng = make_rng(seed, "benchmark")
    for start in range(0, n_masks, 32):
        coins, offsets = independent_coins(min(32, n_masks - start), 8, 0.5, rng)
        masks = cropped(coins.float(), offsets, (32, 32))
        scores = net(image * masks[:, None]).softmax(1)[:, int(label)]
        total += (scores[:, None, None] * masks).sum(0)
    return total / (n_masks * 0.5)


def extremal_perturbation(
    net: nn.Module, image: Tensor, label: Tensor, n_steps: int, schedule: tuple[float, float], rate: float
) -> Tensor:
    """The mask of one picture by its objective as it is written: sort, pyramid, SGD."""
    pyramid = blurred(image, 0.09 * 32, 8)[:, 0]
    template = torch.zeros(1024)
    template[-102:] = 1
    smooth = MaxConvolution(16, (32, 32), 0.09, image)
    grid = torch.full((1, 16, 16), 0.5, requires_grad=True)
    optimiser = torch.optim.SGD([grid], lr=rate, momentum=0.9)
    for weight in torch.logspace(*map(math.log10, schedule), n_steps).tolist():
        mask = smooth(grid)
        level = (1 - mask) * 7
        hats = [(1 - (level - k).abs()).clamp(min=0) for k in range(8)]
        shown = sum(hat * blur for hat, blur in zip(hats, pyramid, strict=True))
        penalty = ((mask.flatten().sort().values - template) ** 2).mean()
        loss = weight * penalty - net(shown[None])[0, int(label)]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        grid.data.clamp_(0, 1)
    return smooth(grid).detach()


def seconds_of(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """How long it takes, once."""
    start = clock()
    work()
    return clock() - start


def measured(
    contest: Contest, images: Tensor, classes: Tensor, rounds: int, clock: Callable[[], float]
) -> tuple[float, float]:
    """Pictures per second, ours and the reference's, best of alternating rounds."""
    few = [(images[i : i + 1].clone(), classes[i : i + 1]) for i in range(contest.n_reference)]
    contest.ours(images[:2], classes[:2])
    contest.reference(*few[0])
    ours, reference = [], []
    for _ in range(rounds):
        ours.append(seconds_of(lambda: contest.ours(images, classes), clock) / len(images))
        reference.append(seconds_of(lambda: [contest.reference(*one) for one in few], clock) / len(few))
    return 1 / min(ours), 1 / min(reference)


def rise_errors(net: nn.Module, images: Tensor, classes: Tensor, n: int = 4) -> tuple[float, float]:
    """Distance to a map of very many masks: balanced and independent masks, in the numbers of the table."""
    images, classes = images[:n], classes[:n]
    truth = METHODS["rise"](net, n_masks=16384, seed=99)(images, classes)  # type: ignore[call-arg]
    squares = torch.zeros(2)
    for seed in range(3):
        ours = METHODS["rise"](net, n_masks=N_BALANCED, seed=seed)(images, classes)  # type: ignore[call-arg]
        pairs = zip(images.split(1), classes.split(1), strict=True)
        theirs = torch.stack([rise(net, *pair, N_MASKS, seed) for pair in pairs])
        squares += torch.stack([(maps - truth).square().mean() for maps in (ours, theirs)])
    error, other = (squares / 3).sqrt().tolist()
    return error, other


def kept_logits(net: nn.Module, images: Tensor, classes: Tensor, n: int = 4) -> tuple[float, float]:
    """The mean logit with all but the best tenth of each picture blurred: our schedule and the paper's."""
    images, classes = images[:n], classes[:n]
    ours = METHODS["extremal_perturbation"](net)(images, classes)
    pairs = zip(images.split(1), classes.split(1), strict=True)
    theirs = [extremal_perturbation(net, *pair, PAPER_STEPS, PAPER_SCHEDULE, 0.01) for pair in pairs]

    def kept(masks: Tensor) -> float:
        threshold = masks.flatten(1).topk(102).values[:, -1]
        best = (masks >= threshold[:, None, None]).float()
        logits = net(perturbed(blurred(images, 0.09 * 32, 8), best))
        return float(logits.gather(1, classes[:, None]).mean())

    return kept(ours), kept(torch.cat(theirs))


def main() -> None:
    """Measure, print, and say which targets are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of torch")
    parser.add_argument("--only", nargs="*", default=[], help="methods whose names begin so")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--out", type=Path, help="keep the ratios as a result file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", module="captum")
    rng = make_rng(0, "benchmark", "pictures")
    net = trained(rng)
    images, classes = pictures(options.batch, rng)
    wanted, rows = tuple(options.only) or ("",), []
    table = Table(title=f"pictures per second, batch {options.batch}, {options.threads} threads")
    for heading in ("method", "ours", "one by one", "ratio", "target", "against"):
        table.add_column(heading, justify="left" if heading in ("method", "against") else "right")
    for contest in contests(net):
        if contest.name.startswith(wanted):
            ours, reference = measured(contest, images, classes, options.rounds, CLOCKS[options.clock])
            ratio, target = ours / reference, TARGETS.get(contest.name, 1.0)
            shown = f"[{'green' if ratio >= target else 'red'}]{ratio:.1f}×[/]"
            row = (f"{ours:.1f}", f"{reference:.1f}", shown, f"{target:.0f}×", contest.versus)
            table.add_row(contest.name, *row)
            rows.append({"method": contest.name, "ratio": ratio, "target": target, "against": contest.versus})
    console = Console()
    console.print(table)
    if options.out:
        config = {key: value for key, value in vars(options).items() if key != "out"}
        Result("attribution_speed", {"rows": rows}, config, 0, 0.0).save(options.out)
    if "rise".startswith(wanted):
        errors = rise_errors(net, images, classes)
        console.print(
            f"RISE, root mean square error: {errors[0]:.2e} with {N_BALANCED} balanced masks, "
            f"{errors[1]:.2e} with {N_MASKS} independent ones"
        )
    if "extremal_perturbation".startswith(wanted):
        kept = kept_logits(net, images, classes)
        console.print(
            f"Extremal perturbation, logit kept by the best tenth: {kept[0]:.2f} after our {N_STEPS} steps, "
            f"{kept[1]:.2f} after the {PAPER_STEPS} of the paper's schedule"
        )


if __name__ == "__main__":
    main()
