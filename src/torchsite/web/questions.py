"""Questions and how requests are parsed into them: JSON strictly, form fields from text.

What is too long is refused before it is parsed, and nothing large is parsed in the thread of the event loop.
"""

import json
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import anyio
from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.datastructures import UploadFile

from torchsite.transforms.affine import AffineTransform
from torchsite.web.problems import ProblemError, sentence

MAX_TEXT = 300  # a name of a folder, which may be a class, has at most 255
MAX_FIELD = 100_000
MAX_FIELDS = 32
MAX_DIGITS = 18
MAX_MARKS = 1_000  # quotes, commas, colons and brackets of a question in JSON: base64 has none of them
LONG = ("image", "hidden")  # fields that may be longer than MAX_TEXT
Text = Annotated[str, Field(max_length=MAX_TEXT)]
ClassChoice = int | Text


class Question(BaseModel):
    """A picture, a pose, and what to ask. One of `image` and `sample` must be given.

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
    top: int = Field(10, ge=1, le=32, description="How many classes come with their heatmaps.")
    pictures: bool = Field(True, description="Whether x and T x come back as PNG.")

    @model_validator(mode="after")
    def _one_picture(self) -> "Question":
        if (self.image is None) == (self.sample is None):
            raise ValueError("expected either image or sample, a picture in base64 or a sample's number")
        return self

    def transform(self, turned_by: float = 0.0) -> AffineTransform:
        """T of the pose, turned further by some degrees."""
        moved = AffineTransform.pose(self.angle + turned_by, self.right, self.down)
        product = moved @ AffineTransform.scale(self.scale)
        assert isinstance(product, AffineTransform)
        return product


class SweepQuestion(Question):
    """A question asked over a full turn."""

    frames: int = Field(36, ge=2, le=72, description="How many angles.")


Asked = TypeVar("Asked", bound=Question)


async def read_question(request: Request, kind: type[Asked]) -> tuple[Asked, bytes | None]:
    """The question of a request, and the picture file if one came with it."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        return await anyio.to_thread.run_sync(_from_json, kind, await request.body()), None
    if content_type == "multipart/form-data" and kind is Question:
        return await _from_form(request, kind)
    kinds = "application/json" + (" or multipart/form-data" if kind is Question else "")
    raise ProblemError(415, "content_type", f"expected {kinds}, got {content_type or 'no content type'}")


def body_of(kind: type[Question]) -> dict[str, Any]:
    """What the OpenAPI description says of the body, which `read_question` parses."""
    schema = kind.model_json_schema()
    content = {"application/json": {"schema": schema}}
    if kind is Question:
        fields = {name: field for name, field in schema["properties"].items() if name != "sample"}
        fields["image"] = {"type": "string", "format": "binary", "description": "A picture file."}
        form = schema | {"properties": fields, "required": ["image"]}
        content["multipart/form-data"] = {"schema": form}
    return {"requestBody": {"required": True, "content": content}}


def _from_json(kind: type[Asked], body: bytes) -> Asked:
    if sum(map(body.count, (b'"', b",", b":", b"[", b"{"))) > MAX_MARKS:
        raise _malformed(f"the body has too many fields: a question has at most {MAX_FIELDS}")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"the body is not JSON: {error}") from error
    return _validated(kind, fields, strict=True)


async def _from_form(request: Request, kind: type[Asked]) -> tuple[Asked, bytes]:
    async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD) as form:
        file = form.get("image")
        if not isinstance(file, UploadFile):
            raise ProblemError(422, "invalid", "image: expected a file in a multipart field of this name")
        content = await file.read()
        fields: dict[str, Any] = {name: value for name, value in form.items() if name != "image"}
        if "methods" in fields:
            fields["methods"] = form.getlist("methods")
    # The picture is in hand: an empty `image` only tells the question that there is one.
    read = partial(_validated, kind, fields | {"image": ""}, strict=False)
    return await anyio.to_thread.run_sync(read), content


def _validated(kind: type[Asked], fields: Any, *, strict: bool) -> Asked:
    if isinstance(fields, dict):
        _check_lengths(fields)
    try:
        return kind.model_validate(fields, strict=strict)
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
