"""Compare methods of explanation on your own model: any module that maps pictures to logits."""

from torch import nn

import torchsite as ts
from torchsite.report.comparison import to_markdown

features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU())
model = nn.Sequential(features, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))  # yours, trained

methods, metrics = ["gradient", "grad_cam", "rise", "random"], ["self_consistency", "deletion"]
comparison = ts.compare(model, data="mnist_sample", methods=methods, metrics=metrics, limit=100)
print(to_markdown(comparison))
