"""Accelerators and their number in labels, and units of prices."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.formats.imports.quotes.labels import read_label
from service.formats.imports.quotes.layout import field_of, letter_of, tier_minimum
from service.formats.imports.quotes.units import Unit, UnitSample, basis_of, guess_unit, period_of, usd_per_instance_hour
from service.presets.hardware.accelerators import load_accelerators
from tests.unit.formats.imports.quotes.reference import A100, B200, H100, H200, L40S, MI300X, REFERENCE


@pytest.mark.parametrize(
    ("label", "names", "count"),
    [
        ("8x H100 SXM5 80GB", (H100,), 8),
        ("8 x NVIDIA A100 80GB SXM4 (640GB)", (A100,), 8),
        ("HGX H200 node", (H200,), 8),
        ("HGX H100 8-GPU", (H100,), 8),
        ("NVIDIA B200 180GB", (B200,), None),
        ("L40S 48GB x4", (L40S,), 4),
        ("gpu_8x_h100_sxm5", (H100,), 8),
        ("p5.48xlarge", (H100,), 8),
        ("AMD Instinct MI300X", (MI300X,), None),
        ("H100 PCIe", ("NVIDIA-H100-80GB-PCIe",), None),
        ("A100 80GB", ("NVIDIA-A100-80GB-SXM", "NVIDIA-A100-80GB-PCIe"), None),
        ("Xeon 8480+", (), None),
        ("", (), None),
    ],
)
def test_labels_of_vendors(label: str, names: tuple[str, ...], count: int | None) -> None:
    """Names that fit, and the number as far as it is said."""
    found = read_label(label, REFERENCE)
    assert (found.names, found.count) == (names, count)


@example("AMD-MI250X", 1)
@example("Intel-Gaudi", 8)
@given(st.sampled_from(sorted(load_accelerators())), st.integers(1, 64))
def test_canonical_names_mean_themselves(name: str, count: int) -> None:
    """With a number before them."""
    found = read_label(f"{count}x {name}", REFERENCE)
    assert (found.names, found.count) == ((name,), count)


@pytest.mark.parametrize(
    ("text", "basis", "period"),
    [
        ("USD per GPU-hour", "accelerator", "hour"),
        ("$/GPU/hr", "accelerator", "hour"),
        ("EUR pro GPU-Stunde", "accelerator", "hour"),
        ("Monthly price per node", "instance", "month"),
        ("per 8-GPU server per month", "instance", "month"),
        ("Contract value per server", "instance", "term"),
        ("annual price per accelerator", "accelerator", "year"),
        ("hourly rate", None, "hour"),
        ("Price", None, None),
    ],
)
def test_units_in_words(text: str, basis: str | None, period: str | None) -> None:
    """As far as the words say."""
    assert (basis_of(text), period_of(text)) == (basis, period)


@given(
    st.floats(0.7, 1.4),
    st.sampled_from([Unit(basis, period) for basis in ("accelerator", "instance") for period in ("hour", "month", "year")]),
)
def test_the_unit_of_usual_prices_is_found_or_asked_for(factor: float, unit: Unit) -> None:
    """Never another one; a year of an accelerator costs about what a month of eight does, so that these two are asked for."""
    usual = 3.0
    price = usual * factor * {"hour": 1, "month": 730, "year": 8760}[unit.period] * (8 if unit.basis == "instance" else 1)
    found, reason = guess_unit([UnitSample(price, 8, 8760.0, usual)], ("accelerator", "instance"), ("hour", "month", "year"))
    near = unit in (Unit("accelerator", "year"), Unit("instance", "month"))
    assert found == (None if near else unit), reason
    each = usd_per_instance_hour(Decimal(str(price)), unit, 8, 8760.0) / 8
    assert float(each) == pytest.approx(usual * factor)


def test_a_unit_that_two_readings_fit_is_asked_for() -> None:
    """A node of two: per accelerator and per node are too near."""
    assert guess_unit([UnitSample(4.0, 2, 0.0, 3.0)], ("accelerator", "instance"), ("hour",))[0] is None
    assert guess_unit([UnitSample(4000.0, 8, 0.0, 3.0)], ("accelerator", "instance"), ("hour",))[0] is None
    assert guess_unit([], ("accelerator",), ("hour",))[0] is None


@pytest.mark.parametrize(
    ("header", "least"),
    [("8-63 GPUs", 8), ("64+", 64), ("≥ 256", 256), ("from 32 nodes", 32), ("1 to 7", 1), ("1-year", None), ("Price", None)],
)
def test_tiers_in_headers(header: str, least: int | None) -> None:
    """By their lower end."""
    assert tier_minimum(header) == least


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("Vendor", "provider"),
        ("Anbieter", "provider"),
        ("SKU", "instance_type"),
        ("GPU model", "accelerator"),
        ("# GPUs", "accelerator_count"),
        ("Gültig bis", "valid_until"),
        ("Expiry date", "valid_until"),
        ("Quote date", "observed_at"),
        ("Prepayment %", "upfront"),
        ("MOQ", "minimum"),
        ("Committed spend", "committed"),
        ("Währung", "currency"),
        ("Datacenter", "region"),
        ("GPU memory (GB)", "memory_gb"),
        ("Notes", None),
        ("vCPUs", None),
        ("Total", None),
    ],
)
def test_headers_in_words(header: str, field: str | None) -> None:
    """In the languages of price lists."""
    assert field_of(header) == field


def test_letters_of_columns() -> None:
    """As spreadsheets have them."""
    assert [letter_of(index) for index in (0, 25, 26, 99)] == ["A", "Z", "AA", "CV"]
