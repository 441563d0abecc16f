"""Errors as JSON: a code for programs, a reason for people, and the same shape for all of them."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from torchsite.errors import NotApplicableError, TorchsiteError

MOST_SAID = 10
log = logging.getLogger(__name__)
CODES = {400: "malformed", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}


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
        """The response that says what went wrong."""
        return problem(self.status, self.code, self.reason, self.headers)


def busy(reason: str, retry_after: int) -> ProblemError:
    """The refusal of a server that has too much to do, or that is about to end."""
    hint = f"{reason}: try again in {retry_after} s"
    return ProblemError(503, "busy", hint, {"Retry-After": str(retry_after)})


def problem(status: int, code: str, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response that says what went wrong."""
    return JSONResponse(Problem(code=code, reason=reason).model_dump(), status, headers=headers)


def sentence(errors: Sequence[Any]) -> str:
    """The first ten complaints of pydantic in one line: where, and what was expected."""
    said = [f"{'.'.join(map(str, error['loc'])) or 'body'}: {error['msg']}" for error in errors[:MOST_SAID]]
    return "; ".join(said) + (f"; and {len(errors) - MOST_SAID} more" if len(errors) > MOST_SAID else "")


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI description says of responses that are problems."""
    texts = {
        400: "The request cannot be read, or has too many or too long fields.",
        403: "A page of another site asks, or the server is not known by this name.",
        404: "There is no such model or sample.",
        408: "The request took too long to arrive.",
        413: "The request is too large.",
        415: "The content type is neither JSON nor multipart.",
        422: "A field or the picture is unusable; the reason says which and why.",
        503: "Too many requests are waiting; Retry-After says how long to wait.",
    }
    return {status: {"model": Problem, "description": texts[status]} for status in statuses}


def install(app: FastAPI) -> None:
    """Every error of the application becomes a problem."""

    @app.exception_handler(ProblemError)
    async def _(request: Request, error: ProblemError) -> JSONResponse:
        return error.answer

    @app.exception_handler(NotApplicableError)
    async def _(request: Request, error: NotApplicableError) -> JSONResponse:
        return problem(422, "not_applicable", str(error))

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> JSONResponse:
        return problem(422, "invalid", sentence(error.errors()))

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> JSONResponse:
        return problem(
            error.status_code, CODES.get(error.status_code, "error"), str(error.detail), error.headers
        )

    @app.exception_handler(Exception)
    async def _(request: Request, error: Exception) -> JSONResponse:
        log.exception("unexpected error at %s", request.url.path)
        return problem(500, "internal", "the server failed on this request: its log says more")
