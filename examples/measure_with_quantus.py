"""A metric of Quantus on one of our explainers: does the explanation name what the prediction rests on?"""

import quantus

import torchsite as ts
from torchsite.attribution import METHODS
from torchsite.metrics.adapters import quantus_scores

model = ts.load("mnist_black_box")
digits = ts.load_dataset("mnist_sample", "test")[:16]
images = digits.images.float() / 255
metric = quantus.PixelFlipping(features_in_step=56, perturb_baseline="black", disable_warnings=True)
scores = quantus_scores(metric, METHODS["gradient"](model), images, digits.labels)
print(f"the logit of the first digit while ever more pixels are blanked: {scores[0]}")
