"""A measurement in the place of published figures: what it finds of a machine whose figures are known, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.utilisation import BadMeasurement
from service.presets.training.measured import residual_spread, store_measurement
from service.usecases.resolution.user_measurements import MAX_SHARE, MIN_SHARE, check_measurement, load_measurements, with_measurement
from tests.unit.usecases.measurement.machine import OVERHEAD_S, document, measurement, published

CHANGED = ("matmul_share", "layer_overhead_s", "spread", "source", "borrowed")


def test_a_machine_of_half_its_peak_is_found_to_be_that() -> None:
    """The share within 1 %, the launch time within 3 % (its slope holds a tiny layer's optimizer pass)."""
    found = with_measurement(published(), measurement(0.5))
    assert found.matmul_share == pytest.approx(0.5, rel=0.01)
    assert found.layer_overhead_s == pytest.approx(OVERHEAD_S, rel=0.03)
    assert not found.borrowed
    assert found.source == "measured on this machine 2026-11-21, 4 shapes, torch 2.9.1"


@given(share=st.floats(0.1, 0.95), overhead_s=st.floats(2e-4, 3e-3))
def test_any_share_and_launch_time_are_told_apart(share: float, overhead_s: float) -> None:
    """Small shapes show the one, large ones the other."""
    found = with_measurement(published(), measurement(share, overhead_s))
    assert found.matmul_share == pytest.approx(share, rel=0.01)
    assert found.layer_overhead_s == pytest.approx(overhead_s, rel=0.1)


def test_links_and_scale_stay_as_published() -> None:
    """One device says nothing of them."""
    before, after = published(), with_measurement(published(), measurement())
    assert replace(after, **{name: getattr(before, name) for name in CHANGED}) == before


def test_a_clean_measurement_leaves_what_one_device_cannot_show() -> None:
    """Without scatter of its own the range is that of published rows about their own set-up, never under 5 % a side."""
    found = with_measurement(published(), measurement()).spread
    assert found.p10 == pytest.approx(residual_spread().spread.p10, rel=0.01)
    assert found.p90 == pytest.approx(residual_spread().spread.p90, rel=0.01)
    assert found.p10 <= 1 / (1 + residual_spread().least)
    assert found.p90 >= 1 + residual_spread().least


def test_shapes_that_disagree_widen_the_range() -> None:
    """Squares of logarithms add."""
    clean = measurement()
    scatter = (1.0, 1.0, 0.8, 0.9, 1.1, 1.25)
    rough = replace(clean, shapes=tuple(replace(s, seconds=s.seconds * f) for s, f in zip(clean.shapes, scatter, strict=True)))
    narrow, wide = (with_measurement(published(), one).spread for one in (clean, rough))
    assert wide.p10 < narrow.p10 < 1 < narrow.p90 < wide.p90
    assert math.log(wide.p90) < math.log(narrow.p90) + math.log(1.3)


def test_two_large_shapes_keep_the_published_range() -> None:
    """They show no scatter; their share is used all the same."""
    few = replace(measurement(), shapes=measurement().shapes[:4])
    found = with_measurement(published(), few)
    assert found.spread == published().spread
    assert found.matmul_share == pytest.approx(0.5, rel=0.01)


def test_launch_time_is_left_as_published_where_nothing_shows_it() -> None:
    """Without tiny stacks of two depths there is no slope."""
    large = replace(measurement(), shapes=measurement().shapes[2:])
    assert with_measurement(published(), large).layer_overhead_s == published().layer_overhead_s


def test_a_share_beyond_reason_is_held_at_its_limits() -> None:
    """And the range says how far the times lie beyond them."""
    clean = measurement()
    slow = replace(clean, shapes=tuple(replace(shape, seconds=shape.seconds * 50) for shape in clean.shapes[2:]))
    found = with_measurement(published(), slow)
    assert found.matmul_share == pytest.approx(MIN_SHARE)
    assert found.spread.p10 < 0.5
    fast = replace(clean, shapes=tuple(replace(shape, seconds=shape.seconds * 0.5) for shape in clean.shapes[2:]))
    assert with_measurement(published(), fast).matmul_share == pytest.approx(MAX_SHARE)


def test_more_than_the_peak_is_refused() -> None:
    """With what it may come from."""
    clean = measurement()
    broken = replace(clean, shapes=tuple(replace(shape, seconds=shape.seconds / 10) for shape in clean.shapes))
    with pytest.raises(BadMeasurement, match=r"above the dense peak of 989\.4: another accelerator"):
        check_measurement(broken)


def test_a_precision_the_accelerator_has_not_is_refused() -> None:
    """A share of nothing."""
    with pytest.raises(BadMeasurement, match=r"states no mxfp8 peak; known: .*bf16"):
        check_measurement(replace(measurement(), precision="mxfp8"))


def test_tiny_shapes_alone_are_refused() -> None:
    """They say nothing of the arithmetic; the error says what to measure."""
    with pytest.raises(BadMeasurement, match="wider layers or larger micro-batches"):
        check_measurement(replace(measurement(), shapes=measurement().shapes[:2]))


def test_a_data_directory_gives_what_was_stored(tmp_path: Path) -> None:
    """By accelerator and precision; nothing where nothing was."""
    assert load_measurements(tmp_path / "none") == {}
    store_measurement(document(), tmp_path)
    assert load_measurements(tmp_path) == {("NVIDIA-H100-80GB-SXM", "bf16"): measurement()}


def test_what_cannot_be_right_in_a_data_directory_is_told_with_its_file(tmp_path: Path) -> None:
    """A file brought from elsewhere is checked like a measurement made here."""
    broken = document()
    broken["shapes"][-1]["seconds"] /= 10
    store_measurement(broken, tmp_path)
    with pytest.raises(BadMeasurement, match=r"^measured\.json: the measurement of NVIDIA-H100.* above the dense peak"):
        load_measurements(tmp_path)
