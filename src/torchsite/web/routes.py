"""The JSON interface: models, samples, explanations, sweeps, health and figures."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Query, Request, Response
from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.version import __version__
from torchsite.web.batching import Lane
from torchsite.web.engine import Job
from torchsite.web.library import Library, Served
from torchsite.web.pictures import from_base64, hidden_pixels, png, read_picture
from torchsite.web.problems import ProblemError, described
from torchsite.web.questions import body_of, read_question, transform_of
from torchsite.web.rendering import render
from torchsite.web.schemas import Explained, Health, ModelOut, Question, SampleOut, SweepQuestion
from torchsite.web.settings import Settings
from torchsite.web.sweep import angles, animate
from torchsite.web.telemetry import CONTENT_TYPE, Telemetry

ModelName = Annotated[str, Query(alias="model", max_length=200, description="One of `/api/models`.")]
GIF: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The animation.",
        "content": {"image/gif": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def api_router(
    library: Library, settings: Settings, telemetry: Telemetry, fast: Lane, slow: Lane
) -> APIRouter:
    """All routes, bound to what they serve."""
    router = APIRouter()
    decoders = anyio.CapacityLimiter(2)  # a large picture takes memory while it is decoded

    async def job_for(served: Served, question: Question, content: bytes | None) -> Job:
        """The question in the terms of the engine; everything wrong with it is found here."""
        explainers = [
            library.explainer_named(text, served) for text in question.methods or [served.default_method]
        ]
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
            transform=transform_of(question),
            explainers=tuple(dict.fromkeys(explainers)),
            label=None if question.of is None else served.class_index(question.of),
            against=None if question.against is None else served.class_index(question.against),
            top=question.top,
            corners=question.corners,
            hidden=hidden_pixels(question.hidden, served.config.image_shape[1:]),
            hiding=question.hiding,
        )

    @router.get("/api/models", tags=["models"])
    async def models() -> list[ModelOut]:
        """The models that can be asked, and how."""
        return [library.describe(served) for served in library.models.values()]

    @router.get("/api/samples", tags=["models"], responses=described(403, 404, 422))
    async def samples(name: ModelName) -> list[SampleOut]:
        """Pictures to begin with, as the model takes them."""
        found = library[name].samples
        return [
            SampleOut(index=i, name=label, image=png(image))
            for i, (label, image) in enumerate(zip(found.names, found.images, strict=True))
        ]

    @router.post(
        "/api/explain",
        tags=["explanations"],
        response_model=Explained,
        responses=described(400, 403, 404, 408, 413, 415, 422, 503),
        openapi_extra=body_of(Question, multipart=True),
    )
    async def explain(request: Request, name: ModelName) -> Response:
        """The prediction and its reasons, for a picture and for the same picture moved.

        Send JSON, or multipart with the picture file in the field `image` and all else in fields of its name.
        """
        served = library[name]
        question, content = await read_question(request, Question)
        job = await job_for(served, question, content)
        late = job.hiding or any(METHODS[method].is_slow() for method, _ in job.explainers)
        lane = slow if late else fast
        (result,) = await lane.submit([job])
        return Response(render(result).model_dump_json(), media_type="application/json")

    @router.post(
        "/api/sweep",
        tags=["explanations"],
        response_class=Response,
        responses={**GIF, **described(400, 403, 404, 408, 413, 415, 422, 503)},
        openapi_extra=body_of(SweepQuestion, multipart=False),
    )
    async def sweep(request: Request, name: ModelName) -> Response:
        """A full turn as an animated GIF: the angle of the question is where it begins."""
        served = library[name]
        question, content = await read_question(request, SweepQuestion)
        job = await job_for(served, question, content)
        late = [method for method, _ in job.explainers if METHODS[method].is_slow()]
        if late:
            raise ProblemError(422, "too_slow", f"{late[0]} is too slow for a sweep: choose a live method")
        degrees = angles(question.frames)
        turns = [
            replace(
                job,
                transform=transform_of(question, angle),
                against=None,
                top=1,
                hidden=None,
                hiding=False,
            )
            for angle in degrees
        ]
        results = await slow.submit(turns)
        content = await anyio.to_thread.run_sync(animate, results, degrees)
        return Response(
            content, media_type="image/gif", headers={"Content-Disposition": 'inline; filename="sweep.gif"'}
        )

    @router.get("/healthz", tags=["server"])
    async def healthz() -> Health:
        """Whether the server is there."""
        return Health(status="ok", version=__version__, models=len(library.models))

    @router.get(
        "/metrics",
        tags=["server"],
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        """Figures in the text form of Prometheus."""
        return Response(telemetry.text(), headers={"Content-Type": CONTENT_TYPE})

    return router


def _sample(served: Served, index: int | None) -> Tensor:
    if index is None or index >= len(served.samples):
        raise ProblemError(
            404, "no_such_sample", f"no sample {index}: {served.name} has 0 to {len(served.samples) - 1}"
        )
    return served.samples.images[index]
