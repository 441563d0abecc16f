# %% [markdown]
# # Explain a picture
#
# The model comes with the package, and so do a few thousand digits. Nothing is downloaded.

# %%
import torchsite as ts

model = ts.SITE.from_pretrained("mnist")
digits = ts.load_dataset("mnist_sample", "test")
images = digits.images[:4].float() / 255
explanation = model.explain(images)
[model.classes[label] for label in explanation.predicted]

# %% [markdown]
# For each class the model draws a *prototype*: what that class would look like here. Prototype times
# picture, pixel by pixel, is the evidence for the class: red speaks for it, blue against it. Its sum is the
# score of the class.

# %%
explanation.plot(0, n_classes=4)

# %% [markdown]
# That the sums are the scores is not an approximation. The largest difference, over all classes of the four
# pictures:

# %%
sums = explanation.heatmaps().sum((-2, -1))
print(f"{(sums - explanation.logits).abs().max():.1e} of logits up to {explanation.logits.abs().max():.0f}")

# %% [markdown]
# ## Why this and not that?
#
# The evidence for one class minus the evidence for another: which pixels made the difference. Here the
# predicted class against the runner-up of the third picture.

# %%
from torchsite.model.drawing import draw_why

draw_why(explanation, explanation.predicted, explanation.runner_up(), index=2)

# %% [markdown]
# ## Does it follow when the picture turns?
#
# A transform is a value. It moves pictures and heatmaps alike, so the explanation of the turned picture can
# be compared with the turned explanation.

# %%
import torch

from torchsite.transforms import AffineTransform

turn = AffineTransform.rotation(torch.full((4,), 60.0))
classes = explanation.predicted
carried = turn(explanation.heatmaps(classes=classes).unsqueeze(1)).squeeze(1)
renewed = model.explain(turn(images)).heatmaps(classes=classes)

for picture in range(4):
    alike = torch.cosine_similarity(carried[picture].flatten(), renewed[picture].flatten(), dim=0)
    other = torch.cosine_similarity(carried[picture].flatten(), renewed[picture - 1].flatten(), dim=0)
    print(f"picture {picture}: cosine {alike:.3f}; with the map of another picture {other:.3f}")

# %%
from torchsite.model.drawing import draw_tiles, heatmap_tile, picture_tile

rows = [
    [
        (picture_tile(images[i]), "x"),
        (picture_tile(turn(images)[i]), "turned, T x"),
        (heatmap_tile(carried[i]), "its map, turned"),
        (heatmap_tile(renewed[i]), "its map, anew"),
    ]
    for i in range(2)
]
draw_tiles(rows, tile=1.4)
