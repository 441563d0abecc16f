"""Your own feature extractor: any module that maps pictures to (batch, depth, rows, cols)."""

from torch import nn

import torchsite as ts

extractor = nn.Sequential(nn.Conv2d(1, 32, 5, 2, 2), nn.BatchNorm2d(32), nn.GELU(), nn.Conv2d(32, 8, 3, 1, 1))
model = ts.SITE(extractor, n_classes=10, image_shape=(1, 28, 28))
run = ts.fit(model, ts.load_dataset("mnist_sample"), ts.TrainingConfig(epochs=5), folder="runs/own")

print(run.measures)
again = ts.SITE.from_pretrained("runs/own/model", feature_extractor=extractor)
