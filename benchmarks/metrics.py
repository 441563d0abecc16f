"""Streaming: self-consistency of 10,000 pictures of 32×32 under eight transforms each, in bounded memory.

Claim:    memory grows by less than the pictures of one batch and their sums, whatever the number of pictures.
Command:  python benchmarks/metrics.py [--images 10000] [--transforms 8] [--batch 128]
Prints:   seconds, milliseconds per transformed picture, growth of peak memory, size of the metric's state.

The explainer is as cheap as can be (the mean over channels), so what is timed is the measure itself:
transforms, masks, similarities, bootstrap weights. Pictures are drawn batch by batch.
"""

import argparse
import resource
import time

import torch

from torchsite.metrics import Poses, SelfConsistency
from torchsite.randomness import make_rng


def peak_megabytes() -> float:
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(n_images: int, n_transforms: int, batch: int) -> None:
    """Measure, and print what it took."""
    metric = SelfConsistency(
        lambda images, classes: images.mean(1), poses=Poses(n=n_transforms), n_classes=10
    )
    rng = make_rng(0)
    start, before, warm = 0.0, 0.0, 0
    for number, first in enumerate(range(0, n_images, batch)):
        n = min(batch, n_images - first)
        images = torch.rand(n, 3, 32, 32, generator=rng)
        metric.update(images, torch.arange(first, first + n) % 10)
        if number == 1:  # two batches warm the allocator up
            start, before, warm = time.perf_counter(), peak_megabytes(), first + n
    seconds = time.perf_counter() - start
    result = metric.result()
    state = metric.sums.numel() * metric.sums.element_size() / 2**20
    per_picture = 1000 * seconds / ((n_images - warm) * n_transforms)
    threads = torch.get_num_threads()
    print(f"{n_images:,} pictures × {n_transforms} transforms, batches of {batch}, {threads} threads")
    print(f"  {seconds:.1f} s, {per_picture:.3f} ms per transformed picture")
    print(f"  peak memory grew by {peak_megabytes() - before:.1f} MB after warming up; state {state:.1f} MB")
    print(f"  raw {result.raw}, floor {result.floor}, calibrated {result.calibrated}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--transforms", type=int, default=8)
    parser.add_argument("--batch", type=int, default=128)
    options = parser.parse_args()
    run(options.images, options.transforms, options.batch)
