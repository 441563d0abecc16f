"""A Captum object in our metrics: does its explanation move with the picture?"""

from captum.attr import InputXGradient

import torchsite as ts
from torchsite.randomness import make_rng

model = ts.load("mnist_black_box")
digits = ts.load_dataset("mnist_sample", "test")[:64]

method, images = InputXGradient(model), digits.images.float() / 255
result = ts.metrics.self_consistency(method, images, digits.labels, rng=make_rng(0))
print(f"raw {result.raw}, floor {result.floor}, calibrated {result.calibrated}")
