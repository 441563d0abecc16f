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
from collections.abc import Callable, Mapping
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
        return _checked(_reader(given), str(given))
    cache = cache or cache_folder()
    if not all((cache / name).is_file() for name in FILES):
        for name, content in _downloaded().items():
            write_atomically(cache / name, content)
    return _checked(_from_folder(cache), f"{cache} (remove it to download it again)")


def _reader(given: Path) -> Callable[[str], bytes]:
    if given.is_dir():
        return _from_folder(given)
    if given.is_file():
        return _from_tarball(given)
    raise ConfigError(f"--runtime: {given} is neither a package ({PACKAGE}-{VERSION}.tgz) nor a folder")


def _from_folder(folder: Path) -> Callable[[str], bytes]:
    """A folder with the files, or an unpacked package with a `dist`."""
    places = (folder, folder / "dist", folder / "package" / "dist")
    home = next((place for place in places if (place / SCRIPT).is_file()), folder)
    return lambda name: (home / name).read_bytes()


def _from_tarball(path: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        try:
            with tarfile.open(path) as package:
                member = package.extractfile(f"package/dist/{name}")
                return b"" if member is None else member.read()
        except (tarfile.TarError, KeyError, EOFError) as error:
            raise ConfigError(f"{path}: no {name} can be read from it ({error}): {HELP}") from error

    return read


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
        return _checked(_from_tarball(found[0]), f"what npm fetched as {PACKAGE}@{VERSION}")


def _checked(read: Callable[[str], bytes], source: str) -> dict[str, bytes]:
    """All files, or an error that names the one that is not what it should be."""
    content: dict[str, bytes] = {}
    for name, expected in FILES.items():
        try:
            content[name] = read(name)
        except FileNotFoundError as error:
            raise ConfigError(f"{source}: there is no {name}: expected {PACKAGE} {VERSION}") from error
        found = hashlib.sha256(content[name]).hexdigest()
        if found != expected:
            raise ConfigError(
                f"{source}: {name} is not that of {PACKAGE} {VERSION} "
                f"(SHA-256 {found[:12]}…, expected {expected[:12]}…): {HELP}"
            )
    return content
