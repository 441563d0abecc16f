"""Groups of evidence on the page: those of audits, with pictures in which they stand."""

from collections.abc import Sequence
from pathlib import Path

from torchsite.errors import ConfigError
from torchsite.evaluation.audit import strongest_first
from torchsite.evaluation.audit_files import read_audit
from torchsite.evaluation.fingerprints import weights_of
from torchsite.evaluation.verdicts import called, percent
from torchsite.model import SITE, BlackBox
from torchsite.web.schemas import GroupOut


def groups_of(models: Sequence[SITE | BlackBox], audits: Sequence[Path]) -> list[list[GroupOut]]:
    """For each model the groups of the audits of its weights; an audit of none of them is an error."""
    found: list[list[GroupOut]] = [[] for _ in models]
    weights = [weights_of(model) for model in models] if audits else []
    for path in audits:
        result = read_audit(path)
        audited = result.config["weights"]["model"]
        if audited not in weights:
            raise ConfigError(
                f"{path} is of the weights of {result.config['opened']!r}, which is not shown here"
            )
        for group in strongest_first(result.values["groups"]):
            if "shown_in" in group:
                turns = percent(group["pasting"]["turns"]) if group["pasting"] else "–"
                said = (
                    f"{percent(group['evidence'])} of the evidence for “{group['class']}” lies on it; pasted "
                    f"into pictures of other classes it turns {turns}."
                )
                about = {key: group[key] for key in ("class", "found")} | {"pictures": group["shown_in"]}
                about |= {"name": f"{called(group)} of {group['class']}", "said": said}
                found[weights.index(audited)].append(GroupOut.model_validate(about))
    return found
