"""Questions, and how the JSON of a request is parsed into one.

What is too long is refused before it is parsed, and nothing large is parsed in the thread of the event loop.
"""

import json
from typing import Annotated, Any, Literal

import anyio
from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from torchsite.transforms.affine import AffineTransform
from torchsite.web.problems import ProblemError, sentence

MAX_TEXT = 300  # a name of a folder, which may be a class, has at most 255
MAX_FIELDS = 32
MAX_DIGITS = 18
MAX_MARKS = 1_000  # quotes, commas, colons and brackets of a question in JSON: base64 has none of them
LONG = ("image", "hidden")  # fields that may be longer than MAX_TEXT
Text = Annotated[str, Field(max_length=MAX_TEXT)]
ClassChoice = int | Text


class Question(BaseModel):
    """A picture, a pose, and what to explain. One of `image` and `sample` must be given.

    The pose is a transform T: scale, then turn counter-clockwise about the centre, then shift.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    angle: float = Field(0.0, ge=-360, le=360, description="Degrees, counter-clockwise.")
    right: float = Field(0.0, ge=-1, le=1, description="Shift, as a fraction of the shorter side.")
    down: float = Field(0.0, ge=-1, le=1, description="Shift, as a fraction of the shorter side.")
    scale: float = Field(1.0, ge=0.25, le=4, description="Magnification about the centre.")
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
        "black", description="The colour around the moved picture: black, or its mean colour."
    )
    hidden: str | None = Field(
        None, description="Pixels of x to hide, in its mean colour: one bit each, row by row, base64."
    )
    hiding: bool = Field(False, description="Also measure `hiding` of each row: 33 passes more.")
    pictures: bool = Field(True, description="Whether x and T x come back as PNG.")

    @model_validator(mode="after")
    def _one_picture(self) -> "Question":
        if (self.image is None) == (self.sample is None):
            raise ValueError("expected either image or sample, a picture in base64 or a sample's number")
        return self

    def transform(self) -> AffineTransform:
        """T of the pose."""
        moved = AffineTransform.pose(self.angle, self.right, self.down)
        product = moved @ AffineTransform.scale(self.scale)
        assert isinstance(product, AffineTransform)
        return product


async def read_question(request: Request) -> Question:
    """The question of a request; fails with 400, 415 or 422."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        expected = f"expected application/json, got {content_type or 'no content type'}"
        raise ProblemError(415, "content_type", expected)
    return await anyio.to_thread.run_sync(_from_json, await request.body())


def _from_json(body: bytes) -> Question:
    if sum(map(body.count, (b'"', b",", b":", b"[", b"{"))) > MAX_MARKS:
        raise _malformed(f"the body has too many fields: a question has at most {MAX_FIELDS}")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"the body is not JSON: {error}") from error
    if isinstance(fields, dict):
        _check_lengths(fields)
    try:
        return Question.model_validate(fields, strict=True)
    except ValidationError as error:
        said = error.errors(include_url=False, include_context=False, include_input=False)
        raise ProblemError(422, "invalid", sentence(said)) from error


def _check_lengths(fields: dict[str, Any]) -> None:
    """Fail with 400 if there are too many fields, or one is too long to be repeated in an error."""
    if len(fields) > MAX_FIELDS:
        raise _malformed(f"a question has at most {MAX_FIELDS} fields, got {len(fields)}")
    for name, value in fields.items():
        if len(name) > MAX_TEXT:
            raise _malformed(f"{name[:20]}…: a field's name has at most {MAX_TEXT} characters")
        if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
            raise _malformed(f"{name}: a number has at most {MAX_DIGITS} digits")
        if isinstance(value, str) and len(value) > MAX_TEXT and name not in LONG:
            raise _malformed(f"{name}: expected at most {MAX_TEXT} characters, got {len(value):,}")


def _malformed(reason: str) -> ProblemError:
    return ProblemError(400, "malformed", reason)


BODY = {"required": True, "content": {"application/json": {"schema": Question.model_json_schema()}}}
