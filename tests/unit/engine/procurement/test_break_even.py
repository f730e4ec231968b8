"""Owned against rented: where both cost the same, how soon, how surely, and what would turn it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.engine.procurement.break_even import break_even, break_even_price, probability_owning_wins
from service.engine.procurement.cash_flows import OnDemandPrice, RentTerms
from service.engine.procurement.flips import Variable, find_flips
from service.engine.procurement.options import (
    COST_OF_CAPITAL,
    LIST_CHANGE,
    PRICE_FACTOR,
    UTILISATION,
    OwnedFleet,
    ProcurementInputs,
    RentedCapacity,
    option_npvs,
)
from service.engine.procurement.ownership import owned_cost
from service.engine.procurement.trials import UncertainInput, draw_inputs, probability_best, range_around
from tests.unit.engine.procurement.fleets import DC1, inputs, owned
from tests.unit.engine.procurement.test_ownership import plants

PRICES = np.array([0.5, 1.5, 2.0, 2.5, 5.0, 12.0])
ON_DEMAND, RESERVED = RentTerms(), RentTerms(36, count=256)
uses, changes, rates = st.floats(0.05, 1.0), st.floats(-0.4, 0.4), st.floats(0.0, 0.3)


def fleet(use: float = 0.7, **of_cluster: Any) -> ProcurementInputs:
    return inputs(fleets=(owned(replace(DC1, **of_cluster)),), utilisation=use, peak_utilisation=0.0, mixes=False)


@given(plants)
def test_with_steady_prices_the_delivered_hour_is_the_price_to_beat(plant: Any) -> None:
    """One truth: what a comparison charges for a used hour of owned hardware is the rent at which buying breaks even."""
    plant = replace(plant, years=4, lead_time_months=0)
    asked = replace(
        fleet(float(plant.utilisation * plant.availability)),
        count=plant.count,
        months=48,
        cost_of_capital=float(plant.cost_of_capital),
        fleets=(owned(plant, 48),),
    )
    assert break_even_price(asked, ON_DEMAND)[0] == pytest.approx(owned_cost(plant).usd_per_delivered_accelerator_hour)


@given(use=uses, change=changes, rate=rates, lead=st.floats(0, 12), reserved=st.booleans())
def test_nothing_is_gained_at_the_break_even_price(use: float, change: float, rate: float, lead: float, reserved: bool) -> None:
    """At that rent the saving is 0, and of used hours the utilisation needed is the fleet's own."""
    asked = replace(fleet(use, lead_time_months=lead), list_change_per_year=change, cost_of_capital=rate)
    terms = RESERVED if reserved else ON_DEMAND
    price = float(break_even_price(asked, terms)[0])
    assume(np.isfinite(price))
    even = break_even(asked, terms, np.array([price]))
    assert even.npv_saved_usd[0] == pytest.approx(0, abs=1.0)
    if not reserved:
        assert even.utilisation[0] == pytest.approx(use, rel=1e-6) or use > 1 - 1e-6


@given(use=uses, change=changes)
def test_a_dearer_rent_speaks_for_buying(use: float, change: float) -> None:
    """Against higher rents buying needs less use and less time, and saves more."""
    even = break_even(replace(fleet(use), list_change_per_year=change), ON_DEMAND, PRICES)
    assert (even.utilisation[1:] <= even.utilisation[:-1]).all()
    assert (even.months[1:] <= even.months[:-1]).all()
    assert (np.diff(even.npv_saved_usd) > 0).all()


def test_a_rent_below_running_cost_is_never_beaten() -> None:
    """No use and no time pays for the machine."""
    even = break_even(fleet(), ON_DEMAND, np.array([0.1]))
    assert np.isinf(even.utilisation[0])
    assert np.isinf(even.months[0])
    assert even.npv_saved_usd[0] < 0


def test_idle_hours_are_paid_on_both_sides() -> None:
    """A reservation is beaten by its price alone: less use makes owning cheaper by its power, at a price below its cost it never is."""
    even = break_even(fleet(), RESERVED, np.array([1.0, 1.89]))
    assert np.isinf(even.utilisation[0])
    assert even.utilisation[1] == 0
    assert break_even(fleet(0.2), RESERVED, np.array([1.89])).npv_saved_usd[0] > even.npv_saved_usd[1] > 0


def test_a_dear_bridge_is_paid() -> None:
    """At its own rent; without one at the rent compared with."""
    late = fleet(lead_time_months=6)
    assert break_even_price(late, ON_DEMAND, 8.0)[0] > break_even_price(late, ON_DEMAND, 2.0)[0] > break_even_price(fleet(), ON_DEMAND)[0]
    price = break_even_price(late, ON_DEMAND)[0]
    assert break_even_price(late, ON_DEMAND, float(price))[0] == pytest.approx(price)


