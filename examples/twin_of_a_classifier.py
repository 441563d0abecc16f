"""A small network, trained by plain PyTorch, becomes the front of a twin that explains itself."""

from torch import nn, optim, randint

import torchsite as ts

digits, config = ts.load_dataset("mnist_sample"), ts.TrainingConfig(epochs=8)
layers = (nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU())
net = nn.Sequential(nn.Sequential(*layers), nn.Flatten(), nn.Linear(3136, 10))
optimiser = optim.AdamW(net.parameters(), lr=3e-3)
for rows in randint(len(digits), (200, 50)):
    nn.functional.cross_entropy(net(digits.images[rows] / 255), digits.labels[rows]).backward()
    optimiser.step()
    optimiser.zero_grad()
print(ts.fit(ts.SITE.from_classifier(net, (1, 28, 28)), digits, config, folder="runs/twin").measures)
