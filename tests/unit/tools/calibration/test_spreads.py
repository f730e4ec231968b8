"""How wide answers are: percentiles of misses, by family and by size, and what is not known of one document."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.throughput_parameters import SpreadScale, ThroughputSpread
from service.presets.training.utilisation import scale_power, spread_of, utilisation
from tests.unit.tools.calibration.published import AMPERE, HOPPER, chosen_parameters, few_cases, table_of_few
from tools.calibration.spreads import (
    DOCUMENTS_OF_ALL,
    LEAST_POWER,
    ROWS_THAT_COUNT,
    SIZES,
    Residuals,
    fit_spreads_of,
    quantiles,
    residuals,
    weighted_quantile,
    without_document,
)

values = st.lists(st.tuples(st.floats(-2, 2), st.floats(0.01, 10)), min_size=1, max_size=40)


def misses(*rows: tuple[float, tuple[str, str], int, str]) -> Residuals:
    """Rows of (log of measured over predicted, key, count, document), weighing the same."""
    log_ratio, key, count, document = zip(*rows, strict=True)
    return Residuals(np.array(log_ratio), np.ones(len(rows)), list(key), np.array(count), np.array(document))


def spread(family: str, p10: float, p90: float) -> ThroughputSpread:
    return ThroughputSpread("layout", family, "16-bit" if family != "*" else "*", p10, p90, 10)


# Quantiles


@given(values)
def test_one_lies_between_p10_and_p90(rows: list[tuple[float, float]]) -> None:
    """However one-sided the misses are, the plan itself stays possible."""
    log_ratio, weights = (np.array(column) for column in zip(*rows, strict=True))
    low, high = quantiles(log_ratio, weights)
    assert 0 < low <= 1 <= high
    assert math.exp(log_ratio.min()) <= low * (1 + 1e-12) or low == 1
    assert high <= math.exp(log_ratio.max()) * (1 + 1e-12) or high == 1


@given(values, st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_a_weighted_quantile_grows_with_its_share_and_ignores_the_scale_of_weights(
    rows: list[tuple[float, float]], one: float, other: float, scale: float
) -> None:
    """It lies among the values, never falls as the share grows, and is the same for weights twice as large."""
    column, weights = (np.array(each) for each in zip(*rows, strict=True))
    less, more = (weighted_quantile(column, weights, share) for share in sorted((one, other)))
    assert column.min() <= less <= more <= column.max()
    assert weighted_quantile(column, scale * weights, one) == pytest.approx(weighted_quantile(column, weights, one), abs=1e-9)


def test_the_middle_of_equal_weights_is_the_median() -> None:
    """Half the weight lies below it, in whatever order the values come."""
    assert weighted_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5) == 2.0
    assert weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), 0.5) == 2.5


def test_a_heavy_value_is_most_of_the_quantiles() -> None:
    """One that has nearly all the weight is p10 and p90 both."""
    assert weighted_quantile(np.array([0.0, 1.0, 2.0]), np.array([1e-6, 1.0, 1e-6]), 0.5) == pytest.approx(1.0)


# Spreads of misses


def test_a_family_is_drawn_towards_all_rows_the_more_the_fewer_documents_it_has() -> None:
    """As many documents as are added of all rows leave it half way, as logarithms."""
    rows = [(0.4 * (-1) ** index, AMPERE, 8, f"a{index % DOCUMENTS_OF_ALL}") for index in range(4 * DOCUMENTS_OF_ALL)]
    rows += [(0.1 * (-1) ** index, HOPPER, 8, "h") for index in range(40)]
    found = {row.family: row for row in fit_spreads_of("layout", misses(*rows)).spreads}
    assert found["*"].rows == len(rows)
    assert found["ampere"].p10 == pytest.approx(math.sqrt(math.exp(-0.4) * found["*"].p10), abs=1e-3)
    assert found["*"].p90 > found["hopper"].p90 > math.exp(0.1)


def test_who_knows_less_has_no_narrower_spread() -> None:
    """Each family's with the goal alone is at least as wide as with the layout, about its own slow side."""
    rows = [(0.05 * (-1) ** index, AMPERE, 8, f"a{index % 5}") for index in range(20)]
    stated = (spread("*", 0.7, 1.1), spread("ampere", 0.9, 1.3))
    found = {row.family: row for row in fit_spreads_of("goal", misses(*rows), stated).spreads}
    for known in stated:
        assert found[known.family].p90 / found[known.family].p10 == pytest.approx(known.p90 / known.p10, rel=0.005)
    assert found["*"].p90 > 1.1


def test_a_size_whose_rows_reach_beyond_their_familys_range_is_less_certain() -> None:
    """Its power is how far four rows in five reach, in ranges of their family; a size whose rows lie near promises no more than that."""
    small = [(0.1 * (-1) ** index, AMPERE, 8, f"a{index % 4}") for index in range(40)]
    large = [(0.3 * (-1) ** index, AMPERE, 1025, f"b{index % 4}") for index in range(4)]
    found = {row.from_count: row for row in fit_spreads_of("layout", misses(*small, *large)).scales}
    assert set(found) == {SIZES[0], SIZES[2]}
    assert found[SIZES[0]].power == LEAST_POWER
    assert found[SIZES[2]].power > 2
    assert sum(row.rows for row in found.values()) == 44


