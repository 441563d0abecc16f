"""Sections on the sheets of pictures: explanations in two poses, all methods, mistakes."""

from torchsite.paper.names import method_name, on_model, own_first
from torchsite.paper.text import head, markdown_table, sheet
from torchsite.results import Result


def explanations_section(result: Result) -> str:
    """Figure 3: what the pictures shown were taken for, in both poses."""
    rows = [
        [
            note["class"],
            note["predicted"],
            note["predicted when moved"],
            f"{note['self-consistency']:.3f}",
        ]
        for note in result.values["pictures"]
    ]
    return (
        head(result, "explanations in two poses (Figure 3)")
        + "The first correctly classified test picture of each of three classes, as it is and moved; the "
        "cosine is between the explanation of the moved picture and the moved explanation.\n\n"
        + markdown_table(["class", "seen as", "moved, seen as", "cosine"], rows)
        + sheet(result, "", "Three pictures as they are and moved, their explanations below")
    )


def examples_section(result: Result) -> str:
    """The appendix: how the explanations of each class follow their pictures, a sheet for each."""
    notes = result.values["pictures"]
    labels = list(dict.fromkeys(note["class"] for note in notes))
    rows = []
    for label in labels:
        own = [note for note in notes if note["class"] == label]
        kept = sum(note["predicted when moved"] == label for note in own)
        cosines = ", ".join(f"{note['self-consistency']:.3f}" for note in own)
        rows.append([label, f"{kept} of {len(own)}", cosines])
    sheets = (sheet(result, f"-{label}", f"{label}, as it is and moved") for label in labels)
    return (
        head(result, "explanations of every class (appendix)")
        + "The first correctly classified test pictures of each class, as they are and moved.\n\n"
        + markdown_table(["class", "still seen so when moved", "cosines"], rows)
        + "".join(sheets)
    )


def photographs_section(result: Result) -> str:
    """Photographs from elsewhere: what they were taken for, in both poses."""
    rows = [
        [
            note["photograph"],
            note["predicted"],
            f"{note['probability']:.3f}",
            note["predicted when moved"],
            f"{note['self-consistency']:.3f}",
        ]
        for note in result.values["pictures"]
    ]
    return (
        head(result, "photographs from elsewhere")
        + f"Photographs that come with {result.config['source']}, shrunk to the model's size; the rocket "
        "and the motorcycle belong to none of its classes.\n\n"
        + markdown_table(["photograph", "seen as", "probability", "moved, seen as", "cosine"], rows)
        + sheet(result, "", "Photographs as they are and moved, their explanations below")
    )


def sheet_section(result: Result) -> str:
    """Figure 4: how well each method's map of the pictures shown survives the move."""
    pictures = [picture["class"] for picture in result.values["pictures"]]
    rows = [
        [
            method_name(line["method"]),
            on_model(line["model"]),
            *(f"{s:.3f}" for s in line["self-consistency"]),
        ]
        for line in own_first(result.values["lines"])
        if "reason" not in line
    ]
    return (
        head(result, "all explanations of a picture (Figure 4)")
        + "The cosine between I(T x) and T(I(x)) for the pictures of the sheet.\n\n"
        + markdown_table(["explainer", "", *pictures], rows)
        + sheet(result, "-1", "Every explanation of one picture, as it is, moved, and carried along")
    )


def failures_section(result: Result) -> str:
    """The commonest mistakes, and the ones that were made with the greatest confidence."""
    values = result.values
    common = [[c["class"], c["predicted"], str(c["n"])] for c in values["confusions"]]
    confident = [
        [
            str(note["row"]),
            note["class"],
            note["predicted"],
            f"{note['probability']:.3f}",
            f"{note['logit of the class'] - note['logit of the predicted']:.2f}",
        ]
        for note in values["pictures"]
    ]
    return (
        head(result, "failure cases")
        + f"{values['n_wrong']:,} of {values['n_images']:,} pictures are classified wrongly. The commonest "
        "mistakes:\n\n"
        + markdown_table(["class", "seen as", "pictures"], common)
        + "\nThe most confident ones, no two of one class; the difference of the logits is the sum of "
        "`why(class, seen as)`:\n\n"
        + markdown_table(["picture", "class", "seen as", "probability", "difference"], confident)
        + sheet(result, "", "Mistakes: evidence for the class, for what was seen, and the difference")
    )
