"""`python -m tests.fuzz [--seconds N] [READER …]`: readers of foreign bytes under atheris, each in a process of its own.

Inputs that reach new code are kept in `build/fuzz/READER`, and what ended a reader beside it; the exit status is 1 where anything did.
`python -m tests.fuzz --check FILE READER` reads one such file.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "fuzz"
INSTRUMENTED = ["service.formats", "service.usecases.archiving", "zipfile", "csv", "json.decoder", "gzip"]
LONGEST_BYTES = 100_000
SLOWEST_S = 20
MEMORY_MB = 3000


def main() -> int:
    """Fuzz the named readers, or all; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("readers", nargs="*", metavar="READER")
    parser.add_argument("--seconds", type=int, default=60, help="time for each reader")
    parser.add_argument("--check", type=Path, help="read this file alone")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        _fuzz(asked.readers[0], asked.seconds)
    from tests.fuzz.readers import READERS

    if asked.check:
        READERS[asked.readers[0]].check(asked.check.read_bytes())
        return 0
    found = [_spend(name, asked.seconds) for name in asked.readers or READERS]
    return 1 if any(found) else 0


def _spend(name: str, seconds: int) -> int:
    """Fuzz a reader for so long, beginning again after each finding; returns their number."""
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    began, found = time.monotonic(), 0
    while (left := round(seconds - (time.monotonic() - began))) > 0:
        before = _artifacts(name)
        subprocess.run([sys.executable, "-m", "tests.fuzz", "--inside", "--seconds", str(left), name], check=False)
        new = _artifacts(name) - before
        found += sum(not _is_harmless(name, file) for file in new)
        if not new:
            break
    sys.stdout.write(f"{name}: {found} findings in {time.monotonic() - began:.0f} s\n")
    sys.stdout.flush()
    return found


def _artifacts(name: str) -> set[Path]:
    return {file for kind in ("crash", "timeout", "oom") for file in FOLDER.glob(f"{name}-{kind}-*")}


def _is_harmless(name: str, file: Path) -> bool:
    """Whether it is one of the Parquet files that end the process of their library, which is one of its own in the service."""
    if name != "parquet":
        return False
    from service.domain.errors import InvalidRequest
    from tests.fuzz.readers import read_in_its_process

    try:
        read_in_its_process(file.read_bytes())
    except InvalidRequest:
        file.rename(FOLDER / f"{name}-harmless-{file.name.rpartition('-')[2]}")
        return True
    return False


def _fuzz(name: str, seconds: int) -> None:
    """Fuzz in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.readers import READERS
    reader = READERS[name]
    for number, seed in enumerate(reader.seeds()):
        (FOLDER / name / f"seed-{number}").write_bytes(seed)

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        try:
            parts = reader.unpack(content) if chance.random() < 0.8 else [content]
        except Exception:  # noqa: BLE001 - the content is anything
            parts = [content]
        at = chance.randrange(len(parts)) if parts else 0
        parts[at : at + 1] = [atheris.Mutate(parts[at] if parts else b"", max(1, most - len(content)) + len(parts[at] if parts else b""))]
        try:
            return reader.pack(parts) if len(parts) > 1 else parts[0]
        except Exception:  # noqa: BLE001 - parts that cannot be packed
            return content

    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST_BYTES}", f"-timeout={SLOWEST_S}", f"-rss_limit_mb={MEMORY_MB}"]
    how = ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={FOLDER / name}-", str(FOLDER / name)]
    packed = {"custom_mutator": mutate} if len(reader.unpack(reader.seeds()[0])) > 1 else {}
    atheris.Setup([name, *limits, *how], reader.check, **packed)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
