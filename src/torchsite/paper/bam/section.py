"""The BAM experiment as a section of the results page, and its two comparison sheets."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.paper.names import method_name, own_first, row_name, spoken
from torchsite.paper.published import figure
from torchsite.paper.text import markdown_table, source
from torchsite.report.format import number
from torchsite.results import Result

POSES = ("untransformed", "transformed")
COLUMNS = 5
HELD_OUT_SHOWN = ("self_explanation", "grad_cam", "guided_backprop", "gradient", "random")

INTRODUCTION = """Fruit and pets ({objects} classes) pasted on {scenes} classes of scenes, {n_train:,}
pictures to train on, {n_test:,} to test with. SITE and the black box are trained twice, by object and by
scene, {minutes} minutes in all with every measure. Of each method, the map of the true class is taken from
the model of that kind; methods that read a layer read the features of the extractor on either model; the
number of pictures depends on the cost. MCS has a floor of 0; IDR and IIR are shown over what the same
comparison gives between different pictures. Pointing is at τ = 0, with what any point gets in brackets.
What was tried stands in [design/bam.md](design/bam.md).
"""


def bam_section(result: Result) -> str:
    """Accuracy of the four models, all methods in both poses, objects never seen, and who is first."""
    config, values = result.config, result.values
    introduction = INTRODUCTION.format(
        objects=len(config["objects"]),
        scenes=len(config["scenes"]),
        n_train=config["n_train"],
        n_test=config["n_test"],
        minutes=f"{result.seconds / 60:.0f}",
    )
    start = "from nothing" if result.name.endswith("scratch") else "from ImageNet"
    lines = own_first(values["table"])
    parts = [
        f"## BAM: objects on scenes, {start}\n",
        f"{source(result)}\n",
        introduction,
        _accuracies(values),
        "\n".join(f"- {sentence}" for sentence in verdict_sentences(values["verdict"])) + "\n",
    ]
    for pose in POSES:
        parts.append(f"### Pictures {'as they are' if pose == 'untransformed' else 'in random poses'}\n")
        parts.append(_table(lines, "test", pose))
    parts.append("### Objects of classes never seen (COCO), pictures in random poses\n")
    parts.append(
        "The object model explains the class it names: is it drawn to an object that it does not know?\n"
    )
    parts.append(
        _table([line for line in lines if line["method"] in HELD_OUT_SHOWN], "held_out", "transformed")
    )
    refused = [line for line in lines if "reason" in line["test"]]
    parts += [f"- {row_name(line)} is not defined: {line['test']['reason']}" for line in refused]
    parts.append("\nThe sheets of one picture, as it is and moved, are in the folder of the run.\n")
    return "\n".join(parts)


def bam_photograph_section(result: Result) -> str:
    """The two sheets for a picture that may be shown."""
    sheet = result.values["sheet"]
    spoken = {by: sheet[by].replace("_", " ") for by in ("object", "scene")}
    pictures = "\n".join(
        f"![All methods on both models, {pose}](pictures/results-{result.name}-{pose}.png)\n"
        for pose in POSES
    )
    return (
        "### The comparison sheets\n\n"
        f"{source(result)}\n\n"
        f"A cat's face on a pagoda (photographs that come with scikit-image and scikit-learn), as it is and "
        f"in a pose of its own for either model. SITE takes the object for {spoken['object']} and the scene "
        f"for {spoken['scene']}; it knows no pagodas. SITE's maps are its own, the others are of the black "
        f"box.\n\n"
        f"{pictures}"
    )


def verdict_sentences(verdict: Mapping[str, Any]) -> list[str]:
    """Who is first, and how far SITE's own explanation is from it."""
    sentences = []
    for measure, found in verdict.items():
        if found["first"] is None or found["own"] is None:
            continue
        scores = list(found["scores"].items())
        if found["own rank"] == 1:
            rest = f"; next is {spoken(scores[1][0])} with {scores[1][1]:.3f}" if len(scores) > 1 else ""
            sentences.append(f"{measure}: SITE itself is first with {found['own']:.3f}{rest}.")
        else:
            name, score = scores[0]
            sentences.append(
                f"{measure}: first is {spoken(name)} with {score:.3f}; SITE itself is number "
                f"{found['own rank']} with {found['own']:.3f}, {score - found['own']:.3f} less."
            )
    return sentences


def draw_bam_sheets(result: Result, arrays: Mapping[str, Tensor]) -> dict[str, Figure]:
    """The paper's two sheets: one picture as it is, and moved, for the object model and the scene model."""
    return {
        f"{result.name}-{pose}": _sheet(result.values["sheet"], arrays, i) for i, pose in enumerate(POSES)
    }


def _sheet(note: Mapping[str, Any], arrays: Mapping[str, Tensor], pose: int) -> Figure:
    """Rows of five, for objects and for scenes by turns; the picture stands before SITE's own map."""
    cells = ["picture", *note["methods"]]
    n_blocks = -(-len(cells) // COLUMNS)
    figure, grid = new_figure(2 * n_blocks, COLUMNS, 1.25)
    for place, cell in enumerate(cells):
        block, column = divmod(place, COLUMNS)
        for offset, by in enumerate(("object", "scene")):
            axes = grid[2 * block + offset][column]
            if cell == "picture":
                image = arrays["image"] if pose == 0 else arrays[f"moved.{by}"]
                show_picture(axes, image[0], f"{by}: {note[by].replace('_', ' ')}")
            elif f"{by}.{cell}" in arrays:
                show_heatmap(axes, arrays[f"{by}.{cell}"][pose], f"{by}, {method_name(cell)}")
    return figure


def _accuracies(values: Mapping[str, Any]) -> str:
    models = values["accuracy"]
    rows = [
        [name, *(figure(found, *path) or "–" for found in models.values())]
        for name, path in {
            "accuracy, untransformed": ("accuracy", "untransformed"),
            "accuracy, transformed": ("accuracy", "transformed"),
            "scene accuracy with unseen objects": ("held_out accuracy", "untransformed"),
            "self-consistency, raw": ("self_consistency", "raw"),
            "self-consistency, floor": ("self_consistency", "floor"),
            "self-consistency, calibrated": ("self_consistency", "calibrated"),
            "self-consistency, centred": ("self_consistency", "centred"),
        }.items()
    ]
    rows.append(["training, minutes", *(f"{values['training'][name] / 60:.1f}" for name in models)])
    return markdown_table(["", *(name.replace("_", " ").replace("site", "SITE") for name in models)], rows)


def _table(lines: Sequence[Mapping[str, Any]], part: str, pose: str) -> str:
    header = [
        "explainer",
        "MCS",
        "IDR (floor)",
        "IIR (floor)",
        "points at object",
        "points at scene",
        "pictures",
    ]
    rows = [_row(line, line[part], pose) for line in lines if "reason" not in line[part]]
    return markdown_table(header, rows)


def _row(line: Mapping[str, Any], found: Mapping[str, Any], pose: str) -> list[str]:
    scores = found[pose]
    pointing = [found[f"pointing {what}"][pose]["tau_0"] for what in ("objects", "scenes")]
    return [
        row_name(line) if line["method"] != "self_explanation" else method_name(line["method"]),
        figure(scores, "mcs") or "–",
        f"{_short(scores['idr'])} ({_short(scores['idr_floor'])})",
        f"{_short(scores['iir'])} ({_short(scores['iir_floor'])})",
        *(f"{_short(score['score'])} ({_short(score['anywhere'])})" for score in pointing),
        str(found["n_images"]),
    ]


def _short(estimate: Mapping[str, Any]) -> str:
    return number(estimate["value"], 3)
