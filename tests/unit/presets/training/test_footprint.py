"""The data behind the memory model: whole, sourced, and by vendor where vendors differ."""

import tomllib
from pathlib import Path

import pytest

from service.domain.training.hardware import PRECISIONS
from service.domain.training.run import OPTIMIZERS
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.footprint import find_footprint
from tests.unit.engine.builders import FOOTPRINT

FILE = Path(__file__).parents[4] / "service" / "presets" / "data" / "memory.toml"


def test_every_precision_and_optimizer_has_its_bytes() -> None:
    """No request can name one that the memory model does not know."""
    found = find_footprint(find_accelerator("H100").accelerator)
    assert set(found.moment_bytes) == set(OPTIMIZERS)
    assert set(found.gradient_bytes) == set(PRECISIONS)
    assert set(found.quantised_bytes) == set(PRECISIONS) - {"fp32", "tf32", "bf16", "fp16"}


def test_every_figure_has_a_source() -> None:
    """Each table of the file, or each of its entries, says where it is from."""
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    entries = [entry for table in document.values() for entry in (table.values() if "source" not in table else [table])]
    assert len(entries) > 20
    assert all(entry["source"] for entry in entries)


def test_xla_lays_buffers_out_ahead() -> None:
    """A TPU's usable memory is all for buffers; on other devices the driver, the framework and the allocator take some."""
    tpu, gpu = (find_footprint(find_accelerator(name).accelerator) for name in ("TPU v6e", "H100"))
    assert (tpu.reserve_bytes, tpu.fragmentation_share) == (0, 0)
    assert gpu.reserve_bytes == pytest.approx(0.6 * 2**30)


def test_earlier_software_keeps_more() -> None:
    """Before CUDA loaded kernels when they are first used, and before losses were fused."""
    h100 = find_accelerator("H100").accelerator
    early, middle, today = (find_footprint(h100, year) for year in (2022, 2024, 2026))
    assert (early.reserve_bytes, middle.reserve_bytes) == pytest.approx((1.5 * 2**30, 0.6 * 2**30))
    assert (early.logit_bytes, middle.logit_bytes, today.logit_bytes) == (6, 6, 2)


def test_the_engines_tests_use_these_figures() -> None:
    """What the engine is tested with is what it is run with."""
    assert find_footprint(find_accelerator("A100-80GB").accelerator) == FOOTPRINT
