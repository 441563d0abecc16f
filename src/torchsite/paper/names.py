"""How methods and models are called in the paper's tables and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

# Whose pictures the documentation may show.
PUBLIC = ("mnist_", "targets", "generators", "cifar10_photographs", "bam_photograph")

NAMES: Mapping[str, str] = {
    "self_explanation": "SITE itself",
    "relative_explanation": "SITE, relative maps",
    "plain_explanation": "SITE, plain maps",
    "grad_cam": "Grad-CAM",
    "score_cam": "Score-CAM",
    "guided_backprop": "guided BP",
    "excitation_backprop": "excitation BP",
    "contrastive_excitation_backprop": "contrastive EBP",
    "deconvnet": "DeConvNet",
    "rise": "RISE",
    "linear_approximation": "linear approx.",
    "extremal_perturbation": "extremal pert.",
    "integrated_gradients": "integrated grad.",
    "smooth_grad": "SmoothGrad",
}


OWN = ("self_explanation", "relative_explanation", "plain_explanation")


def method_name(method: str) -> str:
    """A method's name as people write it."""
    return NAMES.get(method, method.replace("_", " "))


def on_model(kind: str) -> str:
    """Which of the two models was explained."""
    return "on SITE" if kind == "site" else "on the black box"


def row_name(line: Mapping[str, Any]) -> str:
    """What a line of a table is about: a method on a model."""
    return f"{method_name(line['method'])} {on_model(line['model'])}"


def spoken(who: str) -> str:
    """The same for results that name a line by "method on model"."""
    method, _, model = who.partition(" on ")
    return row_name({"method": method, "model": model})


def own_first(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The lines of a table in their order, the model's own explanations before all others."""
    return sorted(lines, key=lambda line: OWN.index(line["method"]) if line["method"] in OWN else len(OWN))
