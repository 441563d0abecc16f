# %% [markdown]
# # Train on your folder
#
# All that is needed is a folder with one sub-folder of pictures per class. To have one, we write some of
# the embedded digits to files; put your own pictures in their place.

# %%
from pathlib import Path

import torch
from PIL import Image

import torchsite as ts

PER_CLASS = 80
digits = ts.load_dataset("mnist_sample")
for label in (3, 5, 7):
    folder = Path("photos", digits.classes[label])
    folder.mkdir(parents=True)
    for number, image in enumerate(digits.images[digits.labels == label][:PER_CLASS]):
        Image.fromarray(image[0].numpy()).save(folder / f"{number}.png")

sorted(str(path) for path in Path("photos").iterdir())

# %% [markdown]
# `torchsite train photos --minutes 30` looks at the folder, warns of what harms, chooses the settings,
# trains, and writes a report. Here are the same steps in Python, with few epochs so that this page is built
# in seconds. Without `train/` and `test/` in the folder, a seed splits every class: four fifths to train
# on.

# %%
train, test = (ts.load_dataset("photos", split, size=28) for split in ("train", "test"))
print(len(train), "pictures to train on,", len(test), "to test with; classes", train.classes)

# %%
# Pixels themselves are good features of small drawings; for photographs take "pyramid".
shape = tuple(train.images.shape[1:])
torch.manual_seed(0)  # new weights are drawn at random
model = ts.SITE("identity", "lateral", len(train.classes), classes=train.classes, image_shape=shape)
settings = ts.TrainingConfig(epochs=12, batch_size=24, validate_every=4)
run = ts.fit(model, train, settings, validation=test, folder="runs/photos")
upright, posed = run.measures["accuracy"], run.measures["posed accuracy"]
print(f"trained in {run.seconds:.0f} s; accuracy upright {upright:.2f}, posed {posed:.2f}")

# %% [markdown]
# `raw` is how alike the explanation of the moved picture and the moved explanation are, `floor` what two
# explanations of *different* pictures get: only what is above the floor says anything.
#
# With pixels as features that is no feat: the picture itself follows itself, and scores as high without any
# training ([compare explainers honestly](compare_explainers_honestly.py)). Read it beside other measures.

# %%
print({name: round(value, 2) for name, value in run.measures.items()})

# %%
images = test.images[:: len(test) // 3][:3].float() / 255
explanation = model.explain(images)
explanation.plot(0, n_classes=3)

# %% [markdown]
# The run's folder holds the weights with a model card (`model/`), the log, and the figures (`result.json`).
# The model can be loaded again, explained on the command line, served as a page, or exported.

# %%
again = ts.SITE.from_pretrained("runs/photos/model")
print((again.explain(images).logits == explanation.logits).all().item(), "- the same answers, bit for bit")

# %% [markdown]
# `torchsite report runs/photos/model photos` writes one HTML file with accuracy, confusion, calibration,
# consistency and the worst mistakes; in Python it takes [three more
# lines](../examples.md#train-on-a-folder).
