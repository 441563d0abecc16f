"""Requests and responses, as the OpenAPI description shows them.

Heatmaps travel as signed bytes, base64: value = limit · byte / 127, row by row. Pictures are PNG, base64.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_TEXT = 300  # a name of a folder, which may be a class, has at most 255
Text = Annotated[str, Field(max_length=MAX_TEXT)]
ClassChoice = int | Text


class Pose(BaseModel):
    """A transform T: scale, then turn counter-clockwise about the centre, then shift."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    angle: float = Field(0.0, ge=-360, le=360, description="Degrees, counter-clockwise.")
    right: float = Field(0.0, ge=-1, le=1, description="Shift, as a fraction of the shorter side.")
    down: float = Field(0.0, ge=-1, le=1, description="Shift, as a fraction of the shorter side.")
    scale: float = Field(1.0, ge=0.25, le=4, description="Magnification about the centre.")


class Question(Pose):
    """A picture, and what to ask of it. One of `image` and `sample` must be given."""

    image: str | None = Field(None, description="A picture file (PNG, JPEG, WebP, GIF, BMP) in base64.")
    sample: int | None = Field(None, ge=0, le=10_000, description="The number of one of the model's samples.")
    invert: bool = Field(False, description="Exchange light and dark: for dark ink on white paper.")
    of: ClassChoice | None = Field(
        None, alias="class", description="The class to explain, by name or number: else the predicted one."
    )
    against: ClassChoice | None = Field(None, description="Why `class` rather than this one?")
    methods: list[Text] = Field(
        default=[],
        max_length=4,
        description="METHOD, or METHOD@MODEL for another model of the same pictures and classes.",
    )
    corners: Literal["black", "mean"] = Field(
        "black", description="What stands around the moved picture: mean hides the frame in its mean colour."
    )
    hidden: str | None = Field(
        None, description="Pixels of x to hide, in its mean colour: one bit each, row by row, base64."
    )
    hiding: bool = Field(False, description="Hide patches too, for `hiding` of each row: 33 passes more.")
    top: int = Field(10, ge=1, le=32, description="How many classes come with their heatmaps.")

    @model_validator(mode="after")
    def _one_picture(self) -> "Question":
        if (self.image is None) == (self.sample is None):
            raise ValueError("expected either image or sample, a picture in base64 or a sample's number")
        return self


class SweepQuestion(Question):
    """A question asked over a full turn."""

    frames: int = Field(36, ge=2, le=72, description="How many angles.")


class MapOut(BaseModel):
    """A signed map in bytes."""

    rows: int
    cols: int
    limit: float = Field(description="What a byte of 127 stands for.")
    data: str = Field(description="Signed bytes, row by row, base64.")


class Answer(BaseModel):
    """What the model answers for one picture."""

    predicted: int
    logits: list[float]
    probabilities: list[float]


class Brushed(BaseModel):
    """A hidden part: its attribution, and the logit of the class before and after hiding it."""

    covered: float = Field(description="The sum of I(T x) over what is hidden.")
    gained: float = Field(description="The sum of all that I(T x) says for the class.")
    total: float = Field(description="The sum of I(T x); for a model's own explanation, the logit.")
    before: float = Field(description="The logit of the explained class, of the explainer's model, on T x.")
    after: float = Field(description="The same with the part hidden.")


class Row(BaseModel):
    """One explainer: I(T x) beside T(I x), and how alike they are. Figures are null if nothing is seen."""

    method: str
    model: str
    renewed: MapOut = Field(description="I(T x): the explanation of the moved picture.")
    carried: MapOut = Field(description="T(I x): the explanation, moved.")
    raw: float | None = Field(description="Self-consistency: the cosine of the two within the frame.")
    floor: float | None = Field(description="The same between I(T x) and explanations of other pictures.")
    calibrated: float | None = Field(description="(raw - floor) / (1 - floor).")
    centred: float | None = Field(description="Pearson's correlation of the two within the frame.")
    hiding: float | None = Field(
        None,
        description="Patch deletion: the rank correlation of I(T x) with what hiding each of 4 × 4 patches "
        "does to the logit; null unless asked for.",
    )
    brushed: Brushed | None = Field(description="If a part is hidden: whether the explainer said so.")


class Evidence(BaseModel):
    """A class and the heatmap whose sum is its logit."""

    index: int
    name: str
    logit: float
    gained: float = Field(description="The sum of the evidence for the class.")
    lost: float = Field(description="The sum of the evidence against it, not positive.")
    heatmap: MapOut


class Detail(BaseModel):
    """One class at work: features ⊙ prototype = contributions, summed over depth.

    Learned features have no colours: they are null unless they are pixels, and the prototype is then shown by
    the training picture that it fits best, if the model has a gallery.
    """

    index: int
    name: str
    features: str | None = Field(description="What the model saw, PNG.")
    prototype: str | None = Field(
        description="What it looked for, PNG: the prototype, or the training picture that it fits best."
    )
    contributions: MapOut
    logit: float


class Why(BaseModel):
    """Evidence for one class rather than another; it sums to the difference of their logits."""

    index: int
    against: int
    heatmap: MapOut
    gained: float
    lost: float
    difference: float


class Explained(BaseModel):
    """The whole answer to a question."""

    model: str
    kind: Literal["site", "black_box"]
    image: str = Field(description="x as the model takes it, PNG: send it again with the next pose.")
    moved: str = Field(description="T x as the model sees it, PNG.")
    still: Answer = Field(description="For x.")
    turned: Answer = Field(description="For T x.")
    hidden: float = Field(description="The share of the visible picture that is hidden.")
    explained: int = Field(description="The class of all maps: as asked, or the one predicted on x.")
    rows: list[Row]
    evidence: list[Evidence] = Field(description="For T x, largest logit first; empty for a black box.")
    detail: list[Detail] = Field(description="For T x: the explained class, and the one it is held against.")
    why: Why | None
    skipped: dict[str, str] = Field(description="Methods that have no meaning here, and the reason.")


class MethodOut(BaseModel):
    """An explainer that can be asked for."""

    name: str
    live: bool = Field(description="Fast enough to follow a drag.")
    options: dict[str, int] = Field(description="Where they differ from the library's defaults.")


class GalleryOut(BaseModel):
    """The exemplars that show prototypes of learned features."""

    source: str = Field(description="The pictures that the exemplars are from.")
    drawn: Literal["photographs", "reconstructions"]
    n_exemplars: int


class ModelOut(BaseModel):
    """A model that can be asked."""

    name: str
    kind: Literal["site", "black_box"]
    image_shape: list[int] = Field(description="Channels, height, width.")
    margin: float = Field(description="Files are decoded so many times larger, and the centre is seen.")
    classes: list[str]
    feature_shape: list[int] = Field(description="Depth, rows, columns of what it looks at.")
    pixels: bool = Field(description="Whether it looks at pixels: then prototypes are pictures.")
    gallery: GalleryOut | None = Field(
        description="Exemplars that prototypes of learned features are shown by."
    )
    max_rotation: float = Field(description="Degrees of turning that the model was trained for.")
    max_shift: float
    methods: list[MethodOut]
    companions: list[str] = Field(description="Other models of the same pictures and classes.")
    n_samples: int
    draw: bool = Field(description="Whether a drawing with a pen is a picture of its kind.")


class SampleOut(BaseModel):
    """A picture to begin with."""

    index: int
    name: str
    image: str = Field(description="PNG, base64.")


class Health(BaseModel):
    """The server is running."""

    status: Literal["ok"]
    version: str
    models: int
