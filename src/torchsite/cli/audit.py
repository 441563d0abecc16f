"""`torchsite audit`: what a model relies on, tried by hiding and by pasting."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.inputs import names, open_data, open_model
from torchsite.cli.terminal import AsJson, ModelName, Seed, Split, say_json, terminal, watching


def audit(
    model: ModelName,
    data: Annotated[str, typer.Argument(help="A data set's name or a folder.")] = "mnist_sample",
    split: Split = "test",
    regions: Annotated[
        Path | None, typer.Option(help="Also examine these regions: boxes.json or a folder of masks.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Whose maps, separated by commas; the model's own, or Grad-CAM without any.")
    ] = "",
    limit: Annotated[
        int,
        typer.Option(min=8, help="At most so many pictures of each class; half of them, or 50, are tried."),
    ] = 100,
    out: Annotated[
        Path, typer.Option(help="The HTML file to write; the numbers stand beside it as JSON.")
    ] = Path("audit.html"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Find shortcuts: what the evidence for each class stands on, and what hiding and pasting that does.

    Evidence is grouped by what it stands on. A group that, pasted into pictures of other classes, turns many
    of them into its own is named; nothing is said of the others. Only what the pictures show can be found:
    take some like those that the model was trained on.

    Examples:

    torchsite audit cifar10 cifar10

    torchsite audit runs/birds/model photos/birds --out birds.html --regions boxes.json

    torchsite audit runs/birds/model photos/birds --methods self_explanation,grad_cam,occlusion
    """
    from torchsite.data.margins import centre
    from torchsite.data.regions import read_regions
    from torchsite.evaluation.audit import audit as run
    from torchsite.evaluation.audit_files import to_file
    from torchsite.model import SITE
    from torchsite.report.audit import write_audit

    loaded = open_model(model)
    examined = open_data(data, split, loaded)
    masks = None if regions is None else centre(read_regions(regions, examined), examined.size)
    found, options = [], {"limit": limit, "n_probed": max(50, limit // 2), "seed": seed}
    for method in names(methods) or ["self_explanation" if isinstance(loaded, SITE) else "grad_cam"]:
        with watching(method) as watch:
            explain = None if method == "self_explanation" else method
            found.append(run(loaded, examined, explain=explain, regions=masks, watch=watch, **options))
    page, numbers = write_audit(found, out), to_file(found[0], model).save(out.with_suffix(".json"))
    if as_json:
        say_json(
            {
                "page": str(page),
                "verdicts": found[0].verdicts,
                "results": [asdict(one.result) for one in found],
            }
        )
        return
    for one in found:
        terminal().print(
            "\n".join(([f"{one.result.config['method']}:"] if len(found) > 1 else []) + one.verdicts)
        )
    terminal().print(f"\npage:    {page}\nnumbers: {numbers}")
