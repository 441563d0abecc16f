"""The page where the explanation follows your hand, and the JSON interface behind it.

    torchsite serve            →  http://127.0.0.1:8000

`create_app` is an ASGI application like any other; `serve` runs it.
"""

from torchsite.web.app import create_app
from torchsite.web.server import serve
from torchsite.web.settings import Settings

__all__ = ["Settings", "create_app", "serve"]
