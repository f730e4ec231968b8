"""`python -m service.formats.imports.parquet_reader REQUEST < FILE`: rows of a Parquet file as JSON lines, within limits."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from service.formats.imports.parquet import MAX_SECONDS, REFUSED
from service.formats.imports.rows import MAX_CELL_CHARACTERS, MAX_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_MEMORY_BYTES = 2 * 2**30
MAX_OUTPUT_BYTES = 256 * 2**20
MAX_BATCH_BYTES = 64 * 2**20
MAX_BATCH_ROWS = 1024


class RefusedFile(Exception):
    """The file cannot be read; the text gives the reason."""


def main() -> None:
    """Read the file from standard input and write its columns' names and rows, or the reason why it cannot be read."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    cpu_limit_s = _below(MAX_SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit_s, cpu_limit_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pyarrow as pa

    try:
        _say(rows(sys.stdin.buffer.read(), json.loads(sys.argv[1])))
    except RefusedFile as refused:
        _refuse(str(refused))
    except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        _refuse(f"the Parquet file cannot be read: {' '.join(str(error).split())[:200]}")


def _below(limit: int, allowed: int) -> int:
    """The limit, or what whoever started this process allows where that is less."""
    return limit if allowed == resource.RLIM_INFINITY else min(limit, allowed)


def rows(content: bytes, asked: Mapping[str, Any]) -> Iterator[list[Any]]:
    """The wanted columns' names in lower case, then the cells of each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(pa.BufferReader(content))
    schema = metadata.schema.to_arrow_schema()
    columns = [name for name in schema.names if name.lower() in asked["wanted"]]
    _check(metadata, schema, asked["most_rows"])
    batch_rows = _batch_rows(metadata, schema, columns, asked["most_unpacked_bytes"])
    flat = [name for name in columns if _is_flat(schema, name)]
    file = pq.ParquetFile(pa.BufferReader(content), metadata=metadata, read_dictionary=flat)
    yield [name.lower() for name in columns]
    for batch in file.iter_batches(batch_size=batch_rows, columns=columns, use_threads=False):
        yield from map(list, zip(*(_values(batch, name) for name in columns), strict=True))


def _check(metadata: pq.FileMetaData, schema: pa.Schema, most_rows: int) -> None:
    if metadata.num_rows > most_rows:
        raise RefusedFile(f"the file has more than {most_rows:,} rows; import it in parts")
    if len(schema.names) > MAX_COLUMNS:
        raise RefusedFile(f"the file has {len(schema.names):,} columns; at most {MAX_COLUMNS} are taken")


def _is_flat(schema: pa.Schema, name: str) -> bool:
    """Whether a column's cells are texts."""
    import pyarrow as pa

    kind = schema.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _batch_rows(metadata: pq.FileMetaData, schema: pa.Schema, columns: Collection[str], most_bytes: int) -> int:
    """Rows to decompress at a time, so that a batch is small even where each cell is as long as its whole column.

    Flat texts stay dictionary-encoded. Raises RefusedFile for a file that decompresses to more than the limit.
    """
    unpacked = nested = 0
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            name = chunk.path_in_schema.partition(".")[0]
            if name in columns:
                unpacked += chunk.total_uncompressed_size
                nested = max(nested, 0 if _is_flat(schema, name) else chunk.total_uncompressed_size)
    if unpacked > most_bytes:
        raise RefusedFile(f"the file unpacks to {unpacked:,} bytes; at most {most_bytes:,} are taken: import it in parts")
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_BYTES // max(nested, 1)))


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column's cells as Python values; times in microseconds. Raises RefusedFile for a cell that is too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column(name)
    words = column.dictionary if isinstance(column, pa.DictionaryArray) else column
    if pa.types.is_string(words.type) or pa.types.is_binary(words.type):
        longest = pc.max(pc.binary_length(words)).as_py() or 0
        if longest > MAX_CELL_CHARACTERS:
            raise RefusedFile(f"column {name} has a cell of {longest:,} bytes; at most {MAX_CELL_CHARACTERS:,} are taken")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values


def _say(lines: Iterator[list[Any]]) -> None:
    said = 0
    for line in lines:
        text = json.dumps(line, default=_plain, separators=(",", ":")).encode() + b"\n"
        said += len(text)
        if said > MAX_OUTPUT_BYTES:
            raise RefusedFile(f"the file's rows are more than {MAX_OUTPUT_BYTES:,} bytes of text; import it in parts")
        sys.stdout.buffer.write(text)


def _plain(value: object) -> str:
    """Text of a value that JSON has no type for: decimals exactly, times in ISO 8601."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.isoformat() if isinstance(value, date) else str(value)


def _refuse(text: str) -> None:
    sys.stderr.write(text)
    raise SystemExit(REFUSED)


if __name__ == "__main__":
    main()
