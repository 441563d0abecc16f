"""The served models, their explainers and their sample pictures."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from torchsite.attribution import METHODS, Attribution
from torchsite.data import Dataset
from torchsite.errors import ConfigError, NotApplicableError, did_you_mean
from torchsite.evaluation.methods import applies
from torchsite.model import SITE, BlackBox, load_classifier, shipped_models
from torchsite.model.config import ModelConfig
from torchsite.web.groups import groups_of
from torchsite.web.problems import ProblemError
from torchsite.web.samples import Samples, samples_for
from torchsite.web.schemas import GalleryOut, GroupOut, MethodOut, ModelOut

OWN = "self_explanation"
N_PARTNERS, N_PARTNERS_SLOW = 8, 2  # pictures that the floor is a mean over


@dataclass(eq=False)
class Served:
    """One model; explainers, and explanations of its samples, are made when first needed."""

    name: str
    model: SITE | BlackBox
    samples: Samples
    groups: Sequence[GroupOut] = ()
    _explainers: dict[str, Attribution] = field(default_factory=dict)
    _partners: dict[str, Tensor] = field(default_factory=dict)

    @property
    def config(self) -> ModelConfig:
        """The configuration of the model."""
        return self.model.config

    @property
    def default_method(self) -> str:
        """Its own explanation if it has one, else Grad-CAM."""
        return OWN if isinstance(self.model, SITE) else "grad_cam"

    def methods(self) -> list[str]:
        """The methods that may apply; some raise `NotApplicableError` when called."""
        return [name for name in METHODS if applies(name, self.model)]

    def explainer(self, method: str) -> Attribution:
        """The named method on this model, with the budget of a server."""
        if method not in self._explainers:
            self._explainers[method] = METHODS[method](self.model, **METHODS[method].budget)
        return self._explainers[method]

    def partners(self, method: str) -> tuple[Tensor, Tensor]:
        """Other pictures x′ and their explanations I(x′), each of its own predicted class: for the floor."""
        images = self.samples.images[: N_PARTNERS_SLOW if METHODS[method].is_slow() else N_PARTNERS]
        if method not in self._partners:
            with torch.no_grad():
                classes = self.model(images).argmax(1)
            self._partners[method] = self.explainer(method)(images, classes)
        return images, self._partners[method]

    def class_index(self, choice: int | str) -> int:
        """The index of a class by name or number; fails with 422."""
        names = self.config.classes
        if isinstance(choice, str) and choice in names:
            return names.index(choice)
        if str(choice).isdecimal() and int(choice) < len(names):
            return int(choice)
        raise ProblemError(422, "no_such_class", f"no class {choice!r}: {did_you_mean(str(choice), names)}")


@dataclass(frozen=True, eq=False)
class Library:
    """All served models by name."""

    models: Mapping[str, Served]

    @classmethod
    def open(
        cls, folders: Sequence[Path] = (), datasets: Sequence[Dataset] = (), audits: Sequence[Path] = ()
    ) -> "Library":
        """The shipped models and those in the given folders, which are named after their folder."""
        places = dict(shipped_models())
        for folder in folders:
            names = (
                f"{name_of(folder)}-{n}" if n > 1 else name_of(folder) for n in range(1, len(places) + 2)
            )
            places[next(name for name in names if name not in places)] = folder
        served = [_served(name, folder, datasets) for name, folder in places.items()]
        for one, groups in zip(served, groups_of([one.model for one in served], audits), strict=True):
            one.groups = groups
        return cls({one.name: one for one in served})

    def __getitem__(self, name: str) -> Served:
        if name not in self.models:
            raise ProblemError(404, "no_such_model", f"no model {name!r}: {did_you_mean(name, self.models)}")
        return self.models[name]

    def copy(self) -> "Library":
        """The same models for another thread: methods hang hooks on a model while they work."""
        copies = (Served(old.name, deepcopy(old.model), old.samples) for old in self.models.values())
        return Library({served.name: served for served in copies})

    def companions(self, served: Served) -> list[str]:
        """Other models of the same pictures and classes."""
        shape, classes = served.config.image_shape, served.config.classes
        others = {name: other.config for name, other in self.models.items() if other is not served}
        return [name for name, of in others.items() if of.image_shape == shape and of.classes == classes]

    def explainer_named(self, text: str, asked: Served) -> tuple[str, str]:
        """Method and model of `METHOD` or `METHOD@MODEL`."""
        method, _, name = text.partition("@")
        if method not in METHODS:
            known = did_you_mean(method, METHODS)
            raise ProblemError(422, "no_such_method", f"no method {method!r}: {known}")
        models = [asked.name, *self.companions(asked)]
        model = name or asked.name
        if model not in models:
            reason = f"{text}: expected a model of the same pictures and classes"
            raise ProblemError(422, "no_such_model", f"{reason}: {did_you_mean(model, models)}")
        if method not in self[model].methods():
            raise NotApplicableError(
                f"{model!r} is a black box, it has no explanation of its own: ask for another method"
            )
        return method, model

    def describe(self, served: Served) -> ModelOut:
        """The description of a model for the page."""
        model, config = served.model, served.config
        return ModelOut(
            name=served.name,
            kind="site" if isinstance(model, SITE) else "black_box",
            image_shape=list(config.image_shape),
            margin=config.margin,
            classes=list(config.classes),
            feature_shape=list(model.feature_shape),
            pixels=model.pixels_are_features,
            gallery=_gallery(model),
            max_rotation=config.family.max_rotation,
            max_shift=config.family.max_shift,
            methods=[
                MethodOut(name=name, live=not METHODS[name].is_slow(), options=dict(METHODS[name].budget))
                for name in served.methods()
            ],
            companions=self.companions(served),
            groups=list(served.groups),
            draw=tuple(config.image_shape) == (1, 28, 28),
        )


def name_of(folder: Path) -> str:
    """The folder's name; training writes RUN/model, which is called RUN."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == "model" else whole.name


def _gallery(model: SITE | BlackBox) -> GalleryOut | None:
    found = model.gallery if isinstance(model, SITE) else None
    if found is None:
        return None
    return GalleryOut(source=found.source, drawn=found.drawn, n_exemplars=len(found))


def _served(name: str, folder: Path, datasets: Sequence[Dataset]) -> Served:
    model = load_classifier(folder)
    channels = model.config.image_shape[0]
    if channels not in (1, 3):
        raise ConfigError(f"{folder}: the page shows pictures of one or three channels, not of {channels}")
    return Served(name, model, samples_for(model.config, datasets))
