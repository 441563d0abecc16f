"""A small ResNet, trained by plain PyTorch, becomes the front of a twin that explains itself."""

from torch import nn, optim, randint

import torchsite as ts
from torchsite.model.extractors import BasicBlock

digits, config = ts.load_dataset("mnist_sample"), ts.TrainingConfig(epochs=8)
net = nn.Sequential(BasicBlock(1, 16, 2), BasicBlock(16, 32, 2), nn.Flatten(), nn.Linear(1568, 10))
optimiser = optim.AdamW(net.parameters(), lr=3e-3)
for rows in randint(len(digits), (200, 50)):
    nn.functional.cross_entropy(net(digits.images[rows] / 255), digits.labels[rows]).backward()
    optimiser.step()
    optimiser.zero_grad()
print(ts.fit(ts.SITE.from_classifier(net, (1, 28, 28)), digits, config, folder="runs/twin").measures)
