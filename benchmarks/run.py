"""All benchmarks of this folder, one after the other, each in a process of its own.

    python benchmarks/run.py [name …]

Names are those of the files, without `.py`; all are run if none is given.
"""

import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent


def available() -> dict[str, Path]:
    """The benchmarks by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.py")) if path != Path(__file__)}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; 1 if any failed."""
    known = available()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}: known are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [name for name in names or known if not passes(name, known[name])]
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def passes(name: str, path: Path) -> bool:
    """Run one benchmark, which prints what it finds."""
    print(f"\n── {name} " + "─" * (76 - len(name)), flush=True)
    start = time.monotonic()
    code = subprocess.run([sys.executable, str(path)], check=False).returncode
    print(f"({time.monotonic() - start:.0f} s)", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
