"""The application: a page at `/`, JSON at `/api`, health at `/healthz`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.version import __version__
from torchsite.web.engine import Job, answer
from torchsite.web.guards import Guard, Settings, Traffic
from torchsite.web.lanes import Lane
from torchsite.web.library import Library, Served
from torchsite.web.pictures import from_base64, hidden_pixels, read_picture
from torchsite.web.problems import HANDLERS, ProblemError, described
from torchsite.web.questions import BODY, Question, read_question
from torchsite.web.rendering import render
from torchsite.web.schemas import Explained, Health, ModelOut, SampleOut

STATIC = Path(__file__).with_name("static")
ABOUT = """Explanations of images that are sums to the prediction, and that move with the picture.

A *question* is a picture, a pose and a choice of explainers; the answer has the explanation of the moved
picture, I(T x), beside the moved explanation, T(I x), and says how alike they are."""
ModelName = Annotated[str, Query(alias="model", max_length=200, description="One of `/api/models`.")]
PROBLEMS = described(400, 403, 404, 408, 413, 415, 422, 503)


def create_app(library: Library, settings: Settings | None = None) -> FastAPI:
    """The ASGI application that serves the models of a library."""
    settings = settings or Settings()
    traffic = Traffic(settings)
    live = Lane("live", partial(answer, library), settings, settings.queue)
    # Methods hang hooks on a model while they work, so that each thread has its own copy of the models.
    slow = Lane("slow", partial(answer, library.copy()), settings, settings.slow_queue)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for lane in (live, slow):
            await lane.stop()

    async def drain(seconds: float) -> None:
        """Answer all open requests: queued ones with 503, running ones after at most `seconds`."""
        for lane in (live, slow):
            lane.refuse()
        await traffic.close(seconds)

    about: dict[str, Any] = {"title": "torchsite", "version": __version__, "description": ABOUT}
    handlers: Any = HANDLERS
    app = FastAPI(**about, docs_url=None, redoc_url=None, lifespan=lifespan, exception_handlers=handlers)
    app.state.drain = drain
    app.add_middleware(Guard, traffic=traffic)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    decoders = anyio.CapacityLimiter(2)  # a large picture takes memory while it is decoded

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/api/models", tags=["models"])
    async def models() -> list[ModelOut]:
        """The models and their options."""
        return [library.describe(served) for served in library.models.values()]

    @app.get("/api/samples", tags=["models"], responses=described(403, 404, 422))
    async def samples(name: ModelName) -> list[SampleOut]:
        """Sample pictures, as the model takes them."""
        return library[name].samples.described()

    @app.post(
        "/api/explain",
        tags=["explanations"],
        response_model=Explained,
        responses=PROBLEMS,
        openapi_extra={"requestBody": BODY},
    )
    async def explain(request: Request, name: ModelName) -> Response:
        """The prediction and its reasons, for a picture and for the same picture moved."""
        served, question = library[name], await read_question(request)
        read = partial(_picture, served, question, settings.max_pixels)
        job = _job(library, served, question, await anyio.to_thread.run_sync(read, limiter=decoders))
        late = job.hiding or any(METHODS[method].is_slow() for method, _ in job.explainers)
        result = await (slow if late else live).submit(job)
        return Response(render(result).model_dump_json(), media_type="application/json")

    @app.get("/healthz", tags=["server"])
    async def healthz() -> Health:
        """Whether the server is there."""
        return Health(status="ok", version=__version__, models=len(library.models))

    return app


def _picture(served: Served, question: Question, max_pixels: int) -> Tensor:
    """The picture of a question as the model takes it: one that was sent, or a sample."""
    config, samples = served.config, served.samples
    if question.image is not None:
        content, invert = from_base64(question.image), question.invert
        return read_picture(
            content, config.image_shape, max_pixels=max_pixels, invert=invert, margin=config.margin
        )
    if question.sample is None or question.sample >= len(samples):
        last = len(samples) - 1
        raise ProblemError(
            404, "no_such_sample", f"no sample {question.sample}: {served.name} has 0 to {last}"
        )
    return samples.images[question.sample]


def _job(library: Library, served: Served, question: Question, picture: Tensor) -> Job:
    """The question in the terms of the engine; unknown classes, methods and wrong masks are found here."""
    methods = question.methods or [served.default_method]
    return Job(
        model=served.name,
        picture=picture,
        transform=question.transform(),
        explainers=tuple(dict.fromkeys(library.explainer_named(text, served) for text in methods)),
        label=None if question.of is None else served.class_index(question.of),
        against=None if question.against is None else served.class_index(question.against),
        corners=question.corners,
        hidden=hidden_pixels(question.hidden, served.config.image_shape[1:]),
        hiding=question.hiding,
        pictures=question.pictures,
    )
