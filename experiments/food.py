"""Ten classes of Food-101 at 128 × 128 pixels, on features that know ImageNet.

Claim:    two hundred pictures of a class are few. On a pretrained extractor SITE keeps up with the black box.
Command:  torchsite reproduce food10
Cost:     two trainings, half an hour of one core; less than a minute with --quick, on painted pictures.
"""

from collections.abc import Mapping
from typing import Any

from experiments.models import n_trained_on, train_pair, training_seconds
from experiments.section import Pictures
from experiments.shown import explained, first_right, predictions, sheet_of
from experiments.study import Found, Run, Study
from experiments.tables import CONSISTENCY
from torchsite.data import Dataset
from torchsite.evaluation.evaluate import evaluate
from torchsite.model import SITE, BlackBox
from torchsite.model.blocks import n_parameters
from torchsite.report.format import HEADLINES, markdown_table, score_rows
from torchsite.results import Result

START = "from ImageNet"
WORDS = """{n_train:,} pictures to train on, {n_test:,} to test with. From ImageNet with EfficientNet-Lite \
(`torchsite[pretrained]`). {nothing}The paper's figures, 0.6391 for SITE and 0.6404 for the black box, are \
of all 101 classes and 75,750 pictures. A sheet of explanations is in the folder of the run.\n
"""
# Of the first file alone, which has two models more.
NOTHING = (
    "From nothing with ResNet-18, the paper's extractor, asked for maps that follow and not for true ones. "
)


def find(run: Run) -> Found:
    """Both models trained, or taken from the folder, and measured; a picture of each class explained."""
    pair = train_pair(run.recipe, run.folder, quick=run.quick, progress=run.progress)
    test, seconds = pair.test, {kind: training_seconds(run.folder / kind) for kind, _ in pair}
    models = {
        f"{kind}, {START}": scores(model, test) | {"training seconds": seconds[kind]} for kind, model in pair
    }
    chosen = first_right(predictions(pair.site, test, 50), test, range(len(test.classes)), 1)
    shown, arrays = explained(pair.site, test, chosen)
    config = pair.description() | {"n_train": n_trained_on(run.folder / "site")}
    return Found({"models": models, "pictures": shown}, arrays, config, sum(seconds.values()))


def scores(model: SITE | BlackBox, test: Dataset) -> dict[str, Any]:
    """Accuracy and self-consistency, without what is known of each class."""
    values = dict(evaluate(model, test, batch_size=50).values)
    values["prediction_equivariance"] = {"share": values["prediction_equivariance"]["share"]}
    if "self_consistency" in values:
        values["self_consistency"] = {name: values["self_consistency"][name] for name in CONSISTENCY}
    return values | {"parameters": n_parameters(model)}


def text(result: Result, pictures: Pictures) -> str:
    """Accuracy and self-consistency of SITE and the black box."""
    models: Mapping[str, Any] = result.values["models"]
    config, every = result.config, list(models.values())
    rows = score_rows(HEADLINES, every)
    rows.append(["parameters", *(f"{found['parameters']:,}" for found in every)])
    rows.append(["training, minutes", *(f"{found['training seconds'] / 60:.1f}" for found in every)])
    counts = {name: config[name] for name in ("n_train", "n_test")}
    names = (name.replace("_", " ").replace("site", "SITE") for name in models)
    words = WORDS.format(**counts, nothing=NOTHING if "starts" in config else "")
    return words + markdown_table(["", *names], rows)


STUDY = Study(
    "{}",
    "## Food-101: 10 classes at 128 × 128 pixels",
    find=find,
    text=text,
    show=sheet_of,
)
