"""The precision of a training: float32, or bfloat16 where the networks run faster in it.

Processors without instructions for bfloat16 emulate it, seven times slower than float32. So on CPUs a small
convolution is timed in both, forward and backward: that measures processor, libraries and settings together.
"""

import functools
import logging
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

log = logging.getLogger(__name__)
Chosen = Literal["32", "bf16"]
WORTH = 0.9  # bfloat16 must save at least a tenth of the time
ROUNDS = 4


@dataclass(frozen=True)
class Precision:
    """What was chosen, and why."""

    chosen: Chosen
    why: str

    def autocast(self, device: torch.device) -> AbstractContextManager[object]:
        """Autocast for the networks; parts that need float32 switch it off themselves."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.chosen == "bf16")


def choose_precision(asked: Literal["auto", "32", "bf16"], device: torch.device) -> Precision:
    """The given precision; with `auto`, bfloat16 where it is faster on this device."""
    if asked != "auto":
        return Precision(asked, "as the recipe asks")
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
        return Precision("bf16" if able else "32", f"this GPU counts in bfloat16: {'yes' if able else 'no'}")
    if device.type != "cpu":
        return Precision("32", f"bfloat16 is not tried on {device.type}")
    choice = _measured(torch.get_num_threads())
    log.info("precision: %s, because %s", choice.chosen, choice.why)
    return choice


@functools.lru_cache
def _measured(threads: int) -> Precision:
    """The faster one on this processor with so many threads, found once in a process."""
    plain, half = time_convolution()
    why = f"a convolution takes {1000 * plain:.1f} ms in float32 and {1000 * half:.1f} ms in bfloat16 here"
    return Precision("bf16" if half < WORTH * plain else "32", why)


def time_convolution() -> tuple[float, float]:
    """Seconds of one convolution, forward and backward, in float32 and in bfloat16: the best of some."""
    with torch.random.fork_rng(devices=[]):
        layer = nn.Conv2d(32, 32, 3, padding=1, bias=False)
    layer = layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    maps = torch.linspace(-1, 1, 16 * 32 * 16 * 16).view(16, 32, 16, 16)
    maps = maps.contiguous(memory_format=torch.channels_last).requires_grad_()
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for i, half in enumerate((False, True)):
            start = time.perf_counter()
            with torch.enable_grad(), torch.autocast("cpu", torch.bfloat16, enabled=half):
                answer = layer(maps)
            answer.float().sum().backward()
            best[i] = min(best[i], time.perf_counter() - start)
    return best[0], best[1]
