"""Owned against rented: where both cost the same, how surely buying wins, and what would turn it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.domain.procurement.ownership import BOUNDS, OwnedCluster
from service.domain.quantities import Range
from service.engine.comparison.breakeven import (
    break_even,
    break_even_price,
    cloud_price_share,
    draw_clusters,
    probability_owning_wins,
    verdict_flips,
)
from service.engine.procurement.ownership import owned_cost
from tests.unit.engine.procurement.test_ownership import DC1, plants

PRICES = np.array([0.5, 1.5, 2.0, 2.5, 5.0, 12.0])
RANGES = {
    "utilisation": Range(0.5, 0.7, 0.85),
    "capex_usd_per_accelerator": Range(26_000, 32_000, 42_000),
    "usd_per_kwh": Range(0.07, 0.09, 0.14),
}
falling = st.floats(0, 0.4)
bridges = st.none() | st.floats(0, 20)


def draw(seed: int, draws: int = 4_000) -> OwnedCluster:
    return draw_clusters(DC1, RANGES, np.random.default_rng(seed), draws)


@given(plants)
def test_with_steady_prices_the_delivered_hour_is_the_price_to_beat(plant: OwnedCluster) -> None:
    """Where cloud prices stay and the bridge costs what is compared with, buying breaks even at its own cost of an hour."""
    assert break_even_price(plant) == pytest.approx(owned_cost(plant).usd_per_delivered_accelerator_hour)


@given(plants, falling, bridges)
def test_nothing_is_gained_at_the_break_even_price(plant: OwnedCluster, decline: float, bridge: float | None) -> None:
    """At that price the difference in present value is 0 and the utilisation needed is the plant's own."""
    assume(owned_cost(plant).fixed_usd_per_accelerator_hour > 0.001)
    plant = replace(plant, cloud_price_decline_per_year=decline, bridge_usd_per_accelerator_hour=bridge)
    price = float(break_even_price(plant))
    even = break_even(plant, np.array([price]))
    assert even.npv_difference_usd[0] == pytest.approx(0, abs=1e-6 * owned_cost(plant).npv_usd)
    assert even.utilisation[0] == pytest.approx(plant.utilisation) or float(plant.utilisation) > 1 - 1e-9


def test_capital_is_paid_back_by_what_a_month_of_renting_costs_more_than_running() -> None:
    """3 USD for each of 128 x 8,760 x 0.7 hours a year, less energy and operation; no interest, no resale."""
    cost = owned_cost(DC1)
    running = cost.annual_usd - cost.lines_usd_per_year["capital"]
    months = 128 * 32_000 / ((3.0 * 128 * 8760 * 0.7 - running) / 12)
    assert break_even(DC1, np.array([3.0])).months[0] == pytest.approx(months)


@given(plants, falling, st.floats(0.5, 20))
def test_at_the_break_even_utilisation_both_cost_the_same(plant: OwnedCluster, decline: float, price: float) -> None:
    """A plant that is used just as much as is needed has the cloud's price as its break-even price."""
    plant = replace(plant, cloud_price_decline_per_year=decline)
    needed = float(break_even(plant, np.array([price])).utilisation[0])
    assume(math.isfinite(needed) and needed >= BOUNDS["utilisation"].low)
    assert break_even_price(replace(plant, utilisation=needed)) == pytest.approx(price)


@given(plants, falling, bridges, st.floats(0, 24))
def test_waiting_never_helps(plant: OwnedCluster, decline: float, bridge: float | None, months: float) -> None:
    """A machine that comes later must beat a cloud price at least as high, pays back no sooner, and needs no less use."""
    plant = replace(plant, cloud_price_decline_per_year=decline, bridge_usd_per_accelerator_hour=bridge)
    later = replace(plant, lead_time_months=float(plant.lead_time_months) + months)
    soon, late = break_even(plant, PRICES), break_even(later, PRICES)
    assert late.usd_per_accelerator_hour >= soon.usd_per_accelerator_hour * (1 - 1e-9)
    assert (late.utilisation >= soon.utilisation * (1 - 1e-9)).all()
    assert (late.months >= soon.months * (1 - 1e-9)).all()


@given(plants)
def test_a_dearer_cloud_speaks_for_buying(plant: OwnedCluster) -> None:
    """Against higher prices buying needs less use and less time, and saves more."""
    even = break_even(plant, PRICES)
    assert (even.utilisation[1:] <= even.utilisation[:-1]).all()
    assert (even.months[1:] <= even.months[:-1]).all()
    assert (np.diff(even.npv_difference_usd) > 0).all()


def test_a_cloud_below_running_cost_is_never_beaten() -> None:
    """Where an hour rented costs less than running one's own, no use and no time pays for the machine."""
    even = break_even(DC1, np.array([0.1]))
    assert math.isinf(even.utilisation[0])
    assert math.isinf(even.months[0])
    assert even.npv_difference_usd[0] < 0


def test_more_than_all_hours_is_never() -> None:
    """A use above 100 % is none that can be reached."""
    assert break_even(DC1, np.array([1.3])).utilisation[0] == math.inf
    assert break_even(DC1, np.array([1.5])).utilisation[0] < 1


def test_many_offers_at_once_are_each_alone() -> None:
    """Thousands of prices in one call are answered as one by one."""
    prices = np.linspace(0.2, 12, 3_000)
    together = break_even(DC1, prices)
    alone = break_even(DC1, prices[1_234:1_235])
    assert together.utilisation.shape == together.months.shape == (3_000,)
    assert alone.utilisation[0] == together.utilisation[1_234]
    assert alone.npv_difference_usd[0] == together.npv_difference_usd[1_234]


