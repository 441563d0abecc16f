"""Export a model to ONNX: logits and heatmaps, wherever ONNX Runtime runs."""

import torchsite as ts
from torchsite.model.export import OnnxModel, export_onnx

exported = export_onnx(ts.load("mnist"), "mnist.onnx")
print(exported.path, "differs from the model by at most", exported.max_difference)

digits = ts.load_dataset("mnist_sample", "test")
answers = OnnxModel("mnist.onnx")(digits.images[:4].float() / 255)
print(answers["logits"].argmax(1), answers["heatmaps"].shape)
