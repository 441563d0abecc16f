# %% [markdown]
# # Compare explainers honestly
#
# Explanations are easy to compare and easy to compare wrongly. A smooth map scores high on almost anything
# that compares maps, whether or not it knows something of the model. So every measure here comes with a
# *null*: what a map without knowledge gets on the same pictures.

# %%
import torchsite as ts

METRICS = ["self_consistency", "patch_deletion"]
digits = ts.load_dataset("mnist_sample", "test")[:24]


def show(comparison):
    """Each score beside its null."""
    print(f"{'':22}consistency: raw  floor  calibrated    patch deletion  floor")
    for method in comparison.methods:
        consistency, patches = (comparison.cell(method, metric) for metric in METRICS)
        raw, floor, calibrated = (
            consistency.score(f"{name}.value") for name in ("raw", "floor", "calibrated")
        )
        score, null = (patches.score(f"{name}.value") for name in ("correlation", "floor"))
        print(f"{method:26}{raw:12.2f} {floor:6.2f} {calibrated:11.2f} {score:17.2f} {null:6.2f}")


black_box = ts.BlackBox.from_pretrained("mnist_black_box")
methods = ["grad_cam", "gradient", "random"]
show(ts.compare(black_box, data=digits, methods=methods, metrics=METRICS, n_transforms=1))

# %% [markdown]
# Look at the row of the random map. Its *raw* self-consistency is far from zero: it is a smooth map, and
# smooth maps are alike. *Calibrated* takes away what maps of different pictures have in common, and there
# it gets nothing.
#
# Patch deletion asks another question: does the map say of a patch what hiding the patch does? Its `floor`
# is the score of another picture's map.
#
# Now the model that explains itself, on the same pictures in the same poses:

# %%
site = ts.SITE.from_pretrained("mnist")
show(ts.compare(site, data=digits, methods=["self_explanation", "random"], metrics=METRICS, n_transforms=1))

# %% [markdown]
# ## Maps that know nothing
#
# Six makers of maps never ask a model. A measure that ranks one of them high does not measure what it says.

# %%
from torchsite.metrics import CONTROL_MAPS

show(ts.compare(site, data=digits, methods=CONTROL_MAPS, metrics=METRICS, n_transforms=1))

# %% [markdown]
# On digits, the picture itself (or its edges) is a perfectly consistent "explanation" that also finds the
# ink, and hiding ink is what changes the answer. So on MNIST these two measures do not tell an explanation
# from a copy of the picture: read several, on pictures with a background too ([results](../results.md)),
# and keep the nulls beside them. Twenty-four digits are enough to show how it is done, not to rank methods:
# intervals stand in every cell (`cell.score("raw.low")`).
