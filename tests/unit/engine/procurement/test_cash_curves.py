"""Cumulative cash by month: sums of the same payments that present values are made of."""

from __future__ import annotations

import numpy as np
import pytest

from service.engine.procurement.cash_flows import fleet_streams
from service.engine.procurement.options import LIST_CHANGE, UTILISATION, make_scenarios
from service.engine.procurement.present_value import discount_factors
from service.engine.procurement.streams import Stream, cumulative_usd, line_flows, streams_npv
from service.engine.procurement.trials import ranges_around
from tests.unit.engine.procurement.fleets import inputs, on_demand, owned

DRAWS = {UTILISATION: np.array([0.3, 0.7, 0.95]), LIST_CHANGE: np.array([-0.2, 0.0, 0.1])}


def test_payments_add_up_month_by_month() -> None:
    """A hundred at the start, ten a month at one month's interest of a tenth, nothing where a stream has ended."""
    streams = [Stream("capital", 100.0, np.array([1.0])), Stream("rent", 10.0, np.array([0.0, 1.0, 1.0]))]
    discount = 1.1 ** -np.arange(4.0)
    assert cumulative_usd(streams, discount) == pytest.approx([100, 100 + 10 / 1.1, 100 + 10 / 1.1 + 10 / 1.21, 100 + 10 / 1.1 + 10 / 1.21])


def test_the_last_of_each_scenario_is_its_present_value() -> None:
    """Of a fleet whose peaks are rented at list prices that drift."""
    asked = inputs(fleets=(owned(),), on_demand=on_demand(3.0), growth_per_year=0.3)
    discount = discount_factors(0.09, 36)
    streams = fleet_streams(asked.fleets[0].phases, asked.on_demand, make_scenarios(asked, DRAWS))
    curves = cumulative_usd(streams, discount)
    assert curves.shape == (3, 37)
    assert curves[:, -1] == pytest.approx(streams_npv(streams, discount))
    assert len(set(curves[:, -1])) == 3


def test_a_scenario_alone_is_the_sum_of_its_lines() -> None:
    asked = inputs(fleets=(owned(),), on_demand=on_demand(3.0))
    streams = fleet_streams(asked.fleets[0].phases, asked.on_demand, make_scenarios(asked))
    flows = sum(line_flows(streams, 36).values())
    discount = discount_factors(0.09, 36)
    assert cumulative_usd(streams, discount) == pytest.approx(np.cumsum(flows * discount))


def test_ranges_hold_their_medians() -> None:
    """Quantiles by column; what is certain has no width."""
    draws = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]])
    low, high = ranges_around(np.array([1.0, 9.0]), draws)
    assert (list(low), list(high)) == ([0.2, 5.2], [1.8, 9.0])
    assert draws[0, 0] == 0.0
    certain = np.array([1.0, 2.0])
    assert [list(end) for end in ranges_around(certain, certain)] == [[1.0, 2.0], [1.0, 2.0]]
