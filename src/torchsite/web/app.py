"""The application: a page at `/`, JSON at `/api`, health at `/healthz`, Prometheus metrics at `/metrics`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
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
from torchsite.web.questions import Question, SweepQuestion, body_of, read_question
from torchsite.web.rendering import render
from torchsite.web.schemas import Explained, Health, ModelOut, SampleOut
from torchsite.web.sweep import angles, animate
from torchsite.web.telemetry import CONTENT_TYPE, Telemetry

STATIC = Path(__file__).with_name("static")
ABOUT = """Explanations of images that are sums to the prediction, and that move with the picture.

A *question* is a picture, a pose and a choice of explainers; the answer has the explanation of the moved
picture, I(T x), beside the moved explanation, T(I x), and says how alike they are."""
ModelName = Annotated[str, Query(alias="model", max_length=200, description="One of `/api/models`.")]
PROBLEMS = described(400, 403, 404, 408, 413, 415, 422, 503)
TEXT = {"text/plain": {"schema": {"type": "string"}}}
GIF = {"image/gif": {"schema": {"type": "string", "format": "binary"}}}


def create_app(library: Library, settings: Settings | None = None) -> FastAPI:
    """The ASGI application that serves the models of a library."""
    settings = settings or Settings()
    telemetry, traffic = Telemetry(), Traffic(settings)
    fast = Lane("live", partial(answer, library), telemetry, settings, settings.queue)
    # Methods hang hooks on a model while they work, so that each thread has its own copy of the models.
    slow = Lane("slow", partial(answer, library.copy()), telemetry, settings, settings.slow_queue)

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

    about: dict[str, Any] = {"title": "torchsite", "version": __version__, "description": ABOUT}
    handlers: Any = HANDLERS
    app = FastAPI(**about, docs_url=None, redoc_url=None, lifespan=lifespan, exception_handlers=handlers)
    app.state.drain = drain
    _add_interface(app, library, settings, telemetry, fast, slow)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    paths = frozenset(["/", *app.openapi()["paths"]])
    app.add_middleware(Guard, traffic=traffic, telemetry=telemetry, paths=paths)
    return app


def _add_interface(
    app: FastAPI, library: Library, settings: Settings, telemetry: Telemetry, fast: Lane, slow: Lane
) -> None:
    decoders = anyio.CapacityLimiter(2)  # a large picture takes memory while it is decoded

    async def job_for(served: Served, question: Question, content: bytes | None) -> Job:
        """The question in the terms of the engine; everything wrong with it is found here."""
        methods = question.methods or [served.default_method]
        explainers = dict.fromkeys(library.explainer_named(text, served) for text in methods)
        if content is None and question.image is not None:
            content = await anyio.to_thread.run_sync(from_base64, question.image)
        if content is None:
            picture = _sample(served, question.sample)
        else:
            read = partial(
                read_picture,
                content,
                served.config.image_shape,
                max_pixels=settings.max_pixels,
                invert=question.invert,
                margin=served.config.margin,
            )
            picture = await anyio.to_thread.run_sync(read, limiter=decoders)
        return Job(
            model=served.name,
            picture=picture,
            transform=question.transform(),
            explainers=tuple(explainers),
            label=None if question.of is None else served.class_index(question.of),
            against=None if question.against is None else served.class_index(question.against),
            top=question.top,
            corners=question.corners,
            hidden=hidden_pixels(question.hidden, served.config.image_shape[1:]),
            hiding=question.hiding,
            pictures=question.pictures,
        )

    @app.get("/api/models", tags=["models"])
    async def models() -> list[ModelOut]:
        """The models that can be asked, and how."""
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
        openapi_extra=body_of(Question),
    )
    async def explain(request: Request, name: ModelName) -> Response:
        """The prediction and its reasons, for a picture and for the same picture moved.

        Send JSON, or multipart with the picture file in the field `image` and all else in fields of its name.
        """
        job = await job_for(library[name], *await read_question(request, Question))
        (result,) = await (slow if job.hiding or _slow_methods(job) else fast).submit([job])
        return Response(render(result).model_dump_json(), media_type="application/json")

    @app.post(
        "/api/sweep",
        tags=["explanations"],
        response_class=Response,
        responses={200: {"description": "The animation.", "content": GIF}, **PROBLEMS},
        openapi_extra=body_of(SweepQuestion),
    )
    async def sweep(request: Request, name: ModelName) -> Response:
        """A full turn as an animated GIF: the angle of the question is where it begins."""
        question, _ = await read_question(request, SweepQuestion)
        job = await job_for(library[name], question, None)
        if late := _slow_methods(job):
            raise ProblemError(422, "too_slow", f"{late[0]} is too slow for a sweep: choose a live method")
        plain = replace(job, against=None, top=1, hidden=None, hiding=False)
        degrees = angles(question.frames)
        results = await slow.submit([replace(plain, transform=question.transform(by)) for by in degrees])
        content = await anyio.to_thread.run_sync(animate, results, degrees)
        return Response(
            content, headers={"Content-Disposition": 'inline; filename="sweep.gif"'}, media_type="image/gif"
        )

    @app.get("/healthz", tags=["server"])
    async def healthz() -> Health:
        """Whether the server is there."""
        return Health(status="ok", version=__version__, models=len(library.models))

    @app.get("/metrics", tags=["server"], response_class=Response, responses={200: {"content": TEXT}})
    async def metrics() -> Response:
        """Metrics in the text form of Prometheus."""
        return Response(telemetry.text(), headers={"Content-Type": CONTENT_TYPE})


def _slow_methods(job: Job) -> list[str]:
    return [method for method, _ in job.explainers if METHODS[method].is_slow()]


def _sample(served: Served, index: int | None) -> Tensor:
    if index is None or index >= len(served.samples):
        last = len(served.samples) - 1
        raise ProblemError(404, "no_such_sample", f"no sample {index}: {served.name} has 0 to {last}")
    return served.samples.images[index]
