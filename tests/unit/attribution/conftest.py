"""The small networks live beside the reference tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
