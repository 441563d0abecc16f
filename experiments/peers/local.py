"""Features that see few pixels: evidence summed over them is a sum over patches."""

from torchsite.model.efficientnet import imagenet_weights
from torchsite.model.extractor import ParameterGroup
from torchsite.model.folded_lite import FINE, folded
from torchsite.model.two_scales import N_PARTS, TwoScales, atanh, wide
from torchsite.shapes import Features, Images, Size


class TwoScalesParts(TwoScales):
    """The features of small parts of `two_scales` alone (BagNet: Brendel & Bethge 2019).

    Each feature sees 19 pixels of the first, pretrained blocks, so evidence is a sum over patches.
    """

    def __init__(
        self, channels: int, size: Size, parts: int = N_PARTS, hidden: int = 192, variant: str = "lite0"
    ) -> None:
        super().__init__(channels, size, parts=parts, hidden=hidden, variant=variant)
        del self.whole
        self.stages.blocks = self.stages.blocks[: self.stages.answers[FINE] + 1]

    def forward(self, images: Images) -> Features:
        """Raw features at a quarter of the resolution."""
        this, that = wide(self.parts(self.stages(images)[FINE])).chunk(2, 1)
        return atanh(this.tanh() * that.tanh())

    def load_pretrained(self) -> None:
        """The first blocks as published, folded."""
        weights, own = folded(imagenet_weights(self.stages.variant)), self.stages.state_dict()
        self.stages.load_state_dict({name: weight for name, weight in weights.items() if name in own})

    def parameter_groups(self) -> list[ParameterGroup]:
        """What learns: the head, since the first blocks are frozen."""
        return [ParameterGroup(tuple(self.parts.parameters()))]
