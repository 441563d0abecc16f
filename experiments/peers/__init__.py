"""Models that SITE is compared with; known by name once imported."""

from experiments.peers.b_cos import BCos, BCosConfig
from experiments.peers.constant import ConstantGenerator
from experiments.peers.local import TwoScalesParts
from experiments.peers.prototype_parts import PrototypeParts, PrototypePartsConfig
from torchsite.model import EXTRACTORS, GENERATORS, KINDS
from torchsite.model.config import CONFIGS

EXTRACTORS.update(two_scales_parts=TwoScalesParts)
GENERATORS.update(constant=ConstantGenerator)
CONFIGS.update(b_cos=BCosConfig, prototype_parts=PrototypePartsConfig)
KINDS.update(b_cos=BCos, prototype_parts=PrototypeParts)

__all__ = ["BCos", "PrototypeParts"]
