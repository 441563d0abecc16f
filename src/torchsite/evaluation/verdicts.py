"""What an audit found, in sentences: groups that stand out, places, maps that the checks contradict.

Nothing is said of what does not stand out, except, once, that nothing does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torchsite.results import Result

FIXED = 0.8  # of a group within one ninth of the picture: it stands there
MUCH = 0.1  # of the evidence of a class
DENSE = 2.0  # times the evidence of its area
SHOWN = 0.25  # of the evidence, on what turns a picture

Groups = Sequence[Mapping[str, Any]]


def verdicts(result: Result) -> list[str]:
    """All sentences, the strongest group first."""
    groups = result.values["groups"]
    found = sorted(
        (g for g in groups if g["found"] and g["kind"] != "regions"),
        key=lambda g: -g["pasting"]["turns"]["value"],
    )
    known = {group["class"] for group in found if group["kind"] == "content"}
    told = [g for g in found if g["kind"] == "content" or g["class"] not in known]
    said = [_stands_out(group) for group in told] or [_nothing(groups)]
    said += [_of_regions(group) for group in groups if group["kind"] == "regions"]
    said += _only_places([group for group in groups if _counts_by_place(group)])
    said += _disagreements(groups)
    few = [name for name in result.values["classes"] if name not in {group["class"] for group in groups}]
    said += [f"Not examined, for want of pictures: {', '.join(few)}."] if few else []
    shown = {group["class"] for group in groups if group["kind"] == "regions"} | set(few)
    few = [name for name, of in result.values["classes"].items() if of["regions"] and name not in shown]
    return said + ([f"Regions that too few of the pictures drawn have: {', '.join(few)}."] if few else [])


def _stands_out(group: Mapping[str, Any]) -> str:
    name, pasting, hidden = group["class"], group["pasting"], weakest_hiding(group)
    chance = "" if hidden["more"]["low"] > 0 else " (no more than chance: other evidence suffices)"
    return (
        f"{percent(group['evidence'])} of the evidence for “{name}” lies on {called(group)}, "
        f"{_where(group)}. "
        f"Pasted into pictures of other classes it turns {percent(pasting['turns'])} of them into “{name}”; "
        f"random parts of its pictures turn {bare(pasting['random_turns'])}, the strongest group of another "
        f"class {group['others']:.0%}. {_hidden('Hiding it', hidden)}{chance}. "
        f"If it is not {name} itself, it is a shortcut."
    )


def _hidden(what: str, found: Mapping[str, Any]) -> str:
    """What hiding does, beside hiding as large a random place (in brackets)."""
    falls, by_chance = (found[key]["value"] for key in ("falls", "random_falls"))
    return (
        f"{what} lowers the logit by {falls:.1f} (as large a random place: {by_chance:.1f}) and turns "
        f"{percent(found['turns'])} of its pictures away ({bare(found['random_turns'])})"
    )


def _nothing(groups: Groups) -> str:
    pasted = [group for group in groups if group["pasting"] is not None]
    if not pasted:
        return "Nothing could be pasted: there are too few pictures of which the model names another class."
    best = max(pasted, key=lambda group: group["pasting"]["turns"]["value"])
    return (
        f"Nothing stands out: of {len(groups)} groups in {len({g['class'] for g in groups})} classes, "
        f"{called(best)} of “{best['class']}” turns most pictures of other classes when it is pasted, "
        f"{percent(best['pasting']['turns'])}; random parts of its pictures turn "
        f"{bare(best['pasting']['random_turns'])}. An interval that begins above {best['limit']:.0%} "
        "would stand out."
    )


def _of_regions(group: Mapping[str, Any]) -> str:
    pasting = group["pasting"]
    pasted = pasting and f" Pasted into other classes, they turn {percent(pasting['turns'])}."
    return (
        f"The regions given hold {percent(group['evidence'])} of the evidence for “{group['class']}” on "
        f"{group['area']:.0%} of the area, and the peak of {percent(group['pointing'])} of the maps. "
        f"{_hidden('Hiding them', weakest_hiding(group))}.{pasted or ''}"
    )


def _only_places(groups: Groups) -> list[str]:
    """The class whose evidence depends most on the place, and how many others do."""
    if not groups:
        return []
    most = max(groups, key=lambda group: group["evidence"]["value"])
    others = f" The same holds of {len(groups) - 1} other classes." if len(groups) > 1 else ""
    return [
        f"{percent(most['evidence'])} of the evidence for “{most['class']}” lies on the {most['kind']} "
        f"({most['area']:.0%} of the area), and there pictures of other classes have "
        f"{percent(most['in_others'])} as much: the maps depend on the place, not on what it shows.{others}"
    ]


def _disagreements(groups: Groups) -> list[str]:
    """Maps that give much where hiding does nothing, or little where pasting turns pictures."""
    said = [
        f"Maps and checks disagree on {called(group)}: pasted, it turns pictures into “{group['class']}”, "
        f"but the maps of these pictures give it {percent(group['shown']['evidence'])} of the evidence."
        for group in groups
        if "shown" in group and group["shown"]["evidence"]["high"] < SHOWN
    ]
    if idle := [group for group in groups if _is_idle(group)]:
        which = ", ".join(f"{called(group)} of “{group['class']}”" for group in idle[:3])
        said.append(
            f"Maps and checks disagree on {len(idle)} of {len(groups)} groups, such as {which}: they have "
            "much of the evidence, but hiding them does no more than hiding as large a random place."
        )
    return said


def _is_idle(group: Mapping[str, Any]) -> bool:
    share = group["evidence"]["low"]
    much = share is not None and share > max(MUCH, DENSE * group["area"])
    return much and all(found["more"]["low"] <= 0 for found in group["hiding"].values())


def _counts_by_place(group: Mapping[str, Any]) -> bool:
    elsewhere, share = group.get("in_others"), group["evidence"]["low"]
    if elsewhere is None or elsewhere["low"] is None or share is None:
        return False
    return bool(elsewhere["low"] > 0.5 and share > max(MUCH, DENSE * group["area"]))


def weakest_hiding(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """The filling under which hiding does least beyond a random place: what all fillings bear out."""
    found: Mapping[str, Any] = min(group["hiding"].values(), key=lambda one: one["more"]["value"])
    return found


def called(group: Mapping[str, Any]) -> str:
    """How sentences call a group."""
    return f"group {group['number']}" if group["kind"] == "content" else f"the {group['kind']}"


def _where(group: Mapping[str, Any]) -> str:
    area, stands = f"{group['area']:.1%} of the area", group["stands"]
    if group["kind"] != "content":
        return area
    place = f"mostly {stands['place']}" if stands["share"] >= FIXED else "at changing places"
    return f"which {percent(group['pictures'])} of its pictures show, {place}, on {area}"


def percent(found: Mapping[str, Any]) -> str:
    """A share with its interval."""
    if found["value"] is None:
        return "–"
    if found["low"] is None:
        return bare(found)
    return f"{found['value']:.0%} [{found['low']:.0%}, {found['high']:.0%}]"


def bare(found: Mapping[str, Any]) -> str:
    """A share without its interval."""
    return "–" if found["value"] is None else f"{found['value']:.0%}"
