"""`measured.json`: what is kept, what is read, and what is refused with its place in the file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.domain.training.utilisation import BadMeasurement
from service.presets.training.measured import FILE, read_measurements, residual_spread, store_measurement

SHAPE = {
    "layers": 4,
    "hidden_size": 4096,
    "attention_heads": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "ffn_hidden_size": 11008,
    "seq_len": 4096,
    "micro_batch": 8,
    "seconds": 0.41,
}
ENTRY: dict[str, Any] = {
    "accelerator": "NVIDIA-H100-80GB-SXM", "precision": "bf16", "measured_on": "2026-11-21", "torch": "2.9.1", "shapes": [SHAPE],
}  # fmt: skip
H100 = ("NVIDIA-H100-80GB-SXM", "bf16")


def entry(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(ENTRY) | changes


def written(folder: Path, content: str | bytes) -> Path:
    """The folder, with that content in its file."""
    (folder / FILE).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_no_file_is_no_measurement(tmp_path: Path) -> None:
    """Nor is a folder that does not exist."""
    assert read_measurements(tmp_path) == {}
    assert read_measurements(tmp_path / "nowhere") == {}


def test_what_is_stored_is_read(tmp_path: Path) -> None:
    """In a folder that is made for it; by canonical name, whatever alias the entry has."""
    store_measurement(entry(accelerator="H100"), tmp_path / "new" / "data")
    found = read_measurements(tmp_path / "new" / "data")
    assert list(found) == [H100]
    assert found[H100].shapes[0].seconds == 0.41


def test_the_newest_takes_the_place_of_the_older_and_of_no_other(tmp_path: Path) -> None:
    """One entry an accelerator and precision."""
    store_measurement(entry(), tmp_path)
    store_measurement(entry(accelerator="A100-80GB"), tmp_path)
    store_measurement(entry(measured_on="2026-12-01"), tmp_path)
    found = read_measurements(tmp_path)
    assert {key: str(one.measured_on) for key, one in found.items()} == {H100: "2026-12-01", ("NVIDIA-A100-80GB-SXM", "bf16"): "2026-11-21"}
    assert [file.name for file in tmp_path.iterdir()] == [FILE]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """A running service sees a new measurement."""
    store_measurement(entry(), tmp_path)
    assert read_measurements(tmp_path) is read_measurements(tmp_path)
    store_measurement(entry(torch="3.0.0"), tmp_path)
    assert read_measurements(tmp_path)[H100].torch == "3.0.0"


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "{}", '{"measurements": {}}', "null", b"\xff\xfe\x00", "[" * 100_000])
def test_a_file_of_another_kind_is_named_and_left_alone(tmp_path: Path, content: str | bytes) -> None:
    """Neither read nor overwritten; the error says how a right one is made."""
    folder = written(tmp_path, content)
    with pytest.raises(BadMeasurement, match=r"^measured\.json .*outlay calibrate --measure"):
        read_measurements(folder)
    with pytest.raises(BadMeasurement):
        store_measurement(entry(), folder)
    assert (folder / FILE).read_bytes() == (content.encode() if isinstance(content, str) else content)


def bad_shape(**changes: Any) -> dict[str, Any]:
    return entry(shapes=[SHAPE, SHAPE | changes])


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (entry(accelerator="H10"), "measurements[0].accelerator: unknown accelerator 'H10'; near names: "),
        (entry(accelerator=None), "measurements[0].accelerator must be a text, not None"),
        (entry(precision="bf61"), "measurements[0].precision must be one of fp32, "),
        (entry(measured_on="yesterday"), "measurements[0].measured_on must be a date such as 2027-01-04"),
        (entry(torch=""), "measurements[0].torch must be a text"),
        (entry(shapes=[]), "measurements[0].shapes must be a list of at least one"),
        (entry(shapes=[3]), "measurements[0].shapes[0] must be an object"),
        ([ENTRY], "measurements[0] must be an object"),
        (bad_shape(seconds=0), "measurements[0].shapes[1].seconds must be a time above 0, not 0"),
        (bad_shape(seconds=-1.5), "measurements[0].shapes[1].seconds must be a time above 0, not -1.5"),
        (bad_shape(seconds=float("nan")), "measurements[0].shapes[1].seconds must be a time above 0, not nan"),
        (bad_shape(seconds=float("inf")), "measurements[0].shapes[1].seconds must be a time above 0, not inf"),
        (bad_shape(seconds="1"), "measurements[0].shapes[1].seconds must be a time above 0, not '1'"),
        (bad_shape(seconds=True), "measurements[0].shapes[1].seconds must be a time above 0, not True"),
        (bad_shape(layers=0), "measurements[0].shapes[1].layers must be a whole number from 1"),
        (bad_shape(layers=1.5), "measurements[0].shapes[1].layers must be a whole number from 1"),
        (bad_shape(hidden_size=10**30), "measurements[0].shapes[1].hidden_size must be a whole number from 1"),
        (bad_shape(kv_heads=5), "measurements[0].shapes[1]: kv_heads=5 must divide attention_heads=32"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, broken: Any, said: str) -> None:
    """And what would be right."""
    with pytest.raises(BadMeasurement) as caught:
        read_measurements(written(tmp_path, json.dumps({"measurements": [broken]})))
    assert said in str(caught.value)


@pytest.mark.parametrize("whole", [lambda folder: (folder / FILE).mkdir(), lambda folder: (folder / FILE).symlink_to(FILE)])
def test_a_place_that_cannot_be_read_is_told(tmp_path: Path, whole: Callable[[Path], None]) -> None:
    """Not taken for no measurement."""
    whole(tmp_path)
    with pytest.raises(BadMeasurement, match=r"measured\.json cannot be read: "):
        read_measurements(tmp_path)


def test_what_remains_unknown_has_a_source() -> None:
    """A range about 1 from published rows."""
    found = residual_spread()
    assert 0.5 < found.spread.p10 < 1 < found.spread.p90 < 2
    assert "published rows" in found.source
    assert found.least == 0.05