def test_without_a_document_only_the_others_are_left() -> None:
    """Every column loses the same rows; what is not there takes nothing away."""
    all_of_them = misses((0.1, AMPERE, 8, "one"), (0.2, HOPPER, 16, "two"), (0.3, AMPERE, 32, "one"), (0.4, AMPERE, 64, "three"))
    others = without_document(all_of_them, "one")
    assert others.document.tolist() == ["two", "three"]
    assert others.log_ratio.tolist() == [0.2, 0.4]
    assert others.key == [HOPPER, AMPERE]
    assert others.count.tolist() == [16, 64]
    assert len(others.weight) == 2
    assert without_document(all_of_them, "nowhere").document.tolist() == all_of_them.document.tolist()


def test_misses_are_of_every_row_in_the_order_of_the_cases() -> None:
    """Log of measured over predicted; a table's rows weigh together as the root of their number."""
    cases, table = few_cases(), table_of_few()
    parameters = chosen_parameters()
    found = residuals(cases, table.rates / 2, parameters)
    assert found.log_ratio == pytest.approx(math.log(2))
    assert found.document.tolist() == [case.document for case in table.cases]
    assert found.count.tolist() == [case.cluster.count for case in table.cases]
    assert set(found.key) == {AMPERE, HOPPER}
    names = np.array([case.table for case in table.cases])
    for name in set(names):
        mine = found.weight[names == name]
        assert mine.sum() == pytest.approx(min(len(mine), ROWS_THAT_COUNT) ** 0.5)


# Which spread an answer takes


def test_a_machine_takes_the_power_of_its_size() -> None:
    """The largest size not above its count; where none is known nothing is widened."""
    scales = (SpreadScale("layout", 1, 1.0, 9), SpreadScale("layout", 65, 1.2, 9), SpreadScale("goal", 1, 3.0, 9))
    assert [scale_power(scales, "layout", count) for count in (8, 64, 65, 4096)] == [1.0, 1.0, 1.2, 1.2]
    assert scale_power((), "layout", 8) == 1.0


def test_a_family_without_a_spread_takes_that_of_all() -> None:
    """And never that of another family."""
    rows = (spread("*", 0.6, 1.5), spread("ampere", 0.9, 1.1))
    found = spread_of(rows, HOPPER, "layout")
    assert (found.p10, found.p90) == (0.6, 1.5)


def test_the_layout_given_and_the_goal_alone_do_not_mix() -> None:
    """What was measured with the goal alone says nothing of answers to a layout."""
    rows = (spread("*", 0.8, 1.2), replace(spread("*", 0.4, 3.0), known="goal"))
    assert spread_of(rows, AMPERE, "layout").p90 == 1.2
    assert spread_of(rows, AMPERE, "goal").p90 == 3.0
    assert spread_of((), AMPERE, "layout").p10 == 1.0


def test_a_family_without_rows_takes_the_widest_spread() -> None:
    """Hopper without rows takes Ampere's figure, and a range as far as any family's reaches; Ampere itself has its own."""
    rows = (spread("*", 0.5, 1.2), spread("ampere", 0.8, 1.25))
    measured = replace(chosen_parameters().matmul[AMPERE], accelerators=("NVIDIA-A100-80GB-SXM",))
    parameters = replace(chosen_parameters({AMPERE: measured}), spreads=rows)
    own, borrowed = (utilisation(parameters, find_accelerator(name).accelerator, "bf16") for name in ("A100-80GB", "H100"))
    assert not own.borrowed
    assert (own.spread.p10, own.spread.p90) == (0.8, 1.25)
    assert borrowed.borrowed
    assert parameters.borrowed_power >= parameters.kin_power > 1
    assert borrowed.spread.p10 == pytest.approx(0.5**parameters.borrowed_power)
    assert borrowed.spread.p90 == pytest.approx(1.25**parameters.borrowed_power)
    # Another part of the same family lies between.
    kin = utilisation(parameters, find_accelerator("A100-40GB").accelerator, "bf16")
    assert kin.borrowed
    assert kin.spread.p90 == pytest.approx(1.25**parameters.kin_power)
    assert own.spread.p90 < kin.spread.p90 <= borrowed.spread.p90


def test_rows_that_behave_as_the_model_leave_no_spread() -> None:
    """Where every row is predicted as measured, p10 and p90 are 1."""
    cases, table = few_cases(), table_of_few()
    found = residuals(cases, table.rates, chosen_parameters())
    assert all((row.p10, row.p90) == (1.0, 1.0) for row in fit_spreads_of("layout", found).spreads)
