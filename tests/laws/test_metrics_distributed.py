"""Two processes give the single process's result, interval included."""

import socket

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from torchsite.errors import ShapeError
from torchsite.metrics import Poses, SelfConsistency
from torchsite.randomness import make_rng

N = 12


def pictures():
    rng = make_rng(0, "distributed")
    return torch.rand(N, 1, 10, 10, generator=rng), torch.randint(3, (N,), generator=rng)


def mirrored(images, classes):
    return images.flip(-1).sum(1)


def metric():
    return SelfConsistency(mirrored, poses=Poses(n=2), n_classes=3, n_resamples=50)


def measure(parts):
    images, classes = pictures()
    found = metric()
    for part in parts:
        found.update(images[part], classes[part], indices=part)
    return found.result()


def parts():
    return list(torch.arange(N).split(3))


def process(rank, port, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    try:
        result = measure(parts()[rank::2])
        with pytest.raises(ShapeError, match="indices"):
            metric().update(*pictures())
        queue.put((rank, result._asdict()["calibrated"], result._asdict()["raw"]))
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch was built without gloo")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_processes_agree_with_one():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    mp.spawn(process, args=(port, queue), nprocs=2, join=True)
    single = measure(parts())
    found = {rank: (calibrated, raw) for rank, calibrated, raw in (queue.get() for _ in range(2))}
    assert set(found) == {0, 1}
    for calibrated, raw in found.values():
        assert tuple(calibrated) == pytest.approx(tuple(single.calibrated), abs=1e-12)
        assert tuple(raw) == pytest.approx(tuple(single.raw), abs=1e-12)