def test_falling_prices_are_met_at_their_mean() -> None:
    """Without interest the share is the mean of the years' middles; with it, early years weigh more."""
    plant = replace(DC1, cost_of_capital=0.0, years=3, cloud_price_decline_per_year=0.2)
    assert cloud_price_share(plant) == pytest.approx((0.8**0.5 + 0.8**1.5 + 0.8**2.5) / 3)
    assert cloud_price_share(replace(plant, cost_of_capital=0.1)) > cloud_price_share(plant)
    assert cloud_price_share(DC1) == 1


def test_a_dear_bridge_is_paid_beyond_the_price_compared_with() -> None:
    """Bridging at the price compared with changes nothing but interest; dearer bridging raises the price to beat, cheaper does not."""
    waiting = replace(DC1, lead_time_months=6)
    plain = break_even_price(waiting)
    assert break_even_price(replace(waiting, bridge_usd_per_accelerator_hour=1.0)) == pytest.approx(plain)
    dear = replace(waiting, bridge_usd_per_accelerator_hour=8.0)
    assert break_even_price(dear) > plain
    assert break_even(dear, np.array([2.5])).npv_difference_usd[0] < break_even(waiting, np.array([2.5])).npv_difference_usd[0]


def test_the_odds_rise_with_the_clouds_price() -> None:
    """From never to always, and about even at the price to beat, where most ranges have their middle."""
    odds = probability_owning_wins(draw(7), np.linspace(0.5, 30, 50))
    assert (np.diff(odds) >= 0).all()
    assert (odds[0], odds[-1]) == (0, 1)
    assert probability_owning_wins(draw(7), np.array([float(break_even_price(DC1))]))[0] == pytest.approx(0.5, abs=0.12)


def test_the_same_generator_gives_the_same_odds() -> None:
    """A seed decides every bit; another seed agrees to the sampling error."""
    prices = np.array([1.9, 2.2])
    assert probability_owning_wins(draw(7), prices).tolist() == probability_owning_wins(draw(7), prices).tolist()
    assert probability_owning_wins(draw(7), prices) == pytest.approx(probability_owning_wins(draw(8), prices), abs=0.05)


def test_draws_have_the_percentiles_they_were_given() -> None:
    """A tenth lies below the 10th percentile, a tenth above the 90th, of a lopsided range and of one from 0 as well."""
    ranges = {"capex_usd_per_accelerator": Range(26_000, 32_000, 64_000), "cloud_price_decline_per_year": Range(0.0, 0.1, 0.4)}
    plants_drawn = draw_clusters(DC1, ranges, np.random.default_rng(1), 20_000)
    for name, quantity in ranges.items():
        found = np.quantile(getattr(plants_drawn, name), [0.1, 0.5, 0.9])
        assert found == pytest.approx([quantity.p10, quantity.p50, quantity.p90], rel=0.05, abs=0.005)


def test_draws_stay_within_what_makes_sense() -> None:
    """No draw uses a machine more than all the time or has a building that uses less than its machines."""
    wild = draw_clusters(DC1, {"utilisation": Range(0.3, 0.7, 1.5), "pue": Range(0.9, 1.1, 1.3)}, np.random.default_rng(1), 2_000)
    assert np.max(wild.utilisation) == 1
    assert np.min(wild.pue) == 1


def test_certain_inputs_make_a_certain_verdict() -> None:
    """Without ranges buying wins or loses."""
    assert probability_owning_wins(DC1, np.array([1.0, 9.0])).tolist() == [0, 1]


@given(plants, st.floats(0.5, 12))
def test_each_turning_value_turns_the_verdict(plant: OwnedCluster, price: float) -> None:
    """With the input at that value alone, both cost the same: just the cloud's price."""
    for turn in verdict_flips(plant, {}, price):
        turned = replace(plant, **{turn.field: turn.flips_at})  # type: ignore[arg-type]
        assert break_even_price(turned) == pytest.approx(price, rel=1e-6)


def test_inputs_that_cannot_turn_it_say_so() -> None:
    """Against a price far above one's own, no building is bad enough to make renting win and none is named; power at 4.24 USD a kWh is."""
    found = {turn.field: turn for turn in verdict_flips(DC1, RANGES, 12.0)}
    own = 12.0 * 0.7 - (break_even_price(replace(DC1, usd_per_kwh=0.0)) * 0.7)
    assert found["usd_per_kwh"].flips_at == pytest.approx(own / (1.3 * 1.3))
    assert "pue" not in found
    never = {turn.field: turn for turn in verdict_flips(DC1, {"pue": Range(1.1, 1.3, 1.5)}, 12.0)}
    assert never["pue"].flips_at is None
    assert never["pue"].high_usd_per_hour == pytest.approx(0.2 * 1.3 * 0.09 / 0.7)


def test_inputs_are_ranked_by_what_they_move() -> None:
    """The first is the one whose range moves the cost of an hour most; its ends are the cost with that input alone changed."""
    found = verdict_flips(DC1, RANGES, 2.5)
    moved = [abs(turn.low_usd_per_hour or 0) + abs(turn.high_usd_per_hour or 0) for turn in found]
    assert moved == sorted(moved, reverse=True)
    assert {turn.field for turn in found[:3]} == set(RANGES)
    capital = next(turn for turn in found if turn.field == "capex_usd_per_accelerator")
    at_high = owned_cost(replace(DC1, capex_usd_per_accelerator=42_000)).usd_per_delivered_accelerator_hour
    assert capital.high_usd_per_hour == pytest.approx(at_high - owned_cost(DC1).usd_per_delivered_accelerator_hour)


def test_a_range_of_no_input_is_a_mistake() -> None:
    """A misspelt input is named, with those there are."""
    with pytest.raises(ValueError, match=r"utilization.*utilisation"):
        draw_clusters(DC1, {"utilization": Range(0.5, 0.7, 0.8)}, np.random.default_rng(1), 10)
