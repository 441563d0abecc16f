"""Limits of the server: formats and sizes of uploads, times, lengths of queues."""

from dataclasses import dataclass

# Formats that Pillow may try, whatever a file is called and whatever its sender says it is.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


@dataclass(frozen=True)
class Settings:
    """Limits; the defaults suit one machine with two cores."""

    hosts: tuple[str, ...] = ()  # names of this server beside localhost and numeric addresses
    max_body: int = 10_000_000
    body_seconds: float = 30.0  # from the head of a request to the end of its body
    max_open: int = 128  # requests that are received, waiting or worked on
    max_held: int = 64_000_000  # bytes of all their bodies
    max_pixels: int = 24_000_000
    max_batch: int = 16
    queue: int = 64
    slow_queue: int = 4
    retry_after: int = 1
    timeout: float = 60.0
