"""What an examination found, in sentences and key figures."""

from collections.abc import Mapping
from typing import Any

from torchsite.report.charts import classes, comparison_of, words
from torchsite.report.format import look_up, number, percent, percent_interval
from torchsite.results import Result
from torchsite.transforms import TransformFamily

NO_INFORMATION = ("random", "self_explanation")


def key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Name, value and a note for each figure that people ask for first."""
    values = result.values
    if "labels" in values:
        return [*_label_figures(values), *_map_figures(values)]
    upright, posed = (values["accuracy"][pose] for pose in ("untransformed", "transformed"))
    errors = {pose: found["calibration"]["error"] for pose, found in values["answers"].items()}
    found = [
        ("accuracy, as they are", percent(upright), percent_interval(upright)),
        ("accuracy, in poses", percent(posed), percent_interval(posed)),
    ]
    if "twin" in values:
        twin = values["twin"]
        note = f"which is right on {percent(twin['classifier'])}"
        found.append(("agreement with its network", percent(twin["agreement"]), note))
    found += _map_figures(values)
    note = f"in poses {number(errors['transformed'], 3)}"
    found.append(("calibration error", number(errors["untransformed"], 3), note))
    if "completeness" in values:
        worst = values["completeness"]["worst"]
        found.append(("completeness error", f"{worst:.0e}", "largest |Σ heatmap - logit|"))
    return found


def _map_figures(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Whether maps follow the picture and say what hiding does, as far as it was measured."""

    def three(*path: str) -> str:
        return number(look_up(values, *path, "value"), 3)

    found = []
    if "self_consistency" in values:
        note = f"raw {three('self_consistency', 'raw')}, floor {three('self_consistency', 'floor')}"
        found.append(("self-consistency, calibrated", three("self_consistency", "calibrated"), note))
    if "frame_control" in values:
        note = (
            f"of grey pictures: {values['frame_control']['evidence']['ratio']['value']:.0%} of the evidence"
        )
        found.append(("the same, corners filled", three("frame_control", "filled", "calibrated"), note))
    if "patch_deletion" in values:
        note = f"rank correlation; maps of other pictures {three('patch_deletion', 'floor')}"
        found.append(("patch deletion", three("patch_deletion", "correlation"), note))
    return found


def _label_figures(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    right, mean, posed = values["right_answers"], values["mean"], values["posed"]["mean"]
    titles = {"auroc": "AUROC, mean", "average_precision": "average precision, mean"}
    return [
        ("right answers", percent(right), percent_interval(right)),
        *(
            (title, number(mean[name], 3), f"in poses {number(posed[name], 3)}")
            for name, title in titles.items()
        ),
    ]


def findings(result: Result) -> list[str]:
    """The same in sentences, with the weakest class or label and the best post-hoc method."""
    values = result.values
    if "labels" in values:
        return _label_findings(result)
    sentences = [
        f"It names {percent(values['accuracy']['untransformed'])} of the pictures correctly as they are, "
        f"and {percent(values['accuracy']['transformed'])} in random poses ({family(result)})."
    ]
    sentences += _folds(values) + _twin(values) + _consistency(values) + _compared(result) + _weakest(result)
    return sentences


def _folds(values: Mapping[str, Any]) -> list[str]:
    """The cross-validated accuracy."""
    if "folds" not in values:
        return []
    found = values["folds"]["site"]
    share, n = found["accuracy"], len(found["per_fold"])
    said = [
        f"{n} models, each trained without one of {n} folds, name {percent(share)} of all {found['n']:,} "
        f"pictures that they had not seen ({percent_interval(share)})."
    ]
    return [*said, f"{values['folds']['difference']}."] if "difference" in values["folds"] else said


def _twin(values: Mapping[str, Any]) -> list[str]:
    """The comparison of a twin with its network."""
    if "twin" not in values:
        return []
    found = values["twin"]
    return [
        f"It is the twin of a network that was trained elsewhere, which names "
        f"{percent(found['classifier'])} of {found['n']:,} test pictures correctly, the twin "
        f"{percent(found['twin'])}; they give the same answer to {percent(found['agreement'])} "
        f"({percent_interval(found['agreement'])}). Only the network is right on "
        f"{found['only_classifier_right']}, only the twin on {found['only_twin_right']}."
    ]


def family(result: Result) -> TransformFamily:
    """The poses in which the model was examined."""
    return TransformFamily.from_mapping(result.config["family"])


def _consistency(values: Mapping[str, Any]) -> list[str]:
    if "self_consistency" not in values:
        return ["It is a black box: what explains it below was computed afterwards, by other procedures."]
    scores = values["self_consistency"]
    return [
        f"When the picture moves, its explanation moves along: the cosine of the two is "
        f"{scores['raw']['value']:.3f}, where explanations of different pictures get "
        f"{scores['floor']['value']:.3f}; that is {scores['calibrated']['value']:.0%} of the way to perfect."
    ]


def _compared(result: Result) -> list[str]:
    if "comparison" not in result.values:
        return []
    cells = comparison_of(result).cells
    scores = {
        cell.method: cell.values["calibrated"]["value"]
        for cell in cells
        if cell.metric == "self_consistency" and cell.values is not None and cell.method not in NO_INFORMATION
    }
    scores = {name: score for name, score in scores.items() if score is not None}
    if not scores:
        return []
    best = max(scores, key=lambda name: scores[name])
    return [
        f"The most consistent post-hoc method here is {words(best)}, with {scores[best]:.0%} of that way."
    ]


def _weakest(result: Result) -> list[str]:
    names, found = classes(result), result.values["answers"]["untransformed"]
    confused = [
        (n, names[i], names[j])
        for i, row in enumerate(found["confusion"])
        for j, n in enumerate(row)
        if i != j and n
    ]
    if not confused:
        return ["Among the pictures as they are it made no mistake."]
    shares = {
        name: entry["accuracy"]["value"]
        for name, entry in zip(names, found["per_class"], strict=True)
        if entry["n"]
    }
    weakest = min(shares, key=lambda name: shares[name])
    n, true, said = max(confused)
    times = "once" if n == 1 else f"{n} times"
    return [
        f"It knows “{weakest}” least well ({shares[weakest]:.1%}); most often it takes “{true}” for "
        f"“{said}” ({times})."
    ]


def _label_findings(result: Result) -> list[str]:
    """The figures of labels in sentences, with the weakest one."""
    values = result.values
    sentences = [
        f"It answers {percent(values['right_answers'])} of all questions correctly; a question is whether a "
        f"picture has a label. Poses are drawn from {family(result)}."
    ]
    known = {name: found["auroc"] for name, found in values["labels"].items() if found["auroc"] is not None}
    if known:
        worst = min(known, key=lambda name: known[name])
        sentences.append(f"Its weakest label is {worst}: AUROC {known[worst]:.3f}; 0.5 is a guess.")
    unknown = [name for name in values["labels"] if name not in known]
    if unknown:
        sentences.append(f"Not measured, since true of all or of no test picture: {', '.join(unknown)}.")
    return sentences
