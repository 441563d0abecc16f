"""The paper's tables and figures, and our own studies: of a checkout, not of the installed package.

`torchsite reproduce NAME` runs one. Importing this package makes the peers of SITE, and the terms of its
older recipes, known by name.
"""

from experiments import concise, peers, readable

__all__ = ["concise", "peers", "readable"]
