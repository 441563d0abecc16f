"""Parsing of requests: JSON strictly, form fields from text.

What is too long is refused before it is parsed, and nothing large is parsed in the thread of the event loop.
"""

import json
from functools import partial
from typing import Any, TypeVar

import anyio
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile

from torchsite.transforms.affine import AffineTransform
from torchsite.web.problems import ProblemError, sentence
from torchsite.web.schemas import MAX_TEXT, Pose, Question

Asked = TypeVar("Asked", bound=Question)
MAX_FIELD = 100_000
MAX_FIELDS = 32
MAX_DIGITS = 18
MAX_MARKS = 1_000  # quotes, commas, colons and brackets of a question in JSON: base64 has none of them
LISTS = ("methods",)
LONG = ("image", "hidden")


async def read_question(request: Request, kind: type[Asked]) -> tuple[Asked, bytes | None]:
    """The question of a request, and the picture file if one came with it."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        return await anyio.to_thread.run_sync(_from_json, kind, await request.body()), None
    if content_type == "multipart/form-data" and kind is Question:
        return await _from_form(request, kind)
    kinds = "application/json" + (" or multipart/form-data" if kind is Question else "")
    raise ProblemError(415, "content_type", f"expected {kinds}, got {content_type or 'no content type'}")


def transform_of(pose: Pose, turned_by: float = 0.0) -> AffineTransform:
    """Scale, turn, then shift."""
    moved = AffineTransform.pose(pose.angle + turned_by, pose.right, pose.down)
    product = moved @ AffineTransform.scale(pose.scale)
    assert isinstance(product, AffineTransform)
    return product


def body_of(kind: type[BaseModel], *, multipart: bool) -> dict[str, Any]:
    """What the OpenAPI description says of the body, which is read by hand."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    content = {"application/json": {"schema": schema}}
    if multipart:
        fields = {name: field for name, field in schema["properties"].items() if name != "sample"}
        fields["image"] = {"type": "string", "format": "binary", "description": "A picture file."}
        form = schema | {"properties": fields, "required": ["image"]}
        content["multipart/form-data"] = {"schema": form}
    return {"requestBody": {"required": True, "content": content}}


def _from_json(kind: type[Asked], body: bytes) -> Asked:
    if sum(map(body.count, (b'"', b",", b":", b"[", b"{"))) > MAX_MARKS:
        raise ProblemError(
            400, "malformed", f"the body has too many fields: a question has at most {MAX_FIELDS}"
        )
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProblemError(400, "malformed", f"the body is not JSON: {error}") from error
    return _validated(kind, fields, strict=True)


async def _from_form(request: Request, kind: type[Asked]) -> tuple[Asked, bytes]:
    async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD) as form:
        file = form.get("image")
        if not isinstance(file, UploadFile):
            raise ProblemError(422, "invalid", "image: expected a file in a multipart field of this name")
        content = await file.read()
        names = {name for name in form if name != "image"}
        fields = {name: form.getlist(name) if name in LISTS else form[name] for name in names}
    # The picture is in hand: the place of `image` only tells the question that there is one.
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
        raise ProblemError(400, "malformed", f"a question has at most {MAX_FIELDS} fields, got {len(fields)}")
    for name, value in fields.items():
        if len(name) > MAX_TEXT:
            raise ProblemError(
                400, "malformed", f"{name[:20]}…: a field's name has at most {MAX_TEXT} characters"
            )
        if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
            raise ProblemError(400, "malformed", f"{name}: a number has at most {MAX_DIGITS} digits")
        if isinstance(value, str) and len(value) > MAX_TEXT and name not in LONG:
            raise ProblemError(
                400, "malformed", f"{name}: expected at most {MAX_TEXT} characters, got {len(value):,}"
            )
