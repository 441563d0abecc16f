"""ONNX Runtime for browsers: two files of one version of its npm package, known by their checksums.

They are taken from a package that is there (`--runtime`), else from the cache, else with `npm pack`. Nothing
is used that differs by a byte from what is pinned here. The package is Microsoft's; its licence, MIT, is in
`onnxruntime.LICENSE.txt` and goes with every page.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torchsite.errors import ConfigError
from torchsite.files import write_atomically

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
SCRIPT, MACHINE = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
LICENCE = Path(__file__).with_name("onnxruntime.LICENSE.txt")
FILES: Mapping[str, str] = {  # name in the package's `dist`: SHA-256
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    MACHINE: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
HELP = f"download it where there is a network (npm pack {PACKAGE}@{VERSION}) and name it with --runtime"


def cache_folder() -> Path:
    """Where the files are kept: $XDG_CACHE_HOME/torchsite, or ~/.cache/torchsite."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torchsite" / f"{PACKAGE}-{VERSION}"


def runtime_files(given: Path | None = None, cache: Path | None = None) -> dict[str, bytes]:
    """The content of each of FILES: from a package that is given, else cached, else downloaded by npm."""
    if given is not None:
        return _read(given)
    cache = cache or cache_folder()
    if not all((cache / name).is_file() for name in FILES):
        for name, content in _downloaded().items():
            write_atomically(cache / name, content)
    return _read(cache)


def _read(source: Path) -> dict[str, bytes]:
    """All files of a package, packed or unpacked; fails if one differs from the pinned one."""
    content = {name: _content(source, name) for name in FILES}
    for name, expected in FILES.items():
        found = hashlib.sha256(content[name]).hexdigest()
        if found != expected:
            raise ConfigError(
                f"{source}: {name} is not that of {PACKAGE} {VERSION} (SHA-256 {found[:12]}…, expected "
                f"{expected[:12]}…): remove it from the cache, or {HELP}"
            )
    return content


def _content(source: Path, name: str) -> bytes:
    if source.is_dir():
        for place in (source, source / "dist", source / "package" / "dist"):
            if (place / name).is_file():
                return (place / name).read_bytes()
        raise ConfigError(f"{source}: there is no {name}: expected {PACKAGE} {VERSION}")
    try:
        with tarfile.open(source) as package:
            member = package.extractfile(f"package/dist/{name}")
            return b"" if member is None else member.read()
    except (OSError, tarfile.TarError, KeyError, EOFError) as error:
        raise ConfigError(f"{source}: {name} cannot be read from it ({error}): {HELP}") from error


def _downloaded() -> dict[str, bytes]:
    npm = shutil.which("npm")
    if npm is None:
        raise ConfigError(f"the page needs {PACKAGE} {VERSION}, and there is no npm to fetch it: {HELP}")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = sorted(Path(folder).glob("*.tgz"))
        if done.returncode or not found:
            reason = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
            raise ConfigError(f"npm could not fetch {PACKAGE} {VERSION} ({reason}): {HELP}")
        return _read(found[0])
