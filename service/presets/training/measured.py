"""What users measured on their own machines with `outlay calibrate --measure`: `measured.json` in the data directory.

One entry an accelerator and precision, the newest. Reading is strict: what cannot be right is refused with its place in the file.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from service.domain.errors import UnknownName
from service.domain.quantities import Range
from service.domain.training.hardware import PRECISIONS, Precision
from service.domain.training.utilisation import BadMeasurement
from service.presets.documents import load_document
from service.presets.hardware.accelerators import find_accelerator

FILE = "measured.json"
LARGEST_SIZE = 10_000_000
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MeasuredShape:
    """One timed shape: decoder layers without embeddings or head; `seconds` of forward, backward and optimizer on one device."""

    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden_size: int
    seq_len: int
    micro_batch: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceMeasurement:
    """Timed shapes on one accelerator (its canonical name) at one precision."""

    accelerator: str
    precision: Precision
    measured_on: date
    torch: str
    shapes: tuple[MeasuredShape, ...]


def read_measurements(folder: Path) -> Mapping[Key, DeviceMeasurement]:
    """The measurements of a data directory by (accelerator, precision); none where there is no file. Read again when it changes.

    Raises BadMeasurement for a file that cannot be used.
    """
    file = folder / FILE
    try:
        state = file.stat()
        return _read(file, state.st_mtime_ns, state.st_size)
    except FileNotFoundError:
        return MappingProxyType({})
    except OSError as error:
        raise BadMeasurement(f"{FILE} cannot be read: {error.strerror}") from error


@functools.lru_cache(maxsize=4)
def _read(file: Path, _changed_ns: int, _size: int) -> Mapping[Key, DeviceMeasurement]:
    found = (parse_measurement(entry, f"{FILE}: measurements[{index}]") for index, entry in enumerate(_entries(file)))
    return MappingProxyType({(entry.accelerator, entry.precision): entry for entry in found})


def _entries(file: Path) -> list[Any]:
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadMeasurement(f"{FILE} is no JSON ({error}); delete it, or write it anew with `outlay calibrate --measure`") from error
    entries = document.get("measurements") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BadMeasurement(f'{FILE} must be an object with a list "measurements", as `outlay calibrate --measure` writes it')
    return entries


def parse_measurement(entry: Any, where: str) -> DeviceMeasurement:
    """A measurement from its JSON form; `where` names it in errors. Fields that are only reported (rates, errors) are not read."""
    if not isinstance(entry, dict):
        raise BadMeasurement(f"{where} must be an object")
    shapes = entry.get("shapes")
    if not isinstance(shapes, list) or not shapes:
        raise BadMeasurement(f"{where}.shapes must be a list of at least one timed shape")
    return DeviceMeasurement(
        accelerator=_accelerator(entry, where),
        precision=_precision(entry, where),
        measured_on=_date(entry, where),
        torch=_text(entry, "torch", where),
        shapes=tuple(_shape(row, f"{where}.shapes[{index}]") for index, row in enumerate(shapes)),
    )


def _shape(row: Any, where: str) -> MeasuredShape:
    if not isinstance(row, dict):
        raise BadMeasurement(f"{where} must be an object")
    sizes = {field.name: _size(row, field.name, where) for field in fields(MeasuredShape) if field.name != "seconds"}
    if sizes["attention_heads"] % sizes["kv_heads"]:
        raise BadMeasurement(f"{where}: kv_heads={sizes['kv_heads']} must divide attention_heads={sizes['attention_heads']}")
    return MeasuredShape(**sizes, seconds=_seconds(row, where))


def _size(row: Mapping[str, Any], name: str, where: str) -> int:
    value = row.get(name)
    if type(value) is not int or not 0 < value <= LARGEST_SIZE:
        raise BadMeasurement(f"{where}.{name} must be a whole number from 1 to {LARGEST_SIZE}, not {value!r}")
    return value


def _seconds(row: Mapping[str, Any], where: str) -> float:
    value = row.get("seconds")
    if type(value) not in (int, float) or not (math.isfinite(cast("float", value)) and cast("float", value) > 0):
        raise BadMeasurement(f"{where}.seconds must be a time above 0, not {value!r}")
    return float(cast("float", value))


def _text(entry: Mapping[str, Any], name: str, where: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise BadMeasurement(f"{where}.{name} must be a text, not {value!r}")
    return value


def _date(entry: Mapping[str, Any], where: str) -> date:
    value = _text(entry, "measured_on", where)
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise BadMeasurement(f"{where}.measured_on must be a date such as 2027-01-04, not {value!r}") from error


def _accelerator(entry: Mapping[str, Any], where: str) -> str:
    try:
        return find_accelerator(_text(entry, "accelerator", where)).accelerator.name
    except UnknownName as error:
        raise BadMeasurement(f"{where}.accelerator: {error.message}") from error


def _precision(entry: Mapping[str, Any], where: str) -> Precision:
    value = _text(entry, "precision", where)
    if value not in PRECISIONS:
        raise BadMeasurement(f"{where}.precision must be one of {', '.join(PRECISIONS)}, not {value!r}")
    return value


def store_measurement(document: Mapping[str, Any], folder: Path) -> Path:
    """Write a measurement's JSON form to the data directory; it replaces an older one of the same accelerator and precision.

    The file is replaced in one step: readers never see half of it. Raises BadMeasurement where the measurement, or the file, cannot be
    used.
    """
    new = parse_measurement(document, "the measurement")
    file = folder / FILE
    read_measurements(folder)
    others = [entry for entry in (_entries(file) if file.exists() else []) if _key(entry) != (new.accelerator, new.precision)]
    text = json.dumps({"measurements": [*others, document]}, indent=1, allow_nan=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=folder, prefix=f".{FILE}.")
    try:
        with open(handle, "w", encoding="utf-8") as out:  # noqa: PTH123 - a descriptor, not a path
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(partial).chmod(0o644)  # mkstemp's 0600 would hide it from a service of another user
        Path(partial).replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            Path(partial).unlink()
        raise
    return file


def _key(entry: Mapping[str, Any]) -> Key:
    return find_accelerator(entry["accelerator"]).accelerator.name, entry["precision"]


@dataclass(frozen=True, slots=True)
class ResidualSpread:
    """What a measurement on one device leaves unknown.

    Attributes
    ----------
    spread : Range
        Measured over predicted throughput [1].
    least : float
        Smallest half-width of any range [1].
    source : str
        Published rows behind it.
    """

    spread: Range
    least: float
    source: str


@functools.cache
def residual_spread() -> ResidualSpread:
    """Spread of published rows about the share of their own set-up, from `data/measured.toml`."""
    row = load_document("measured")["remaining"]
    return ResidualSpread(Range(row["p10"], 1.0, row["p90"]), row["least"], row["source"])
