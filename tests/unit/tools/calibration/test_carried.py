"""How far a measured step says another: pairs of published rows, and the percentiles of their misses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tools.calibration.carried import KNOWN, RATIOS, CarriedCase, find_pairs, fit_carried, least_shares
from tools.calibration.cases import throughput_cases


def measured(count: int, log_ratio: float, **changes: str) -> CarriedCase:
    """One row of the same job on so many accelerators, faster than modelled by so much."""
    published = next(case for case in throughput_cases() if case.table == "megatron-2020")
    case = replace(published, cluster=replace(published.cluster, count=count), rates=np.array([1.0]), **changes)
    return CarriedCase(case, dict.fromkeys(KNOWN, log_ratio))


def test_pairs_are_of_one_job_and_never_of_fewer_accelerators() -> None:
    """Both ways between rows of one size; none between documents."""
    found = find_pairs([measured(8, 0.1), measured(64, 0.2), measured(64, 0.3), measured(512, 0.0, document="another")])
    ratios = sorted((pair.ratio, round(pair.miss("layout", "layout"), 6)) for pair in found)
    assert ratios == [(1, -0.1), (1, 0.1), (8, 0.1), (8, 0.2)]


def test_what_is_common_to_both_rows_is_no_miss() -> None:
    (pair,) = find_pairs([measured(8, -0.5), measured(16, -0.5)])
    assert pair.miss("layout", "goal") == 0


def test_a_range_holds_four_in_five_of_documents_that_it_has_not_seen() -> None:
    """Of alike documents the usual shares do; where a document's misses lie beyond those of the others it reaches further out."""
    alike = np.tile([-0.2, -0.1, 0.0, 0.1, 0.2], 6)
    names = [f"d{index // 5}" for index in range(30)]
    assert least_shares(alike, names) == pytest.approx((0.1, 0.9))
    apart = alike * np.repeat([1.0, 1.1, 1.2, 1.3, 1.4, 1.5], 5)
    assert least_shares(apart, names)[1] >= 0.9
    assert least_shares(np.repeat([-0.4, 0.4], 3), list("aaabbb")) == (0.0, 1.0)


def test_percentiles_are_of_the_pairs_of_that_distance() -> None:
    """As many accelerators, up to eight times as many, and beyond, for each knowledge of both layouts."""
    rows = fit_carried(find_pairs([measured(8, 0.0), measured(8, 0.0), measured(32, 0.1), measured(512, -0.3)]))
    assert len(rows) == len(KNOWN) ** 2 * len(RATIOS)
    same, near, far = rows[: len(RATIOS)]
    assert (same.p10, same.p90) == (1.0, 1.0)
    assert near.p90 == pytest.approx(math.exp(0.1), abs=1e-3)
    assert far.p10 == pytest.approx(math.exp(-0.4), abs=1e-3)
    assert [row.pairs for row in (same, near, far)] == [2, 2, 3]
