"""`torchsite gallery`: training pictures beside a model, so that its prototypes can be looked at."""

from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.inputs import open_data, open_site
from torchsite.cli.terminal import AsJson, say_json, terminal


def gallery(
    model: Annotated[Path, typer.Argument(help="The folder of a model.", exists=True, file_okay=False)],
    data: Annotated[str, typer.Argument(help="The data set or folder that it was trained on.")],
    reconstructed: Annotated[
        bool,
        typer.Option(
            "--reconstructed", help="Keep no training picture, but reconstructions by a small decoder."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="For the choice of candidates and poses.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Choose training pictures that show what the prototypes of learned features look for.

    They are kept beside the weights, and go wherever the model's folder goes: on pages and into reports.
    Where the pictures must not be passed on, use --reconstructed.

    Examples:

    torchsite gallery runs/birds/model photos/birds

    torchsite gallery runs/cells/model scans --reconstructed
    """
    from torchsite.model.gallery import GALLERY_FILE, save_gallery
    from torchsite.model.pretrained import WEIGHTS_FILE
    from torchsite.randomness import make_rng
    from torchsite.training.gallery import make_gallery

    (model / GALLERY_FILE).unlink(missing_ok=True)  # an older one may be of other weights
    loaded = open_site(str(model))
    pictures = open_data(data, "train", loaded)
    made = make_gallery(loaded, pictures, rng=make_rng(seed, "gallery"), reconstructed=reconstructed)
    path = save_gallery(made, model / WEIGHTS_FILE)
    size = path.stat().st_size
    terminal(stderr=as_json).print(f"{path}: {len(made)} {made.drawn} of {made.source}, {size / 1e6:.1f} MB")
    if as_json:
        say_json({"written": str(path), "exemplars": len(made), "drawn": made.drawn, "bytes": size})
