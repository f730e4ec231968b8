"""Families with few rows: one share each, between the relative's and what the rows say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.presets.training.throughput_parameters import load_parameters
from tools.calibration.cases import Floats, parameter_key
from tools.calibration.folds import predict_rates
from tools.calibration.other_accelerators.cases import OtherCase, other_cases
from tools.calibration.other_accelerators.fit import with_other_families, without_other_families

BARE = without_other_families(load_parameters())
KEYS = sorted({parameter_key(case.question, BARE) for case in other_cases() if not case.in_samples} - set(BARE.matmul))


def cases_of(key: tuple[str, str]) -> list[OtherCase]:
    return [case for case in other_cases() if parameter_key(case.question, BARE) == key and not case.in_samples]


def misses(share: float | None, key: tuple[str, str]) -> Floats:
    """Log of measured over predicted rates of a family's rows at a share of its own, or at the relative's; none where a bound is passed."""
    known = load_parameters()
    used = BARE if share is None else replace(BARE, matmul={**BARE.matmul, key: replace(known.matmul[key], share=share)})
    cases = cases_of(key)
    rates = np.array([case.question.rates[0] for case in cases])
    found = np.log(rates / predict_rates([case.question for case in cases], used))
    return np.where(np.array([case.at_least for case in cases]) & (found < 0), found / 2, found)


@pytest.mark.parametrize("key", KEYS)
def test_rows_of_a_family_move_what_it_would_borrow(key: tuple[str, str]) -> None:
    """The stored share predicts the family's rows no worse than the relative's does."""
    own = load_parameters().matmul[key].share
    assert np.sqrt(1 + (misses(own, key) / 0.2) ** 2).mean() <= np.sqrt(1 + (misses(None, key) / 0.2) ** 2).mean() + 1e-9


def test_families_of_the_large_fit_keep_their_share() -> None:
    """The small table adds families, and changes none of the large fit's."""
    found = with_other_families(BARE)
    assert found.matmul == load_parameters().matmul
    assert {key: found.matmul[key] for key in BARE.matmul} == BARE.matmul


def test_networks_counted_by_samples_have_a_share_of_their_own() -> None:
    """ResNet-50's rows on Gaudi are the share that is stored."""
    known = load_parameters()
    measured = {parameter_key(case.question, known) for case in other_cases() if case.in_samples}
    assert measured
    assert {key: with_other_families(BARE).other[key] for key in measured} == {key: known.other[key] for key in measured}
