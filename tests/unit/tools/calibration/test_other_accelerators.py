"""Families with few rows: one share each, between the relative's and what the rows say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.presets.training.utilisation import load_parameters, nearest
from tools.calibration.cases import Floats, other_cases, parameter_key
from tools.calibration.folds import predict_rates
from tools.calibration.other_accelerators import with_other_families

KEYS = sorted({parameter_key(case, load_parameters()) for case in other_cases()})


def misses(shares: dict[tuple[str, str], float], key: tuple[str, str]) -> Floats:
    """Log of measured over predicted rates of a family's rows at a share of its own."""
    parameters = load_parameters()
    changed = {key: replace(parameters.matmul[key], share=shares[key])}
    cases = [case for case in other_cases() if parameter_key(case, parameters) == key]
    rates = np.array([case.rates[0] for case in cases])
    return np.log(rates / predict_rates(cases, replace(parameters, matmul={**parameters.matmul, **changed})))


@pytest.mark.parametrize("key", KEYS)
def test_rows_of_a_family_move_what_it_would_borrow(key: tuple[str, str]) -> None:
    """The stored share is the fit's, and predicts the family's rows better than the relative's does."""
    parameters = load_parameters()
    others = {other: share for other, share in parameters.matmul.items() if other not in KEYS}
    borrowed = others[nearest(parameters, others, key)].share
    own = parameters.matmul[key].share
    assert own < borrowed
    assert np.abs(misses({key: own}, key)).mean() < np.abs(misses({key: borrowed}, key)).mean()


def test_families_of_the_large_fit_keep_their_share() -> None:
    """The small table adds families, and changes none."""
    parameters = load_parameters()
    found = with_other_families(parameters)
    assert found.matmul == parameters.matmul
