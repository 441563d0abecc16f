"""The paper's tables and figures, and our own studies: of a checkout, not of the installed package.

`torchsite reproduce NAME` runs one. Importing this package makes the peers of SITE known by name.
"""

from experiments import peers

__all__ = ["peers"]
