"""The words of a model's report: what each chapter is about and what each figure shows."""

from collections.abc import Mapping

from torchsite.results import Result

SECTIONS: Mapping[str, tuple[str, str]] = {
    "data": ("Data", "What it was trained and examined on."),
    "training": ("Training", "Step by step, as the run logged it."),
    "accuracy": (
        "Accuracy and confusion",
        "How often it is right, class by class, and what it takes for what.",
    ),
    "calibration": ("Calibration", "Whether it is as often right as it is sure."),
    "consistency": (
        "Does the explanation follow the picture?",
        "Turn and shift a picture: good reasons turn and shift along. A map that knows nothing of the "
        "picture can score high as well, so every figure stands beside its floor.",
    ),
    "classes": (
        "What it looks for",
        "For each picture the model draws what every class would look like here; the prediction is nothing "
        "but how well each of them agrees with what it sees, summed up.",
    ),
    "methods": (
        "Beside post-hoc methods",
        "The same model explained by procedures that look at it from outside. Deletion: how far the "
        "probability falls as the most important pixels are blanked (lower is better), beside the same in a "
        "random order. Random maps show what no information gets.",
    ),
    "mistakes": ("Where it goes wrong", "Its most confident errors, and why."),
}

CAPTIONS: Mapping[str, str] = {
    "counts": "Pictures of each class.",
    "samples": "The first pictures of each class.",
    "training": "What training minimised, and what it reached on pictures that it did not train on.",
    "per_class": "Accuracy of each class with its 95 % interval (Wilson).",
    "confusion": "Pictures as they are: rows are true classes, columns predicted ones. The colour is the "
    "square root of the share of the row, so that rare confusions show.",
    "confusion_posed": "The same for pictures in random poses.",
    "calibration": "Left: accuracy against confidence; on the dotted line the model is as often right as it "
    "claims; larger points stand for more pictures. Right: how many pictures have which confidence.",
    "consistency": "Raw is the cosine of the explanation carried along, T(I x), and the explanation anew, "
    "I(T x). The floor is the same between different pictures; calibrated is the way from the floor to 1; "
    "centred is Pearson's correlation. Bands are 95 % intervals.",
    "turning": "One picture, turned. Where the two rows of a method agree, its explanation follows.",
    "moving": "One picture of each class, drawn at random among those recognised, and its first random pose. "
    "The number is the cosine of T(I x) and I(T x).",
    "classes": "Above, what each class would look like here (its prototype); below, its evidence: prototype "
    "times features, whose sum, the number, is the logit. Red speaks for the class, blue against it.",
    "methods": "Self-consistency of each method against the angle; bands are 95 % intervals.",
    "comparison": "Each method's figures with 95 % intervals.",
    "mistakes": "The most confident errors on pictures as they are.",
    "mistakes_posed": "The most confident errors on pictures in random poses.",
}

PIXELS_NOTE = (
    "The features of this model are the pixels themselves, where Grad-CAM would read the picture; it reads "
    "the last hidden layer of the encoder instead."
)

NEAREST_NOTE = (
    "Learned features have no colours: in the place of a prototype stands the training picture that it fits "
    "best, moved to where it fits best. Its angle is its own and says nothing."
)

WHY_NOTE = (
    "In the last map red speaks for the true class, blue for the one that was said; its sum is the "
    "difference of the two logits."
)


def caption(name: str, result: Result) -> str:
    """What a figure shows; mistakes have reasons only where the model gives them."""
    model = result.config["model"]
    if name == "classes" and model["feature_extractor"] != "identity":
        return f"{CAPTIONS[name]} {NEAREST_NOTE}"
    reasons = name.startswith("mistakes") and model["kind"] == "site"
    return f"{CAPTIONS[name]} {WHY_NOTE}" if reasons else CAPTIONS[name]


def methods_note(result: Result) -> str:
    """How many pictures the methods were compared on, and a caution where it is due."""
    counted = f"Compared on {result.config['n_compared']:,} of the pictures."
    model = result.config["model"]
    pixels = model["kind"] == "site" and model["feature_extractor"] == "identity"
    return f"{counted} {PIXELS_NOTE}" if pixels else counted
