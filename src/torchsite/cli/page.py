"""`torchsite page`: a folder with a page that explains pictures in the browser alone."""

from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.inputs import open_site
from torchsite.cli.terminal import AsJson, Audits, ModelName, Samples, say_json, terminal

LIMIT = 25_000_000


def page(
    model: ModelName,
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    data: Samples = None,
    audit: Audits = None,
    runtime: Annotated[
        Path | None,
        typer.Option(help="An onnxruntime-web package that is there already: .tgz or folder.", exists=True),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a static page that runs the model in the browser; no picture leaves it.

    The first time, npm fetches ONNX Runtime Web; its files are checked and kept for the next time.

    Examples:

    torchsite page mnist --out site && python -m http.server --directory site

    torchsite page runs/birds/model --out birds --data photos/birds
    """
    from torchsite.data import load_dataset
    from torchsite.web.library import name_of
    from torchsite.web.page import write_page
    from torchsite.web.runtime import runtime_files

    console = terminal(stderr=as_json)
    loaded = open_site(model)
    samples = [load_dataset(name, "test") for name in data or []]
    written = write_page(loaded, name_of(Path(model)), out, runtime_files(runtime), samples, audit or ())
    console.print(f"{out}: {written.bytes / 1e6:.1f} MB; its model differs by {written.max_difference:.2g}")
    if written.bytes > LIMIT:
        console.print(f"note: more than {LIMIT / 1e6:.0f} MB: visitors wait longer for the first view")
    console.print(f"look at it: python -m http.server --directory {out}")
    if as_json:
        about = {"bytes": written.bytes, "max_difference": written.max_difference}
        say_json({"written": str(out)} | about)
