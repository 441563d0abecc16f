"""Run the application with uvicorn; shut down cleanly on SIGTERM and SIGINT."""

import errno
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from torchsite.errors import ConfigError

GRACE_SECONDS = 5
MAX_CONNECTIONS = 512  # beyond these uvicorn refuses; the application has lower limits of its own


class Server(uvicorn.Server):
    """Answers every request that is open before it ends."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the application answer, then close all connections."""
        assert isinstance(self.config.app, FastAPI)
        await self.config.app.state.drain(GRACE_SECONDS)
        await super().shutdown(sockets)


def serve(app: FastAPI, host: str, port: int, *, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` gets the address before the first request."""
    with bound(host, port) as listener:
        ready(address(listener, host))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        Server(config).run(sockets=[listener])


def bound(host: str, port: int) -> socket.socket:
    """A socket at the address; port 0 is any free one. Fails with `ConfigError` if it is taken or unknown."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        what = "it is taken, choose another with --port" if taken else error.strerror or str(error)
        raise ConfigError(f"cannot listen at {host}, port {port}: {what}") from error


def address(listener: socket.socket, host: str) -> str:
    """The address to type into a browser."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"
