"""Models to compare SITE with, and forms of its parts that only studies use; known by name once imported."""

from experiments.peers.b_cos import BCos
from experiments.peers.b_cos_network import BCosNetwork
from experiments.peers.configs import BCosConfig, PrototypePartsConfig
from experiments.peers.fused_generators import ConstantGenerator, MixedGenerator
from experiments.peers.generators import (
    DenseGenerator,
    ShuffleGenerator,
    TransposedGenerator,
    TrunkGenerator,
)
from experiments.peers.local import LocalCNN
from experiments.peers.prototype_parts import PrototypeParts
from experiments.peers.resnet18 import ResNet18
from torchsite.model import EXTRACTORS, GENERATORS, KINDS
from torchsite.model.config import CONFIGS

EXTRACTORS.update(resnet18=ResNet18, local=LocalCNN, b_cos=BCosNetwork)
GENERATORS.update(
    trunk=TrunkGenerator,
    shuffle=ShuffleGenerator,
    transposed=TransposedGenerator,
    dense=DenseGenerator,
    mixed=MixedGenerator,
    constant=ConstantGenerator,
)
CONFIGS.update(b_cos=BCosConfig, prototype_parts=PrototypePartsConfig)
KINDS.update(b_cos=BCos, prototype_parts=PrototypeParts)

__all__ = ["BCos", "BCosConfig", "PrototypeParts", "PrototypePartsConfig"]
