"""Explain a picture: the prediction, and heatmaps that sum to it."""

import torchsite as ts

model = ts.load("mnist")
digits = ts.load_dataset("mnist_sample", "test")
explanation = model.explain(digits.images[:1].float() / 255)

print("seen as", model.classes[explanation.predicted[0]])
print("logits", explanation.logits, "are the sums", explanation.heatmaps().sum((-2, -1)))
print("why 0 and not 6:", explanation.contrast("0", "6").sum())
explanation.plot(0).savefig("why.png")