def test_the_odds_rise_with_the_rent() -> None:
    """From never to always, and as often as trials are below."""
    drawn = np.array([1.0, 2.0, 3.0, 4.0])
    assert probability_owning_wins(drawn, np.array([0.5, 2.5, 5.0])).tolist() == [0, 0.5, 1]


ENTRIES = (
    UncertainInput("own.dc1.capex_usd_per_accelerator", Range(26_000, 32_000, 64_000), 0, 1e7),
    UncertainInput(UTILISATION, Range(0.42, 0.7, 0.8), 0.001, 1.0),
    UncertainInput(LIST_CHANGE, Range(-0.3, -0.05, 0.3), -0.9, 3.0, shift=1.0),
)


def test_draws_have_the_percentiles_they_were_given() -> None:
    """A tenth lies below the 10th percentile, a tenth above the 90th, of a signed range as well."""
    drawn = draw_inputs(ENTRIES, 20_000, 1)
    for entry in ENTRIES:
        found = np.quantile(drawn[entry.path], [0.1, 0.5, 0.9])
        assert found == pytest.approx([entry.quantity.p10, entry.quantity.p50, entry.quantity.p90], rel=0.05, abs=0.01)
        assert entry.low <= drawn[entry.path].min() <= drawn[entry.path].max() <= entry.high


def test_a_seed_decides_every_draw_and_fleets_share_them() -> None:
    """The same input of two fleets moves with one market."""
    both = (*ENTRIES, replace(ENTRIES[0], path="own.dc2.capex_usd_per_accelerator"))
    drawn = draw_inputs(both, 1_000, 7)
    assert (drawn[both[0].path] == drawn[both[3].path]).all()
    assert all((drawn[path] == values).all() for path, values in draw_inputs(both, 1_000, 7).items())
    assert (drawn[UTILISATION] != draw_inputs(both, 1_000, 8)[UTILISATION]).any()


def test_probabilities_add_up_to_one() -> None:
    """Of equal options the first counts."""
    npvs = np.array([[1.0, 2.0, 3.0, 1.0], [2.0, 2.0, 1.0, 9.0], [9.0, 9.0, 9.0, 9.0]])
    assert probability_best(npvs).tolist() == [0.75, 0.25, 0.0]


def test_a_range_holds_its_median() -> None:
    """Also where the draws lean away from it."""
    found = range_around(5.0, np.linspace(6.0, 7.0, 100))
    assert (found.p10, found.p50) == (5.0, 5.0)


VARIABLES = (
    Variable(UTILISATION, 0.7, 0.02, 1.0),
    Variable(COST_OF_CAPITAL, 0.09, 0.0, 0.4),
    Variable(LIST_CHANGE, 0.0, -0.6, 1.0),
    Variable(PRICE_FACTOR, 1.0, 0.2, 5.0),
    Variable("own.dc1.capex_usd_per_accelerator", 32_000, 500, 200_000),
    Variable("own.dc1.pue", 1.3, 1.0, 2.5),
    Variable("own.dc1.lead_time_months", 0.0, 0.0, 36.0),
)


@given(price=st.floats(1.0, 4.0), reserved=st.floats(0.8, 3.0))
def test_flips_really_flip(price: float, reserved: float) -> None:
    """At each flip value the other side costs less, and a step before it the same one still does."""
    rents = (RentedCapacity(ON_DEMAND, price, 8), RentedCapacity(RentTerms(12, count=256), reserved, 8))
    asked = replace(inputs(), fleets=(owned(),), rents=rents, on_demand=OnDemandPrice(price))
    sides = np.array([0, 1, 1, 1])
    base = sides[option_npvs(asked)[:, 0].argmin()]
    flips = find_flips(VARIABLES, sides, lambda values: option_npvs(asked, values))
    for flip in flips:
        before = flip.flips_at + 1e-4 * (flip.value - flip.flips_at)
        turned, kept = (sides[option_npvs(asked, {flip.path: np.array([at])})[:, 0].argmin()] for at in (flip.flips_at, before))
        assert turned != base
        assert kept == base
    changes = [abs(flip.flips_at - flip.value) / max(abs(flip.value), 1e-9) for flip in flips]
    assert changes == sorted(changes)


def test_one_side_alone_has_no_flips() -> None:
    """Nothing to turn to."""
    asked = replace(inputs(), fleets=(owned(), OwnedFleet("dc2", owned().phases)))
    assert find_flips(VARIABLES, np.array([0, 0]), lambda values: option_npvs(asked, values)) == ()
    assert find_flips((), np.array([0, 1]), lambda values: option_npvs(asked, values)) == ()
