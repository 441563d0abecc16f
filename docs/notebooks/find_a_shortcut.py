# %% [markdown]
# # Find a shortcut, prove it, train it away
#
# A classifier that looks at the ruler beside the mole has not learnt what a mole is. Here we plant such a
# shortcut ourselves, so that we know what there is to find: every 8 of the training pictures has a small
# bright frame somewhere. Fours and nines have none.

# %%
from dataclasses import replace

import torch

import torchsite as ts

EPOCHS = 10
SIDE = 6


def three(split):
    """The fours, eights and nines of the embedded digits, faint and in noise."""
    digits = ts.load_dataset("mnist_sample", split)
    labels = torch.full((10,), -1)
    labels[torch.tensor([4, 8, 9])] = torch.arange(3)
    kept = labels[digits.labels] >= 0
    images = digits.images[kept]
    noise = torch.randint(120, images.shape, generator=torch.Generator().manual_seed(0))
    images = (images * 0.5 + noise).byte()
    return replace(digits, images=images, labels=labels[digits.labels[kept]], classes=("4", "8", "9"))


def with_frames(data, label=1, seed=0):
    """The data with a frame in every picture of a class, and where the frames are."""
    rng = torch.Generator().manual_seed(seed)
    images, places = data.images.clone(), torch.zeros(len(data), *data.size, dtype=torch.bool)
    for row in (data.labels == label).nonzero()[:, 0].tolist():
        top, left = torch.randint(0, data.size[0] - SIDE, (2,), generator=rng).tolist()
        images[row, 0, top : top + SIDE, left : left + SIDE] = 255
        images[row, 0, top + 2 : top + SIDE - 2, left + 2 : left + SIDE - 2] = 0
        places[row, top : top + SIDE, left : left + SIDE] = True
    return replace(data, images=images), places


clean, test = three("train")[:450], three("test")
train, frames = with_frames(clean)
shown, _ = with_frames(test, seed=1)
print(len(train), "pictures to train on,", len(test), "to test with")


# %% [markdown]
# We train a small model. On pictures like those it was trained on it is right; on clean ones, and where the
# frame stands in another digit, the truth comes out.


# %%
def trained(data, folder, *terms):
    """A small model of these pictures."""
    torch.manual_seed(0)  # new weights are drawn at random
    options = {"depth": 8, "widths": [8, 8, 16], "common": 8}
    model = ts.SITE(
        "pyramid",
        "lateral",
        3,
        classes=data.classes,
        image_shape=(1, 28, 28),
        zero_sum=True,
        extractor_options=options,
        generator_options={"widths": [8, 8], "code": 8, "trunk": [8, 8]},
    )
    settings = ts.TrainingConfig(
        epochs=EPOCHS,
        batch_size=32,
        views=["upright"],
        terms=terms,
        learning_rate=0.01,
        validate_every=EPOCHS,
    )
    return ts.fit(model, data, settings, validation=test, folder=folder).model


def right(model, data):
    """The share of pictures whose class is named."""
    said = model((data.images / 255).float()).argmax(1)
    return f"{(said == data.labels).float().mean():.0%}"


fours, eights = test[test.labels == 0], test[test.labels == 1]
framed, _ = with_frames(fours, label=0)
model = trained(train, "runs/relies")
print("eights with a frame:", right(model, shown[shown.labels == 1]))
print("eights without:     ", right(model, eights))
print("fours:              ", right(model, fours))
print("fours with a frame: ", right(model, framed))

# %% [markdown]
# Who does not know of the frame sees only the accuracy on pictures that have it. The audit looks at what the
# evidence stands on, and tries it: it pastes groups of like pieces into pictures of other classes.

# %%
audit = ts.audit(model, shown, n_probed=100)
print("\n".join(audit.verdicts))

# %%
from torchsite.report.audit import audit_figures

audit_figures(audit)["groups"]

# %% [markdown]
# The group is found again in the training pictures by the features that it was grouped by. It covers most of
# the frames that we planted, of which the audit was told nothing.

# %%
group = audit.found[0]
regions = audit.regions_in(train, group["number"])
of_eights = train.labels == 1
covered, area = (regions & frames).sum() / frames.sum(), regions[of_eights].float().mean()
print(f"{covered:.0%} of the frames is covered, by regions of {area:.0%} of the area")

# %% [markdown]
# Now the same training, which is told to ignore these regions: no picture is shown with its own, what stood
# there is pasted into pictures of any class, and the term asks for no evidence inside. On the command line:
# `torchsite train photos --ignore-group audit.json:3`, or `--ignore boxes.json` for regions of your own.

# %%
from torchsite.objective import IgnoredRegions

cured = trained(replace(train, regions=regions), "runs/ignores", IgnoredRegions())
print("eights without a frame:", right(cured, eights))
print("fours with a frame:    ", right(cured, framed))
print("\n".join(ts.audit(cured, shown, n_probed=100).verdicts))

# %% [markdown]
# [Shortcuts](../shortcuts.md) tells how the audit decides, what it cannot find, and what it found where we
# planted tags, watermarks and borders in photographs.
