"""Where the next dollar does most: curves by hand, and published ones by the law they are counted with."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.programs.spending import Allocation, PublishedEffect, SpendCurve
from service.domain.scaling.laws import AllocationLaw, ParametricLaw
from service.engine.programs.spend_allocation import allocate, published_curve, rank_choices
from service.engine.scaling.optimum import optimum_for_flops

LAW = ParametricLaw(1.8172, 482.01, 2085.43, 0.3478, 0.3658)
SCALE = SpendCurve("scale", (0, 100, 300), (0, 10, 20), (0, 0, 0), "points", "stated")
QUALITY = SpendCurve("data_quality", (0, 50, 100), (0, 10, 12), (0, 40, 50), "points", "stated")


def curve(name: str, steps: list[tuple[float, float]]) -> SpendCurve:
    """A curve with falling returns: steps of (USD, gain by the dollar), best first."""
    usd, gain = [0.0], [0.0]
    for width, slope in sorted(steps, key=lambda step: -step[1]):
        usd.append(usd[-1] + width)
        gain.append(gain[-1] + width * slope)
    return SpendCurve(name, tuple(usd), tuple(gain), tuple(0.0 for _ in usd), "points", "x")


curves = st.lists(st.tuples(st.floats(1, 100), st.floats(0.01, 10)), min_size=1, max_size=4)


def test_the_next_dollar_of_each_choice() -> None:
    """Data quality gains 0.2 points and avoids 0.8 USD by the dollar, scale 0.1 points."""
    first, second = rank_choices((SCALE, QUALITY), Allocation({"scale": 150, "data_quality": 50}, 22.5, 40))
    assert (first.choice, first.gain_per_usd, first.loss_avoided_per_usd) == ("data_quality", 0.2, 0.8)
    assert (second.choice, second.gain_per_usd) == ("scale", 0.1)
    assert (first.allocated_usd, second.allocated_usd) == (50, 150)


def test_a_budget_goes_to_the_best_segments() -> None:
    """50 to data quality, 100 to scale, then 50 more of scale: 10 + 10 + 2.5 points."""
    found = allocate((SCALE, QUALITY), 200)
    assert found.usd == {"scale": 150, "data_quality": 50}
    assert found.gain == pytest.approx(22.5)
    assert found.loss_avoided_usd == pytest.approx(40)


def test_losses_avoided_count_where_they_are_said_to() -> None:
    """At a tenth of a point by the dollar of loss, the second half of data quality beats the second half of scale."""
    found = allocate((SCALE, QUALITY), 200, usd_per_gain=10.0)
    assert found.usd == {"scale": 100, "data_quality": 100}


def test_what_avoids_more_than_a_dollar_a_dollar_is_funded_first() -> None:
    """A dollar of robustness that avoids 3,946 is funded before gains that have no price, as far as it avoids more than a dollar."""
    robust = SpendCurve("robustness", (0, 1, 11), (0, 0, 0), (0, 3946, 3950), "points", "stated")
    found = allocate((SCALE, robust), 50)
    assert found.usd == {"scale": 49, "robustness": 1}
    first, second = rank_choices((SCALE, robust), found)
    assert (first.choice, first.pays, first.usd_returned_per_usd) == ("robustness", True, 3946)
    assert (second.choice, second.pays, second.usd_returned_per_usd) == ("scale", None, None)


def test_with_a_price_of_the_gain_all_choices_compare_in_dollars() -> None:
    """0.1 points a dollar at 50 USD each are 5 dollars, more than the 2 that robustness avoids."""
    robust = SpendCurve("robustness", (0, 100), (0, 0), (0, 200), "points", "stated")
    assert allocate((SCALE, robust), 100, 50.0).usd == {"scale": 100, "robustness": 0}
    first, second = rank_choices((SCALE, robust), None, 50.0)
    assert (first.choice, first.usd_returned_per_usd, first.pays) == ("scale", 5, True)
    assert (second.usd_returned_per_usd, second.pays) == (2, True)


def test_nothing_is_spent_on_what_brings_nothing() -> None:
    """What the curves have no use for is left."""
    flat = SpendCurve("robustness", (0, 100), (0, 0), (0, 50), "points", "x")
    assert allocate((flat,), 80).usd == {"robustness": 0}
    assert allocate((QUALITY,), 1000).usd == {"data_quality": 100}


@given(curves, curves, st.floats(0, 500), st.floats(0, 1))
def test_no_other_division_gains_more(
    one: list[tuple[float, float]], other: list[tuple[float, float]], budget: float, share: float
) -> None:
    """With falling returns the best segments first are the best there is."""
    both = (curve("one", one), curve("other", other))
    best = allocate(both, budget)
    assert sum(best.usd.values()) <= budget * (1 + 1e-9)
    rival = allocate(both[:1], share * budget).gain + allocate(both[1:], (1 - share) * budget).gain
    assert best.gain >= rival - 1e-9 * (1 + rival)


def test_scale_gains_what_the_law_says() -> None:
    """Twice the compute for as much again: the law's lowest loss for both."""
    found = published_curve(PublishedEffect("scale", None, 0.0, 1.0, "x"), 1e6, 1e22, 0.0, LAW)
    losses = [optimum_for_flops(LAW, flops).loss for flops in (1e22, 2e22)]
    assert losses[0] is not None
    assert losses[1] is not None
    assert (found.usd[-1], found.gain[-1]) == pytest.approx((1e6, float(losses[0] - losses[1])))
    assert set(found.loss_avoided_usd) == {0.0}


@given(st.floats(1.01, 10), st.floats(0, 1), st.floats(0.01, 1), st.floats(1e18, 1e26))
def test_published_curves_rise_and_level_out(multiplier: float, reduction: float, share: float, flops: float) -> None:
    """Each dollar adds, less than the one before, and 95 % of the effect is there at the end."""
    found = published_curve(PublishedEffect("x", multiplier, reduction, share, "x"), 1e6, flops, 1000.0, LAW)
    steps = [after - before for before, after in pairwise(found.gain)]
    assert steps[0] > 0
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(steps))
    assert found.loss_avoided_usd[-1] == pytest.approx(950.2 * reduction, rel=1e-4)


def test_a_law_without_losses_is_refused() -> None:
    """Optimal sizes alone say nothing of what more compute gains."""
    with pytest.raises(InvalidRequest, match="no losses"):
        published_curve(PublishedEffect("scale", None, 0.0, 1.0, "x"), 1e6, 1e22, 0.0, AllocationLaw(1e20, 1e9, 0.5))


@pytest.mark.parametrize(
    ("bad", "pointer"),
    [
        (SpendCurve("x", (0,), (0,), (0,), "points", "x"), "/curves/1"),
        (SpendCurve("x", (0, 1), (0,), (0, 1), "points", "x"), "/curves/1"),
        (SpendCurve("x", (1, 2), (0, 1), (0, 0), "points", "x"), "/curves/1/usd"),
        (SpendCurve("x", (0, 2, 2), (0, 1, 2), (0, 0, 0), "points", "x"), "/curves/1/usd"),
        (SpendCurve("x", (0, 2), (0, 1), (0, 0), "nats", "x"), "/curves/1/unit"),
        (SCALE, "/curves/1/choice"),
    ],
)
def test_curves_that_are_none_or_do_not_compare_are_refused(bad: SpendCurve, pointer: str) -> None:
    """Two rising points or more from 0 USD, all gains in one unit, each choice once."""
    with pytest.raises(InvalidRequest) as refused:
        rank_choices((SCALE, bad))
    assert refused.value.pointer == pointer
