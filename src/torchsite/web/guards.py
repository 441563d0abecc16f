"""What stands before the application: a limit on what is sent, headers of security, and a clock."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchsite.web.problems import problem
from torchsite.web.telemetry import Telemetry

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class TooLargeError(Exception):
    """More was sent than is allowed."""


class Guard:
    """Counts, times and limits requests, and adds headers to every response."""

    def __init__(self, app: ASGIApp, *, max_body: int, telemetry: Telemetry, paths: frozenset[str]) -> None:
        self.app, self.max_body, self.telemetry, self.paths = app, max_body, telemetry, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 413."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        received, begun = 0, False

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_body:
                raise TooLargeError
            return message

        async def guarded(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = [*message.get("headers", []), *ENCODED]
            await send(message)

        try:
            if _announced(scope) > self.max_body:
                raise TooLargeError
            await self.app(scope, limited, guarded)
        except TooLargeError:
            if begun:
                raise
            reason = f"a request may have {self.max_body:,} bytes: send a smaller picture"
            await problem(413, "too_large", reason)(scope, receive, guarded)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.telemetry.requests.labels(path, str(status)).inc()
            self.telemetry.seconds.labels(path).observe(time.perf_counter() - start)


def _announced(scope: Scope) -> int:
    """The length that the client announced; 0 if it did not say."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0
