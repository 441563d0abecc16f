"""Reading a question: JSON is taken strictly, the fields of a form are read from their text."""

import json
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile

from torchsite.transforms.affine import AffineTransform
from torchsite.web.problems import ProblemError, sentence
from torchsite.web.schemas import Pose, Question

Asked = TypeVar("Asked", bound=Question)
MAX_FIELD = 100_000
LISTS = ("methods",)


async def read_question(request: Request, kind: type[Asked]) -> tuple[Asked, bytes | None]:
    """The question of a request, and the picture file if one came with it."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        return _validated(kind, _json(await request.body()), strict=True), None
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


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProblemError(400, "malformed", f"the body is not JSON: {error}") from error


async def _from_form(request: Request, kind: type[Asked]) -> tuple[Asked, bytes]:
    async with request.form(max_files=1, max_fields=32, max_part_size=MAX_FIELD) as form:
        file = form.get("image")
        if not isinstance(file, UploadFile):
            raise ProblemError(422, "invalid", "image: expected a file in a multipart field of this name")
        content = await file.read()
        names = {name for name in form if name != "image"}
        fields = {name: form.getlist(name) if name in LISTS else form[name] for name in names}
    # The picture is in hand: the place of `image` only tells the question that there is one.
    return _validated(kind, fields | {"image": ""}, strict=False), content


def _validated(kind: type[Asked], fields: Any, *, strict: bool) -> Asked:
    try:
        return kind.model_validate(fields, strict=strict)
    except ValidationError as error:
        raise ProblemError(422, "invalid", sentence(error.errors())) from error
