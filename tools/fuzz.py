"""Feed damaged files to every reader, guided by which lines of code they reach.

    python tools/fuzz.py [--seconds 600] [--target picture …] [--out results/fuzz.json]

The seconds are divided among the targets (`tests/fuzz/fuzz_targets.py`), each of which runs in a process of
its own under a limit of memory and time; results of some targets are merged into the file that is there.
What was found so far is kept in the corpus, so the next run goes on from there; inputs that break a reader
stay in its `findings` folder. The exit code is 1 if there are any.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torchsite.results import Result

ROOT = Path(__file__).resolve().parent.parent
INSTRUMENTED = ["torchsite", "PIL", "yaml", "json", "csv", "pydicom", "tifffile"]
HANG_SECONDS, MEMORY_MB, LARGEST_INPUT = 20, 3000, 65536
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))


def planted(content: bytes) -> None:
    """A reader that breaks on one word, to see that the fuzzer finds such things."""
    for place, letter in enumerate(b"FUZZ"):
        if len(content) <= place or content[place] != letter:
            return
    raise RuntimeError("found")


def fuzz_here(name: str, options: list[str]) -> None:
    """Become the fuzzer of one target; does not return."""
    import atheris

    if name == "planted":
        one = atheris.instrument_func(planted)
    else:
        with atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False):
            import fuzz_targets
        fuzz_targets.torch.set_num_threads(1)

        def one(content: bytes) -> None:
            fuzz_targets.try_once(name, content)

    atheris.Setup([sys.argv[0], *options], one, enable_python_coverage=True)
    atheris.Fuzz()


def run(name: str, seconds: float, corpus: Path) -> dict[str, object]:
    """Fuzz one target in a process of its own."""
    inputs, findings = corpus / name / "inputs", corpus / name / "findings"
    for folder in (inputs, findings):
        folder.mkdir(parents=True, exist_ok=True)
    if name != "planted":
        import fuzz_targets

        for number, content in enumerate(fuzz_targets.seeds(name)):
            (inputs / f"seed-{number}").write_bytes(content)
    options = [
        f"-max_total_time={max(1, round(seconds))}",
        f"-timeout={HANG_SECONDS}",
        f"-report_slow_units={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={LARGEST_INPUT}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
        str(inputs),
    ]
    start = time.monotonic()
    command = [sys.executable, __file__, "--within", name, *options]
    with tempfile.TemporaryDirectory() as scratch:  # the fuzzer ends without tidying up
        places = os.environ | {"TMPDIR": scratch}
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", env=places)
    tried = re.search(r"stat::number_of_executed_units:\s*(\d+)", ended.stderr)
    memory = re.search(r"stat::peak_rss_mb:\s*(\d+)", ended.stderr)
    reached = re.findall(r"cov: (\d+)", ended.stderr)
    broken = sorted(path.name for path in findings.iterdir() if not path.name.startswith("slow-unit-"))
    if tried is None and not broken:
        raise RuntimeError(f"the fuzzer of {name} did not start:\n{ended.stderr[-3000:]}")
    return {
        "inputs": int(tried[1]) if tried else None,
        "seconds": round(time.monotonic() - start, 1),
        "places reached": int(reached[-1]) if reached else 0,
        "largest memory, MB": int(memory[1]) if memory else None,
        "findings": len(broken),
        "said": ended.stderr[-1500:].replace(str(corpus), "corpus") if broken else "",
    }


def main() -> int:
    """Fuzz all targets, one after the other, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--target", action="append", help="all of them if left out")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "fuzz.json")
    parser.add_argument("--corpus", type=Path, default=ROOT / "runs" / "fuzz")
    args = parser.parse_args()
    import fuzz_targets

    names = args.target or list(fuzz_targets.TARGETS)
    start = time.monotonic()
    before = Result.load(args.out).values["targets"] if args.out.exists() else {}
    found = {
        name: one for name, one in before.items() if name in fuzz_targets.TARGETS
    }  # readers that are left
    for name in names:
        found[name] = run(name, args.seconds / len(names), args.corpus)
        sys.stdout.write(f"{name}: {found[name]['inputs']} inputs, {found[name]['findings']} findings\n")
        sys.stdout.flush()
    values = {"targets": found, "findings": sum(int(one["findings"]) for one in found.values())}
    limits = {"hang, s": HANG_SECONDS, "memory, MB": MEMORY_MB, "largest input, bytes": LARGEST_INPUT}
    Result("fuzz", values, {"seconds": args.seconds} | limits, 0, time.monotonic() - start).save(args.out)
    return 1 if values["findings"] else 0


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--within":
        fuzz_here(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
