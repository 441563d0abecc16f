"""Small models to serve: a SITE and a black box of digits, and a SITE of colour pictures."""

import io

import numpy as np
import torch
from PIL import Image

from torchsite.model import SITE, BlackBox
from torchsite.model.gallery import Gallery, as_keys
from torchsite.randomness import make_rng
from torchsite.transforms.affine import AffineTransform
from torchsite.web.engine import Job
from torchsite.web.library import OWN, Library, Served
from torchsite.web.samples import samples_for

TINY = {"widths": [4, 4, 4], "code": 8, "trunk": [4, 4, 4]}
FRONT = {"widths": [4, 6]}


def seeded(build):
    """A model with the same weights at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return build().eval()


def digits():
    return seeded(lambda: SITE("identity", "lateral", 10, image_shape=(1, 28, 28), generator_options=TINY))


def black_box():
    small = {"widths": [4, 4, 4], "code": 8}
    return seeded(lambda: BlackBox("identity", 10, image_shape=(1, 28, 28), encoder_options=small))


def colours():
    return seeded(lambda: SITE("identity", "lateral", 3, image_shape=(3, 32, 24), generator_options=TINY))


def library():
    models = {"digits": digits(), "digits_black_box": black_box(), "colours": colours()}
    return Library({name: Served(name, model, samples_for(model.config)) for name, model in models.items()})


def noise_gallery(model, each=3):
    """Exemplars of noise for all classes of a model of learned features."""
    labels = torch.arange(model.config.n_classes).repeat(each)
    pictures = torch.randint(
        256, (len(labels), *model.config.image_shape), dtype=torch.uint8, generator=make_rng(0)
    )
    with torch.no_grad():
        keys = as_keys(model.features(pictures / 255)).half()
    return Gallery(pictures, labels, keys, "noise")


def pose(angle=0.0, right=0.0, down=0.0):
    return AffineTransform.pose(angle, right, down)


def job(picture=None, transform=None, *, model="digits", explainers=((OWN, "digits"),), seed=0, **options):
    drawn = torch.rand(1, 28, 28, generator=make_rng(seed)) if picture is None else picture
    return Job(model, drawn, transform or pose(30, 0.1, -0.1), explainers, **options)


def file(size=(40, 30), mode="RGB", kind="PNG", seed=0):
    """A picture file with noise in it."""
    rng = np.random.default_rng(seed)
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    pixels = rng.integers(0, 256, (size[1], size[0], *channels), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()
