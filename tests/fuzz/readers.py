"""Readers of foreign bytes: how each is called, what it may raise, good inputs to begin from, and how packed ones are taken apart."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.price_files import QuoteCorrections
from service.formats.huggingface.config import read_hf_config
from service.formats.id_tokens import BadIdToken, ExpectedToken, verified_claims
from service.formats.imports import parquet_reader
from service.formats.imports.focus import NEEDED, WANTED, read_focus
from service.formats.imports.parquet import parquet_rows
from service.formats.imports.quotes.proposal import propose
from service.formats.imports.readers import read_file
from service.formats.signed_records import BadRecord, verify
from service.usecases.archiving.archive_file import check_archive
from tests.fuzz import good_inputs
from tests.unit.formats.imports.quotes.reference import REFERENCE
from tests.unit.formats.test_signed_records import KEYS, RECORD

Parts = list[bytes]


def _one_part(content: bytes) -> Parts:
    return [content]


def _only(parts: Parts) -> bytes:
    return parts[0]


@dataclass(frozen=True)
class Reader:
    """`read` may raise `refusals` and nothing else. A packed input is changed in one of its parts and packed again."""

    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    refusals: tuple[type[Exception], ...] = (InvalidRequest,)
    unpack: Callable[[bytes], Parts] = _one_part
    pack: Callable[[Parts], bytes] = _only

    def check(self, content: bytes) -> None:
        """Read the content; any error but a refusal is a finding."""
        try:
            self.read(content)
        except self.refusals:
            return


def _unzip(content: bytes) -> Parts:
    """Names and contents of the archive's parts, in turns."""
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        return [part for name in package.namelist() for part in (name.encode(), package.read(name))]


def _zip(parts: Parts) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package, warnings.catch_warnings(action="ignore"):  # a name may stand twice
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            package.writestr(zipfile.ZipInfo(name.decode("utf-8", "replace") or "empty"), body)
    return made.getvalue()


def _archive_lines(content: bytes) -> Parts:
    return gzip.decompress(content).splitlines()[:-1]


def _archive_of(lines: Parts) -> bytes:
    """With the digest of its lines, so that the reader goes on to what they say."""
    body = b"".join(line + b"\n" for line in lines)
    return gzip.compress(body + json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n", mtime=0)


def _read_archive(content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        file.write(content)
        file.flush()
        check_archive(Path(file.name))


def _read_parquet(content: bytes) -> None:
    """A bill, read in this process and not in one of its own."""
    asked = {"wanted": [name.lower() for name in WANTED], "most_rows": 10_000, "most_unpacked_bytes": 2**24}
    for row in parquet_reader.rows(content, asked):
        json.dumps(row, default=parquet_reader._plain)


def parquet_refusals() -> tuple[type[Exception], ...]:
    """What the reader's own process ends with a reason."""
    import pyarrow as pa

    return (parquet_reader.RefusedFile, pa.ArrowException, OSError, MemoryError, ValueError, OverflowError)


def _read_config(content: bytes) -> None:
    config = json.loads(content)
    if isinstance(config, dict):
        read_hf_config(config)


def _read_token(content: bytes) -> None:
    expected = ExpectedToken("https://issuer.example", "outlay", "nonce")
    verified_claims(content.decode("latin-1"), {"keys": KEYS}, expected, datetime(2026, 1, 1, tzinfo=UTC))


def _quote(*, workbooks: bool, **packing: Any) -> Reader:
    read = partial(propose, file_name="quote", corrections=QuoteCorrections(), reference=REFERENCE)
    return Reader(read, partial(good_inputs.quotes, workbooks=workbooks), **packing)


READERS: dict[str, Reader] = {
    "parquet": Reader(_read_parquet, good_inputs.bills_in_parquet, parquet_refusals()),
    "workbook": _quote(workbooks=True, unpack=_unzip, pack=_zip),
    "archive": Reader(_read_archive, good_inputs.archives, unpack=_archive_lines, pack=_archive_of),
    "quote": _quote(workbooks=False),
    "config": Reader(_read_config, good_inputs.configs, (InvalidRequest, ValueError, RecursionError)),
    "id_token": Reader(_read_token, lambda: [RECORD], (BadIdToken,)),
    "record": Reader(lambda content: verify(content, KEYS), lambda: [RECORD], (BadRecord,)),
    **{kind: Reader(partial(read_file, kind), partial(good_inputs.imports, kind)) for kind in good_inputs.IMPORTS},
}
"""By name; those of binary formats first."""


def read_in_its_process(content: bytes) -> None:
    """A bill in Parquet, as the service reads it: whatever the library does to its process, the file is refused."""
    list(parquet_rows(content, NEEDED, WANTED))
    read_focus(content)
