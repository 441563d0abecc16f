"""What the server allows: sizes of uploads, lengths of queues, and how much work a slow method may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Formats that Pillow may try, whatever a file is called and whatever its sender says it is.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")

# Methods that take many passes: computed when the picture rests, with a budget for people who wait.
SLOW_METHODS: Mapping[str, Mapping[str, Any]] = {
    "rise": {"n_masks": 256},
    "extremal_perturbation": {"n_steps": 60},
    "integrated_gradients": {"n_steps": 16},
    "smooth_grad": {"n_samples": 16},
    "occlusion": {},
    "score_cam": {},
}


@dataclass(frozen=True)
class Settings:
    """Limits; the defaults suit one machine with two cores."""

    max_body: int = 10_000_000
    max_pixels: int = 24_000_000
    max_batch: int = 16
    queue: int = 64
    slow_queue: int = 4
    retry_after: int = 1
    timeout: float = 60.0
