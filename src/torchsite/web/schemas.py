"""The responses of the server, as the OpenAPI description shows them.

Heatmaps travel as signed bytes, base64: value = limit · byte / 127, row by row. Pictures are PNG, base64.
"""

from typing import Literal

from pydantic import BaseModel, Field


class MapOut(BaseModel):
    """A signed map in bytes."""

    rows: int
    cols: int
    limit: float = Field(description="The value of a byte of 127.")
    data: str = Field(description="Signed bytes, row by row, base64.")


class Answer(BaseModel):
    """The prediction for one picture."""

    predicted: int
    logits: list[float]
    probabilities: list[float]


class Brushed(BaseModel):
    """A hidden part: its attribution, and the logit of the class before and after hiding it."""

    covered: float = Field(description="The sum of I(T x) over what is hidden.")
    gained: float = Field(description="The sum of the positive part of I(T x).")
    total: float = Field(description="The sum of I(T x); for a model's own explanation, the logit.")
    before: float = Field(description="The logit of the explained class, of the explainer's model, on T x.")
    after: float = Field(description="The same with the part hidden.")


class Scores(BaseModel):
    """How alike I(T x) and T(I x) are. All are null if T leaves nothing of the picture to see."""

    raw: float | None = Field(None, description="Self-consistency: the cosine of the two within the frame.")
    floor: float | None = Field(None, description="The same for I(T x) and the maps of other pictures.")
    calibrated: float | None = Field(None, description="(raw - floor) / (1 - floor).")
    centred: float | None = Field(None, description="Pearson's correlation of the two within the frame.")
    hiding: float | None = Field(
        None,
        description="Patch deletion: the rank correlation of I(T x) with what hiding each of 4 × 4 patches "
        "does to the logit; null unless asked for.",
    )
    brushed: Brushed | None = Field(
        None, description="The attribution of a part and the effect of hiding it."
    )


class Row(Scores):
    """One explainer: I(T x) beside T(I x), and how alike they are."""

    method: str
    model: str
    renewed: MapOut = Field(description="I(T x): the explanation of the moved picture.")
    carried: MapOut = Field(description="T(I x): the explanation, moved.")


class Signed(BaseModel):
    """A heatmap and the two parts of its sum."""

    index: int
    gained: float = Field(description="The sum of the evidence for the class.")
    lost: float = Field(description="The sum of the evidence against it, not positive.")
    heatmap: MapOut


class Evidence(Signed):
    """A class and the heatmap whose sum is its logit."""

    name: str
    logit: float


class Why(Signed):
    """Evidence for one class rather than another; it sums to the difference of their logits."""

    against: int
    difference: float


class Detail(BaseModel):
    """How one class is scored: features ⊙ prototype = contributions, summed over depth.

    Learned features have no colours: `features` is null unless they are pixels. The prototype is then shown
    by the training picture that it fits best, if the model has a gallery.
    """

    index: int
    name: str
    features: str | None = Field(description="The features, PNG, if they are pixels.")
    prototype: str | None = Field(
        description="The prototype, PNG: itself, or the training picture that it fits best."
    )
    contributions: MapOut
    logit: float


class Explained(BaseModel):
    """The whole answer to a question."""

    model: str
    kind: Literal["site", "black_box"]
    image: str | None = Field(description="x as the model takes it, PNG; null if `pictures` is false.")
    moved: str | None = Field(description="T x as the model sees it, PNG; null if `pictures` is false.")
    still: Answer = Field(description="For x.")
    turned: Answer = Field(description="For T x.")
    hidden: float = Field(description="The share of the visible picture that is hidden.")
    explained: int = Field(description="The class of all maps: as asked, or the one predicted on x.")
    rows: list[Row]
    evidence: list[Evidence] = Field(description="For T x, largest logit first; empty for a black box.")
    detail: list[Detail] = Field(description="For T x: the explained class and the one of `against`.")
    why: Why | None
    skipped: dict[str, str] = Field(description="Methods that do not apply to the model, and why.")


class MethodOut(BaseModel):
    """An explainer on offer."""

    name: str
    live: bool = Field(description="Fast enough to follow a drag.")
    options: dict[str, int] = Field(description="Where they differ from the library's defaults.")


class GalleryOut(BaseModel):
    """The exemplars that show prototypes of learned features."""

    source: str = Field(description="The data set of the exemplars.")
    drawn: Literal["photographs", "reconstructions"]
    n_exemplars: int


class GroupPicture(BaseModel):
    """A picture in which a group stands, and where: as `image` and `hidden` of a question."""

    image: str
    hidden: str


class GroupOut(BaseModel):
    """A group of the evidence for a class, as an audit has found it."""

    name: str
    of: str = Field(alias="class", serialization_alias="class", description="The class.")
    found: bool = Field(description="Whether it stands out.")
    said: str
    pictures: list[GroupPicture]


class ModelOut(BaseModel):
    """A model on offer."""

    name: str
    kind: Literal["site", "black_box"]
    image_shape: list[int] = Field(description="Channels, height, width.")
    margin: float = Field(description="Files are decoded so many times larger, and the centre is taken.")
    classes: list[str]
    feature_shape: list[int] = Field(description="Depth, rows, columns of the features.")
    pixels: bool = Field(description="Whether the features are pixels: then prototypes are pictures.")
    gallery: GalleryOut | None = Field(
        description="Exemplars that prototypes of learned features are shown by."
    )
    max_rotation: float = Field(description="The largest rotation in training, in degrees.")
    max_shift: float = Field(description="The largest shift in training, as a fraction of the shorter side.")
    methods: list[MethodOut]
    companions: list[str] = Field(description="Other models of the same pictures and classes.")
    groups: list[GroupOut] = Field(description="What its evidence stands on; empty without an audit.")
    draw: bool = Field(description="Whether drawings with a pen suit the model.")


class SampleOut(BaseModel):
    """A sample picture."""

    index: int
    name: str
    image: str = Field(description="PNG, base64.")


class Health(BaseModel):
    """The server is running."""

    status: Literal["ok"]
    version: str
    models: int
