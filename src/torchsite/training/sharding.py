"""FSDP: parameters, gradients and what the optimisers remember, divided among the processes.

For extractors whose training fits into no single device. Every part of the model (extractor, generator) is
whole in a process only while it is at work there. What is written, to checkpoints and as weights, is whole.
"""

import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from torchsite.training.batchnorm import GlobalStatistics

FSDP = "fsdp"


class ShardedStrategy(ModelParallelStrategy):
    """Lightning's strategy for FSDP, on CPUs as on GPUs; all processes take their part of each batch."""

    def __init__(self) -> None:
        super().__init__(tensor_parallel_size=1, save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        """Form the group of processes; each of them works on pictures of its own."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()


def shard(model: nn.Module, mesh: DeviceMesh) -> None:
    """Divide every part that has parameters; batch norm takes its statistics over all processes."""
    GlobalStatistics().apply(model)
    model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]  # FSDP divides no other
    for part in model.children():
        if next(part.parameters(), None) is not None and not isinstance(part, FSDPModule):
            fully_shard(part, mesh=mesh)


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself; of a divided one all of it, on every process, and every process must ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def whole_state(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model, whole; if they are divided, every process must ask."""
    return {name: whole(tensor) for name, tensor in model.state_dict().items()}


def divided_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, divided as the other one is, if it is."""
    if not isinstance(other, DTensor) or isinstance(tensor, DTensor):
        return tensor
    return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)
