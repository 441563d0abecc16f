"""What comes in and what goes out, in words that the OpenAPI description shows.

Heatmaps travel as signed bytes, base64: value = limit · byte / 127, row by row. Pictures are PNG, base64.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

ClassChoice = int | str
Text = Annotated[str, Field(max_length=200)]


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


class Evidence(BaseModel):
    """A class and the heatmap whose sum is its logit."""

    index: int
    name: str
    logit: float
    gained: float = Field(description="The sum of the evidence for the class.")
    lost: float = Field(description="The sum of the evidence against it, not positive.")
    heatmap: MapOut


class Detail(BaseModel):
    """One class at work: features ⊙ prototype = contributions, summed over depth."""

    index: int
    name: str
    features: str = Field(description="What the model saw, PNG.")
    prototype: str = Field(description="What it looked for, PNG.")
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


class ModelOut(BaseModel):
    """A model that can be asked."""

    name: str
    kind: Literal["site", "black_box"]
    image_shape: list[int] = Field(description="Channels, height, width.")
    classes: list[str]
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
    """Alive, and with what."""

    status: Literal["ok"]
    version: str
    models: int
