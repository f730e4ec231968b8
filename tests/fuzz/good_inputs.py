"""Small good inputs of every reader, which fuzzing begins from."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from service.domain.tracking.archive import ArchivedRun, ArchiveManifest
from service.domain.tracking.events import Event
from service.store.tracking.event_rows import event_row
from service.usecases.archiving.archive_file import EVENTS, FORMAT, PROGRAMS, RUNS, write_archive
from tests.unit.formats.imports.quotes.vendor_sheets import SHEETS
from tests.unit.formats.imports.track_data import data

IMPORTS = {
    "focus": ("focus-1.0.csv", "focus-1.3.csv"),
    "sacct": ("sacct.txt",),
    "mlflow": ("mlflow.json",),
    "wandb": ("wandb-history.csv", "wandb-history.jsonl"),
    "dcgm": ("dcgm.json",),
}
HF_CONFIGS = Path(__file__).parents[1] / "unit" / "formats" / "huggingface" / "hf_configs.json"
AT = datetime(2026, 1, 1, tzinfo=UTC)


def imports(kind: str) -> Sequence[bytes]:
    """Recorded files of a kind of import."""
    return [data(name) for name in IMPORTS[kind]]


def bills_in_parquet() -> Sequence[bytes]:
    """The recorded bills as texts, packed and unpacked, and with times, decimals and nested tags."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def packed(table: pa.Table, **how: object) -> bytes:
        out = io.BytesIO()
        pq.write_table(table, out, **how)
        return out.getvalue()

    tables = [pa.Table.from_pylist(list(csv.DictReader(io.StringIO(body.decode())))) for body in imports("focus")]
    typed = tables[0].slice(0, 3)
    for name in ("ChargePeriodStart", "ChargePeriodEnd"):
        times = pc.strptime(typed[name], format="%Y-%m-%dT%H:%M:%SZ", unit="us", error_is_null=True)
        typed = typed.set_column(typed.schema.get_field_index(name), name, times)
    tags = pa.array([[("outlay_run", "main")]] * len(typed), pa.map_(pa.string(), pa.string()))
    typed = typed.set_column(typed.schema.get_field_index("Tags"), "Tags", tags)
    typed = typed.set_column(typed.schema.get_field_index("EffectiveCost"), "EffectiveCost", pa.array([1, 2, 3], pa.decimal128(38, 10)))
    ways: Sequence[dict[str, object]] = (
        {"compression": "none"},
        {"compression": "zstd", "use_dictionary": False},
        {"data_page_version": "2.0"},
    )
    return [packed(table, **options) for table in (*tables, typed) for options in ways]


def quotes(*, workbooks: bool) -> Sequence[bytes]:
    """Price sheets of vendors: workbooks, or texts."""
    return [sheet.content for sheet in SHEETS if sheet.content.startswith(b"PK") == workbooks]


def configs() -> Sequence[bytes]:
    """Published configurations of models."""
    return [json.dumps(entry["config"]).encode() for entry in json.loads(HF_CONFIGS.read_text(encoding="utf-8"))]


def archives() -> Sequence[bytes]:
    """A program of one run with events of two hours and a correction."""
    step: Callable[..., Event] = partial(Event, type="progress", accelerators=8, loss=2.5)
    events = [step(f"e{number}", at=AT + timedelta(minutes=20 * number), step=number) for number in range(6)]
    events.append(Event("c", "progress", AT, step=0, supersedes="e0", loss=2.4))
    rows = [{"run": "r", **event_row(event)._asdict()} for event in sorted(events, key=lambda event: event.supersedes is None)]
    counts = {PROGRAMS: 1, RUNS: 1, EVENTS: len(rows)}
    runs = (ArchivedRun("r", "main", len(rows), 2, "0" * 64),)
    manifest = ArchiveManifest(FORMAT, "1", AT.isoformat(), "t", "p", "program", 1, counts, runs)
    out = io.BytesIO()
    write_archive(out, manifest, [(PROGRAMS, {"id": "p"}), (RUNS, {"id": "r"}), *((EVENTS, row) for row in rows)])
    return [out.getvalue()]
