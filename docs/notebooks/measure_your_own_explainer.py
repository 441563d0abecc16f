# %% [markdown]
# # Measure your own explainer
#
# Anything that makes a map can be measured: a function, a Captum object, a class. Here is a method that
# nobody has asked for: the picture, weighted by how much the logit changes when a pixel does, smoothed.

# %%
import torch
import torch.nn.functional as F

import torchsite as ts
from torchsite.metrics import as_explainer
from torchsite.randomness import make_rng


def smooth_ink(model, images, classes):
    """|gradient × picture|, averaged over 3 × 3 pixels."""
    images = images.clone().requires_grad_()
    logits = model(images).gather(1, classes[:, None]).sum()
    (gradient,) = torch.autograd.grad(logits, images)
    return F.avg_pool2d((gradient * images).abs().sum(1, keepdim=True), 3, 1, 1).squeeze(1).detach()


model = ts.BlackBox.from_pretrained("mnist_black_box")
digits = ts.load_dataset("mnist_sample", "test")[:30]
images, labels = digits.images.float() / 255, digits.labels

# %% [markdown]
# ## Does it move with the picture?
#
# `as_explainer` puts the function and the model together; that is all that a measure needs. `raw` is the
# score as papers print it, `floor` what maps of different pictures get, `calibrated` the share of the way
# from the floor to 1.

# %%
explain = as_explainer(smooth_ink, model)
consistency = ts.metrics.self_consistency(explain, images, labels, n_transforms=2, rng=make_rng(0))
print("raw        ", consistency.raw)
print("floor      ", consistency.floor)
print("calibrated ", consistency.calibrated)

# %% [markdown]
# ## Does it say what hiding a patch does?
#
# Measures are objects that take batches, so that a large set fits into memory. Each has its floor.

# %%
from torchsite.metrics import METRICS

patches = METRICS["patch_deletion"](explain, model, n_classes=10)
patches.update(images, labels)
found = patches.result()
print("rank correlation      ", found.correlation)
print("another picture's map ", found.floor)

# %% [markdown]
# ## Beside others
#
# `compare` takes explainers of your own by names of your own; methods of the package can stand beside them.

# %%
from torchsite.attribution import METHODS

explainers = {
    "smooth ink": smooth_ink,
    "Grad-CAM": METHODS["grad_cam"](model),
    "random": METHODS["random"](model),
}
table = ts.compare(
    model, data=digits, methods=explainers, metrics=["self_consistency", "patch_deletion"], n_transforms=2
)
for name in table.methods:
    consistent = table.cell(name, "self_consistency").score("calibrated.value")
    deletion = table.cell(name, "patch_deletion").score("correlation.value")
    print(f"{name:12} calibrated consistency {consistent:5.2f}   patch deletion {deletion:5.2f}")

# %% [markdown]
# To add a method or a measure for good, see [extending](../extending.md).
