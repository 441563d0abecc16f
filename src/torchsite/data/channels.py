"""Bring the pictures of a set in memory to another number of channels: grey from colour, colour from grey."""

from dataclasses import replace

import torch

from torchsite.data.dataset import Dataset
from torchsite.data.pictures import LUMA
from torchsite.errors import DataError

CHUNK = 1024


def in_channels(data: Dataset, channels: int) -> Dataset:
    """The pictures with one or three channels; as they are if they have as many already."""
    has = data.images.shape[1]
    if has == channels:
        return data
    if data.larger is not None:
        return in_channels(replace(data, images=data.larger, larger=None), channels).with_margin(data.size)
    if (has, channels) == (1, 3):
        return replace(data, images=data.images.expand(-1, 3, -1, -1))
    if (has, channels) != (3, 1):
        raise DataError(
            f"{data.name}: expected pictures of {channels} channels, got {has}: convert them first"
        )
    weights = torch.tensor(LUMA)
    grey = [
        torch.einsum("nchw,c->nhw", part.float(), weights)[:, None].round_().to(torch.uint8)
        for part in data.images.split(CHUNK)
    ]
    return replace(data, images=torch.cat(grey))
