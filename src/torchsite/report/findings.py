"""What an examination found, in sentences and key figures."""

from collections.abc import Mapping
from typing import Any

from torchsite.report.charts import classes, comparison_of, words
from torchsite.report.format import look_up, number, percent, percent_interval
from torchsite.results import Result
from torchsite.transforms import TransformFamily

NO_INFORMATION = ("random", "self_explanation")
MAP_SCORES = (
    ("self_consistency", "raw", "when the picture moves, the map moves along: the cosine of the two is"),
    (
        "patch_deletion",
        "correlation",
        "the map predicts what hiding a patch does: the rank correlation is",
    ),
)
GOOD, FAIR = 0.8, 0.5  # of the way from no knowledge of the picture to perfect


def key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Name, value and a note for each of the main figures."""
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
    """Whether maps follow the picture and agree with hiding patches, as far as it was measured."""

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
    said = verdicts(result)
    if "self_consistency" not in values:
        said.append("It is a black box: what explains it below was computed afterwards, by other methods.")
    return [*said, *_folds(values), *_twin(values), *_compared(result), *_weakest(result)]


def verdicts(result: Result) -> list[str]:
    """A sentence for each of the main scores: good, fair or bad, and compared with what."""
    values, counts = result.values, result.values["data"]["examined"]["counts"]
    guess = {"value": max(counts) / sum(counts)}
    said = []
    for pose, where in (("untransformed", "as they are"), ("transformed", f"posed ({family(result)})")):
        found = values["accuracy"][pose]
        text = f"it names {percent(found)} of the pictures {where} correctly"
        said.append(f"{_verdict(found, guess)}: {text}; always naming one class gets {percent(guess)}.")
    for measure, score, text in MAP_SCORES:
        if measure in values:
            found, floor = values[measure][score], values[measure]["floor"]
            gets = f"the map of another picture gets {number(floor['value'], 2)}, and 1 is perfect"
            said.append(f"{_verdict(found, floor)}: {text} {number(found['value'], 2)}; {gets}.")
    return said


def _verdict(found: Mapping[str, Any], null: Mapping[str, Any]) -> str:
    """How far a score is on the way from one that needs no knowledge of the picture to 1."""
    if found["value"] is None or null["value"] is None:
        return "Not measured"
    way = (found["value"] - null["value"]) / max(1 - null["value"], 1e-9)
    return "Good" if way >= GOOD else "Fair" if way >= FAIR else "Bad"


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
        f"The post-hoc method whose maps follow best is {words(best)}: {scores[best]:.0%} of the way from "
        "the map of another picture to a perfect one."
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
