"""Limits of the server, and the middleware that enforces them: host, origin, size, time, open requests."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchsite.web.problems import CLOSING, ProblemError, busy

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
SMALL = 65_536  # bytes of a body that do not count as held: questions about samples get through


@dataclass(frozen=True)
class Settings:
    """Limits; the defaults suit one machine with two cores."""

    hosts: tuple[str, ...] = ()  # names of this server beside localhost and numeric addresses
    max_body: int = 14_000_000  # a file of 10 MB in base64
    body_seconds: float = 30.0  # from the head of a request to the end of its body
    max_open: int = 128  # requests that are received, waiting or worked on
    max_held: int = 64_000_000  # bytes of all their bodies
    max_pixels: int = 24_000_000
    queue: int = 64
    slow_queue: int = 4
    retry_after: int = 1
    timeout: float = 60.0


class Traffic:
    """The open requests, the bytes they hold, and whether the server is shutting down."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.closing = False
        self.held = 0
        self._open: set[asyncio.Task[None]] = set()

    @contextmanager
    def admitted(self, announced: int | None) -> Iterator[None]:
        """Count one request while it is open; fails with 413 if it is too large, 503 if too many are open."""
        settings = self.settings
        size = settings.max_body if announced is None else announced
        if size > settings.max_body:
            raise _too_large(settings.max_body)
        counted = 0 if size <= SMALL else size
        if self.closing:
            raise busy(CLOSING, settings.retry_after)
        if len(self._open) >= settings.max_open or self.held + counted > settings.max_held:
            raise busy("too many requests are open", settings.retry_after)
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.held += counted
        try:
            yield
        finally:
            self._open.discard(task)
            self.held -= counted

    async def close(self, seconds: float) -> None:
        """Admit no more requests; after some seconds cancel the open ones, which then answer 503."""
        self.closing = True
        if self._open:
            await asyncio.wait(self._open, timeout=seconds)
        late = list(self._open)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1)


class Guard:
    """Checks and limits requests, and adds headers to every response."""

    def __init__(self, app: ASGIApp, *, traffic: Traffic) -> None:
        self.app, self.traffic, self.settings = app, traffic, traffic.settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer with 403, 408, 413 or 503."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", []), *ENCODED]
            await send(message)

        try:
            headers = Headers(scope=scope)
            check_sender(headers, self.settings.hosts)
            with self.traffic.admitted(_announced(headers)):
                body = await self._body(receive)
                if body is not None:
                    await self.app(scope, _replayed(body, receive), guarded)
        except ProblemError as error:
            if begun:
                raise
            await error.answer(scope, receive, guarded)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if begun or not self.traffic.closing or task is None:
                raise
            task.uncancel()
            await busy(CLOSING, self.settings.retry_after).answer(scope, receive, guarded)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body, or None if the client disconnected."""
        body, limit, seconds = bytearray(), self.settings.max_body, self.settings.body_seconds
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise _too_large(limit)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            reason = f"the request was not complete within {seconds:g} seconds: send it again"
            raise ProblemError(408, "too_slow", reason, {"Connection": "close"}) from None


def check_sender(headers: Headers, hosts: Sequence[str]) -> None:
    """Fail with 403 if the host is unknown or the request comes from a page of another site.

    A name of someone else's name server may be pointed at this machine (DNS rebinding), and
    pages below it would count as this server's own. Numeric addresses cannot be pointed anywhere.
    """
    host = headers.get("host", "")
    if not _is_known(host, hosts):
        reason = (
            f"this server is not called {host[:100]!r}: start it with --host or --allow-host of this name"
        )
        raise ProblemError(403, "wrong_host", reason)
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:  # only browsers send it, and no page can change it
        opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        foreign = site not in ("same-origin", "none") and not (opened and origin is None)
    else:
        foreign = origin is not None and origin.partition("://")[2] != host
    if foreign:
        raise ProblemError(
            403, "cross_site", "only this server's own pages may ask, not those of other sites"
        )


def _is_known(host: str, hosts: Sequence[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name in hosts:
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _announced(headers: Headers) -> int | None:
    """The length that the client announced, 0 if there is no body; None if it did not."""
    length = headers.get("content-length", "")
    if length.isdecimal():
        return int(length[:20])
    return None if "transfer-encoding" in headers else 0


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that yields the body in one message, then the messages that follow."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _too_large(limit: int) -> ProblemError:
    return ProblemError(413, "too_large", f"a request may have {limit:,} bytes: send a smaller picture")
