"""Networks as other people have them, and the files that they save them in."""

import warnings

import torch
from torch import nn

SHAPE = (3, 16, 16)


class Residual(nn.Module):
    """A stem, a block whose sum works in place, a second stage, a head."""

    def __init__(self, n_classes=2, channels=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
        self.conv, self.norm = nn.Conv2d(6, 6, 3, 1, 1), nn.BatchNorm2d(6)
        self.last = nn.Conv2d(6, 8, 3, 2, 1)
        self.relu, self.pool = nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, n_classes)

    def forward(self, images):
        maps = self.stem(images)
        added = self.norm(self.conv(maps))
        added += maps
        return self.head(torch.flatten(self.pool(self.relu(self.last(self.relu(added)))), 1))


def network(seed=0, n_classes=2, channels=3):
    """With statistics of its own, ready to answer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = Residual(n_classes, channels)
        for _ in range(3):
            net(torch.randn(8, channels, 16, 16))
    return net.eval()


def save(net, path, way, channels=3):
    """As `torch.export.save` (one picture, any number) or `torch.jit.save` (traced, scripted) write it."""
    batch = {0: torch.export.Dim("batch")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == "exported":
            torch.export.save(torch.export.export(net, (torch.rand(1, channels, 16, 16),)), path)
        elif way == "exported for any batch":
            pictures = (torch.rand(2, channels, 16, 16),)
            torch.export.save(torch.export.export(net, pictures, dynamic_shapes=(batch,)), path)
        elif way == "traced":
            torch.jit.trace(net, torch.rand(1, channels, 16, 16)).save(path)
        else:
            torch.jit.script(net).save(path)
    return path


WAYS = ("exported", "exported for any batch", "traced", "scripted")
