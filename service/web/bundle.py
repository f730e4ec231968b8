"""The bundle of Vega, Vega-Lite and Vega-Embed that the package which draws the charts brings, made once for an installation."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import threading
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

PACKAGE = "vl-convert-python"
SNIPPET = "export default vegaEmbed;"
"""What the bundle is as a module."""
MAKE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle(sys.argv[1]).encode())"
LONGEST_S = 60
FOLDER = "assets"
MAKING = threading.Lock()
"""Of a process one thread makes it, the others wait for it."""


@cache
def digest() -> str:
    """What the bundle's address carries, known without the bundle: of the package's version and what is exported."""
    return sha256(f"{version(PACKAGE)} {SNIPPET}".encode()).hexdigest()[:12]


def read(data_dir: Path) -> bytes:
    """The bundle, compressed; made where the data directory has none of this version. Raises OSError and subprocess.SubprocessError."""
    file = data_dir / FOLDER / f"vega-{digest()}.js.gz"
    with MAKING:
        if not file.exists():
            _keep(file, gzip.compress(_made(), mtime=0))
    return file.read_bytes()


def _made() -> bytes:
    """The bundle, made in a process of its own: it takes seconds and 100 MB, which the service would not get back."""
    command = [sys.executable, "-c", MAKE, SNIPPET]
    return subprocess.run(command, capture_output=True, timeout=LONGEST_S, check=True).stdout  # noqa: S603 - a fixed command line


def _keep(file: Path, content: bytes) -> None:
    """Write the file in one step: of processes that make it at a time any may be the last."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
        part.write(content)
    Path(part.name).replace(file)
