"""The interactive page and its JSON interface.

    torchsite serve            →  http://127.0.0.1:8000

`create_app` is an ASGI application like any other; `serve` runs it.
"""

from torchsite.errors import MissingExtraError

try:
    from torchsite.web.app import create_app
    from torchsite.web.guards import Settings
    from torchsite.web.server import serve
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"the page needs {error.name}, which is not installed: pip install 'torchsite[web]'", name=error.name
    ) from error

__all__ = ["Settings", "create_app", "serve"]
