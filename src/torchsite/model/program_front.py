"""The front of a network that was trained elsewhere, as a program that a saved model carries with it.

Maps of several resolutions are taken, each the last that all content passes through on its way to the logits,
and summed laterally at the finest: maps of seven cells a side, as the end of most networks has, would be too
coarse to point with. A model with such a front comes back from its folder without the network's code.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchsite.errors import ConfigError, NotApplicableError, did_you_mean
from torchsite.model.extractor import ImageShape
from torchsite.model.fine_tuned import FineTuned, Only
from torchsite.model.lateral_sum import LateralSum
from torchsite.model.programs import INPUT, Answers, Program, ProgramModule, run_step
from torchsite.shapes import Size

MOST_CELLS = 28


class ProgramFront(FineTuned):
    """A program that answers maps, and lateral sums of them; `program` is plain data."""

    def __init__(
        self,
        channels: int,
        size: Size,
        program: Mapping[str, Any] | None = None,
        depth: int | None = 16,
        fine_tuning: float = 0.1,
        common: int = 64,
    ) -> None:
        if program is None:
            raise ConfigError(
                "program: expected the steps of a network: make one with `SITE.from_program`, or "
                "`torchsite convert`"
            )
        body = ProgramModule(Program.from_plain(program))
        widths = widths_of(body, (channels, *size))
        if depth is None and len(widths) > 1:
            raise ConfigError(
                f"depth=None hands on one map as it is, but here are {len(widths)}: name a layer"
            )
        answer = Only() if depth is None else LateralSum(widths, common, depth)
        super().__init__(body, answer, fine_tuning, has_learnt=True)
        self.mean, self.std = (0.0,) * channels, (1.0,) * channels


def widths_of(body: ProgramModule, image_shape: ImageShape) -> list[int]:
    """The depths of the maps, found by trying two pictures; a program must take any number of them."""
    like = next(iter(body.parameters()), torch.zeros(()))
    try:
        with torch.no_grad():
            maps = body(torch.zeros(2, *image_shape, dtype=like.dtype, device=like.device))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ConfigError(
            f"the network's front cannot take two pictures of {image_shape} ({str(error).splitlines()[0]}): "
            "export it with a free batch axis, dynamic_shapes={…: {0: torch.export.Dim('batch')}}"
        ) from error
    if any(found.ndim != 4 or len(found) != 2 for found in maps):
        raise ConfigError(f"expected maps (batch, depth, rows, cols), got {[tuple(m.shape) for m in maps]}")
    return [found.shape[1] for found in maps]


def front_of(classifier: Answers, image_shape: ImageShape, layer: str | None = None) -> Program:
    """The part of a classifier that answers maps to explain with: of one layer, or of several resolutions."""
    program = classifier.program
    shapes = _shapes(classifier, image_shape)
    if layer is not None:
        return program.needed([_last_of(program, layer, shapes)])
    levels: dict[tuple[int, int], str] = {}
    for name in passages(program, shapes):
        shape = shapes[name]
        if len(shape) == 4 and shape[2] * shape[3] > 1:
            levels[(shape[2], shape[3])] = name  # the last of each resolution
    if not levels:
        raise NotApplicableError(
            "the network has no map of rows and columns that all content passes through: name a layer"
        )
    coarsest = min(levels, key=lambda cells: cells[0] * cells[1])
    kept = {cells: name for cells, name in levels.items() if max(cells) <= MOST_CELLS or cells == coarsest}
    finest_first = sorted(kept, key=lambda cells: -cells[0] * cells[1])
    return program.needed([kept[cells] for cells in finest_first])


def passages(program: Program, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """The values that no content goes around: nothing after them reads content from before them."""
    content = {INPUT}
    last: dict[str, int] = {}
    for number, step in enumerate(program.steps):
        if content.intersection(step.reads) and step.name in shapes:  # sizes are no content
            content.add(step.name)
        for name in step.reads:
            last[name] = number
    found, open_until = [], last.get(INPUT, -1)
    for number, step in enumerate(program.steps):
        if step.name not in content:
            continue
        if open_until <= number:
            found.append(step.name)
        open_until = max(open_until, last.get(step.name, -1))
    return found


@torch.no_grad()
def _shapes(classifier: Answers, image_shape: ImageShape) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of one pass over one picture; () for several together."""
    body = classifier.body
    like = next(iter(body.parameters()), torch.zeros(()))
    values: dict[str, Any] = dict(body.state_dict())
    values[INPUT] = torch.zeros(1, *image_shape, dtype=like.dtype, device=like.device)
    try:
        for step in body.program.steps:
            values[step.name] = run_step(step, values)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ConfigError(
            f"the network cannot take a picture of {image_shape} ({str(error).splitlines()[0]}): "
            "say which size it takes"
        ) from error
    return {
        name: tuple(getattr(value, "shape", ()))
        for name, value in values.items()
        if isinstance(value, Tensor | tuple | list)
    }


def _last_of(program: Program, layer: str, shapes: Mapping[str, Sequence[int]]) -> str:
    """The last map that a layer computes."""
    known = {name for step in program.steps for name in step.layers if name}
    if not known:
        raise NotApplicableError(
            "this file does not say which layer an operator belongs to: leave `layer` out"
        )
    if layer not in known:
        raise NotApplicableError(f"the network has no layer {layer!r}: {did_you_mean(layer, known)}")
    maps = [
        step.name for step in program.steps if layer in step.layers and len(shapes.get(step.name, ())) == 4
    ]
    if not maps:
        raise NotApplicableError(f"layer {layer!r} answers no map of rows and columns: name another")
    return maps[-1]
