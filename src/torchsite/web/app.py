"""The application: a page at `/`, JSON at `/api`, health at `/healthz`, Prometheus metrics at `/metrics`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from torchsite.version import __version__
from torchsite.web import problems
from torchsite.web.batching import Lane
from torchsite.web.engine import answer
from torchsite.web.guards import Guard, Traffic
from torchsite.web.library import Library
from torchsite.web.routes import api_router
from torchsite.web.settings import Settings
from torchsite.web.telemetry import Telemetry

STATIC = Path(__file__).with_name("static")
ABOUT = """Explanations of images that are sums to the prediction, and that move with the picture.

A *question* is a picture, a pose and a choice of explainers; the answer has the explanation of the moved
picture, I(T x), beside the moved explanation, T(I x), and says how alike they are."""


def create_app(library: Library, settings: Settings | None = None) -> FastAPI:
    """The ASGI application that serves the models of a library."""
    settings = settings or Settings()
    telemetry, traffic = Telemetry(), Traffic(settings)
    fast = _lane("live", library, telemetry, settings, settings.queue)
    slow = _lane("slow", library.copy(), telemetry, settings, settings.slow_queue)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        for lane in (fast, slow):
            await lane.start()
        yield
        for lane in (fast, slow):
            await lane.stop()

    async def drain(seconds: float) -> None:
        """Answer all open requests: queued ones with 503, running ones after at most `seconds`."""
        for lane in (fast, slow):
            lane.refuse()
        await traffic.close(seconds)

    app = FastAPI(
        title="torchsite",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.drain = drain
    problems.install(app)
    app.include_router(api_router(library, settings, telemetry, fast, slow))
    _add_pages(app)
    paths = frozenset(["/", "/docs", *app.openapi()["paths"]])
    app.add_middleware(Guard, traffic=traffic, telemetry=telemetry, paths=paths)
    return app


def _lane(name: str, library: Library, telemetry: Telemetry, settings: Settings, length: int) -> Lane:
    return Lane(
        name,
        partial(answer, library),
        telemetry,
        max_queue=length,
        max_batch=settings.max_batch,
        retry_after=settings.retry_after,
        timeout=settings.timeout,
    )


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
