"""`torchsite serve`: the interactive page, on a local server."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.terminal import Audits, Samples, terminal

LOCAL = ("127.0.0.1", "localhost", "::1")


def serve(
    model: Annotated[
        list[Path] | None, typer.Option(help="Folder of a model of yours; may be repeated.", exists=True)
    ] = None,
    data: Samples = None,
    audit: Audits = None,
    host: Annotated[str, typer.Option(help="Address to listen at; only this machine unless told.")] = LOCAL[
        0
    ],
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name that the server is reached by, as behind a proxy; may be repeated."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")] = 8000,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads that torch uses.")] = None,
) -> None:
    """Serve the interactive page and its JSON interface, for the shipped models and yours.

    torchsite serve

    torchsite serve --model runs/digits/model --data cifar10 --port 9000
    """
    from torchsite.data import load_dataset
    from torchsite.web import Settings, create_app
    from torchsite.web import serve as run
    from torchsite.web.library import Library

    console = terminal()
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    samples = [load_dataset(name, "test") for name in data or []]
    library = Library.open(model or [], samples, audit or [])

    def ready(address: str) -> None:
        console.print(f"models:   {', '.join(library.models)}")
        if host not in LOCAL:
            console.print(f"note:     whoever can reach {host} can use this server")
        console.print(f"page:     {address}\nend with: Ctrl+C")

    with suppress(KeyboardInterrupt):
        run(create_app(library, Settings(hosts=(host, *(allow_host or ())))), host, port, ready=ready)
    console.print("ended")
