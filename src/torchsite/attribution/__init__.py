"""Post-hoc attribution: which pixels a prediction rests on, by every common method, behind one contract.

    heatmaps = METHODS["grad_cam"](model, layer="layer4")(images, classes)      (batch, rows, cols)

Theory, formula and citation of each method are in its module.
"""

from collections.abc import Mapping

from torchsite.attribution.contract import Attribution, LayerAttribution
from torchsite.attribution.excitation_backprop import ContrastiveExcitationBackprop, ExcitationBackprop
from torchsite.attribution.extremal_perturbation import ExtremalPerturbation
from torchsite.attribution.frozen import lent
from torchsite.attribution.grad_cam import GradCAM
from torchsite.attribution.gradient import Saliency
from torchsite.attribution.integrated_gradients import IntegratedGradients
from torchsite.attribution.linear_approximation import LayerGradientXActivation
from torchsite.attribution.occlusion import Occlusion
from torchsite.attribution.random_map import RandomMap
from torchsite.attribution.rectifiers import DeConvNet, GuidedBackprop
from torchsite.attribution.rise import RISE
from torchsite.attribution.score_cam import ScoreCAM
from torchsite.attribution.self_explanation import SelfExplanation
from torchsite.attribution.smooth_grad import SmoothGrad

METHODS: Mapping[str, type[Attribution]] = {
    "gradient": Saliency,
    "guided_backprop": GuidedBackprop,
    "deconvnet": DeConvNet,
    "linear_approximation": LayerGradientXActivation,
    "grad_cam": GradCAM,
    "excitation_backprop": ExcitationBackprop,
    "contrastive_excitation_backprop": ContrastiveExcitationBackprop,
    "rise": RISE,
    "extremal_perturbation": ExtremalPerturbation,
    "integrated_gradients": IntegratedGradients,
    "smooth_grad": SmoothGrad,
    "occlusion": Occlusion,
    "score_cam": ScoreCAM,
    "random": RandomMap,
    "self_explanation": SelfExplanation,
}

Gradient, LinearApproximation = Saliency, LayerGradientXActivation  # earlier names, for one release

__all__ = [
    "METHODS",
    "RISE",
    "Attribution",
    "ContrastiveExcitationBackprop",
    "DeConvNet",
    "ExcitationBackprop",
    "ExtremalPerturbation",
    "GradCAM",
    "GuidedBackprop",
    "IntegratedGradients",
    "LayerAttribution",
    "LayerGradientXActivation",
    "Occlusion",
    "RandomMap",
    "Saliency",
    "ScoreCAM",
    "SelfExplanation",
    "SmoothGrad",
    "lent",
]
