"""What part of a loss curve is fitted, what its last losses are, and whether it still falls, on curves by hand."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain.errors import InvalidRequest
from service.domain.scaling.loss_curves import LossCurve
from service.engine.scaling.curve_diagnostics import classify_curve, recent_loss, validate_curve
from service.engine.scaling.loss_curve import make_schedule


def curve(*loss: float) -> LossCurve:
    return LossCurve(np.arange(1.0, len(loss) + 1), np.array(loss))


def test_the_recent_loss_is_the_median_of_the_last_tenth() -> None:
    """Of 50 points the last five; of ten the last three."""
    assert recent_loss(curve(*range(100, 50, -1))) == 53
    assert recent_loss(curve(*range(100, 90, -1))) == 92


def test_a_curve_diverges_where_it_is_five_steps_above_its_lowest_level() -> None:
    """Levels are medians of five points, steps of a hundredth: at 3 or 4 % above the lowest it stays flat, at 7 or 8 % it diverges."""
    low = [2.0, 2.02] * 10
    assert classify_curve(curve(*[2.5, 2.475] * 10, *low, *[2.06, 2.08] * 5)) == "flat"
    assert classify_curve(curve(*[2.5, 2.475] * 10, *low, *[2.16, 2.14] * 5)) == "diverging"


@pytest.mark.parametrize(("end", "state"), [(1.95, "falling"), (1.99, "flat")])
def test_a_curve_falls_where_its_last_third_does_by_more_than_a_step(end: float, state: str) -> None:
    """Steps of a hundredth between neighbours, and a fall of 1.7 % or 0.3 % from the level that was a third of the curve ago."""
    loss = np.concatenate([np.linspace(2.6, 2.0, 30), np.linspace(2.0, end, 30)])
    steps = np.where(np.arange(60) % 2, 1.005, 0.995)
    assert classify_curve(curve(*(loss * steps))) == state


def test_a_curve_may_reach_its_plans_end_and_no_further() -> None:
    """Up to rounding; the first tenth of it is left out."""
    plan = make_schedule("cosine", 100.0)
    tokens = np.linspace(2.0, 100.0, 50)
    validated = validate_curve(LossCurve(tokens, 3 - tokens / 100), plan)
    assert (validated.tokens[0], validated.tokens[-1]) == (10.0, 100.0)
    beyond = tokens * (1 + 1e-6)
    with pytest.raises(InvalidRequest, match="its plan ends at 100"):
        validate_curve(LossCurve(beyond, 3 - tokens / 100), plan)
    rounded = tokens * (1 + 5e-10)
    assert validate_curve(LossCurve(rounded, 3 - tokens / 100), plan).tokens[-1] == rounded[-1]
