"""What a training is told to ignore: regions of its pictures from a file, or a group that an audit has found.

    boxes.json, masks/     regions (`data/regions.py`)
    audit.json:3           where group 3 of that audit stands in the pictures of the training

The audit may have been of other pictures: its model explains those of the training anew.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from torchsite.data import Dataset
from torchsite.data.regions import read_regions
from torchsite.errors import ConfigError, DataError, TorchsiteError
from torchsite.evaluation.audit import explainer_of, regions_of_group
from torchsite.evaluation.audit_files import read_audit
from torchsite.evaluation.examine import check_data
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import load_classifier
from torchsite.shapes import Masks


def with_regions(data: Dataset, sources: Sequence[str], beside: Dataset | None = None) -> Dataset:
    """The data with all these regions; those of pictures in `beside` are passed over."""
    if not sources:
        return data
    found = [_regions(source, data, beside) for source in sources]
    return replace(data, regions=torch.stack(found).any(0))


def _regions(source: str, data: Dataset, beside: Dataset | None) -> Masks:
    path, _, number = source.rpartition(":")
    if Path(source).exists() or not (path and number.isdigit()):
        return read_regions(source, data, beside)
    found = group_in(Path(path), int(number), data)
    if not found.any():
        raise DataError(f"{source}: nothing in {data.title} looks like that group")
    return found


def group_in(path: Path, number: int, data: Dataset) -> Masks:
    """Where a group of the audit in a file stands in the pictures."""
    result = read_audit(path)
    name = result.config["opened"]
    try:
        model = load_classifier(name)
    except TorchsiteError as error:
        raise ConfigError(
            f"{path} is of the model {name!r}, which is needed to find the group: {error}"
        ) from error
    if weights_of(model) != result.config["weights"]["model"]:
        raise ConfigError(f"{path} is of other weights than {name!r} has now: audit it again")
    check_data(model, data)
    method = result.config["method"]
    explainer, _ = explainer_of(model, None if method == "self_explanation" else method)
    return regions_of_group(explainer, result, data, number)
