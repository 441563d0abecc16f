"""Nothing seen, nothing said: a picture without content gives no evidence.

    L_silence = mean_i Σ_u |e_i(u; x₀)|,    x₀: one colour, in a random pose

e is relative to all classes. x₀ has the mean colour of a picture of the batch; its corners are filled as
those of all posed pictures, so that the frame speaks for no class either.
"""

from dataclasses import dataclass

from torchsite.errors import ConfigError
from torchsite.objective.batch import Draws, Share
from torchsite.objective.term import Found, Memory, Step, Term
from torchsite.objective.views import View
from torchsite.shapes import Images, Masks
from torchsite.transforms import Transform
from torchsite.transforms.fill import OwnMean


@dataclass(frozen=True)
class BlankView(View):
    """Each picture's mean colour, posed."""

    def show(
        self,
        images: Images,
        pose: Transform,
        visible: Masks | None,
        draws: Draws,
        share: Share,
        larger: Images | None = None,
    ) -> Images:
        """The colour where the picture would be, the filling around it; nothing that stands around it."""
        del larger
        return super().show(OwnMean().background(images), pose, visible, draws, share)


@dataclass(frozen=True, kw_only=True)
class NothingSeen(Term, name="nothing_seen"):
    """Evidence on pictures without content is what this term takes away; `portion` of them are shown so."""

    portion: float = 0.125

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.portion <= 1:
            raise ConfigError(f"nothing_seen.portion: expected a share in (0, 1], got {self.portion}")

    def views(self) -> tuple[View, ...]:
        """The blank one, in poses of its own."""
        return (BlankView("blank", "blank pose", judged=False, portion=self.portion),)

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The size of the evidence."""
        del memory
        evidence = step.view("blank").evidence("relative")
        return Found(evidence.abs().sum((-2, -1)).mean())
