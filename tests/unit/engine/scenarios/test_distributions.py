"""Correlated quantities of scenarios: factors of correlation matrices."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain.errors import InvalidRequest
from service.engine.scenarios.distributions import correlation_factor


@pytest.mark.parametrize("correlation", [-1.0, -0.4, 0.0, 0.9, 1.0])
def test_a_factor_gives_back_its_correlations(correlation: float) -> None:
    """L Lᵀ is the matrix, also where two quantities move together entirely."""
    wanted = np.array([[1.0, correlation], [correlation, 1.0]])
    factor = correlation_factor(wanted)
    assert factor @ factor.T == pytest.approx(wanted, abs=1e-12)


def test_correlations_that_nothing_can_have_are_refused() -> None:
    """Two quantities cannot both move with a third and against each other."""
    impossible = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    with pytest.raises(InvalidRequest, match="bring the correlations nearer to 0") as refused:
        correlation_factor(impossible)
    assert refused.value.pointer == "/correlations"
