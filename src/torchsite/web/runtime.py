"""ONNX Runtime for browsers: two files of one version of its npm package, known by their checksums.

The package is the one named with `--runtime`, else the one in the cache, else `npm pack` fetches it. Nothing
is used that differs by a byte from what is pinned here. The package is Microsoft's; its licence, MIT, is in
`onnxruntime.LICENSE.txt` and goes with every page.
"""

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from torchsite.data.paths import cache_directory
from torchsite.errors import ConfigError

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
SCRIPT, MACHINE = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
LICENCE = Path(__file__).with_name("onnxruntime.LICENSE.txt")
FILES: Mapping[str, str] = {  # name in the package's `dist`: SHA-256
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    MACHINE: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
HELP = f"download it where there is a network (npm pack {PACKAGE}@{VERSION}) and name it with --runtime"


def runtime_files(given: Path | None = None, cache: Path | None = None) -> dict[str, bytes]:
    """The content of each of FILES; fails with `ConfigError` if one cannot be had or is another one."""
    package = given or (cache or cache_directory()) / f"{PACKAGE}-{VERSION}.tgz"
    if given is None and not package.is_file():
        _download(package.parent)
    content = {}
    for name, expected in FILES.items():
        try:
            with tarfile.open(package) as archive:
                member = archive.extractfile(f"package/dist/{name}")
                content[name] = b"" if member is None else member.read()
        except (OSError, tarfile.TarError, KeyError, EOFError) as error:
            raise ConfigError(
                f"{package}: {name} cannot be read from it ({error}): remove it, or {HELP}"
            ) from error
        found = hashlib.sha256(content[name]).hexdigest()
        if found != expected:
            raise ConfigError(
                f"{package}: {name} is not that of {PACKAGE} {VERSION} (SHA-256 {found[:12]}…, expected "
                f"{expected[:12]}…): remove it, or {HELP}"
            )
    return content


def _download(folder: Path) -> None:
    """Let npm write the package into a folder, under the name that it gives it."""
    npm = shutil.which("npm")
    if npm is None:
        raise ConfigError(f"the page needs {PACKAGE} {VERSION}, and there is no npm to fetch it: {HELP}")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent", "--pack-destination", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise ConfigError(f"npm could not fetch {PACKAGE} {VERSION} ({reason}): {HELP}")
