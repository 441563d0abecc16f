"""Errors as JSON: a code for programs, a reason for people, and the same shape for all of them."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from torchsite.errors import NotApplicableError, TorchsiteError

MOST_SAID = 10
CLOSING = "the server is shutting down"
CODES = {400: "malformed", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
TEXTS = {
    400: "The request cannot be read, or has too many or too long fields.",
    403: "A page of another site asks, or the server is not known by this name.",
    404: "There is no such model or sample.",
    408: "The request took too long to arrive.",
    413: "The request is too large.",
    415: "The content type is not JSON.",
    422: "A field or the picture is unusable; the reason says which and why.",
    503: "Too many requests are waiting; Retry-After says how long to wait.",
}
log = logging.getLogger(__name__)


class Problem(BaseModel):
    """What went wrong."""

    code: str
    reason: str


class ProblemError(TorchsiteError):
    """A request that cannot be answered; becomes a `Problem` with its status."""

    def __init__(self, status: int, code: str, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason, self.headers = status, code, reason, headers

    @property
    def answer(self) -> JSONResponse:
        """The response with the reason."""
        content = Problem(code=self.code, reason=self.reason).model_dump()
        return JSONResponse(content, self.status, headers=self.headers)


def busy(reason: str, retry_after: int) -> ProblemError:
    """The refusal of a server that has too much to do, or that is shutting down."""
    hint = f"{reason}: try again in {retry_after} s"
    return ProblemError(503, "busy", hint, {"Retry-After": str(retry_after)})


def sentence(errors: Sequence[Any]) -> str:
    """The first ten errors of pydantic in one line: where, and what was expected."""
    said = [f"{'.'.join(map(str, error['loc'])) or 'body'}: {error['msg']}" for error in errors[:MOST_SAID]]
    return "; ".join(said) + (f"; and {len(errors) - MOST_SAID} more" if len(errors) > MOST_SAID else "")


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of responses that are problems."""
    return {status: {"model": Problem, "description": TEXTS[status]} for status in statuses}


async def respond(request: Request, error: Exception) -> JSONResponse:
    """Any error of the application as a problem."""
    match error:
        case ProblemError():
            return error.answer
        case NotApplicableError():
            return ProblemError(422, "not_applicable", str(error)).answer
        case RequestValidationError():
            return ProblemError(422, "invalid", sentence(error.errors())).answer
        case HTTPException(status_code=status):
            return ProblemError(status, CODES.get(status, "error"), str(error.detail), error.headers).answer
    log.error("unexpected error at %s", request.url.path, exc_info=error)
    return ProblemError(500, "internal", "the server failed on this request: its log says more").answer


HANDLERS = dict.fromkeys(
    (ProblemError, NotApplicableError, RequestValidationError, HTTPException, Exception), respond
)
