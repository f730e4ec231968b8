"""Totals of many prices at once are the bills of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.training.run import Billing
from service.engine.comparison.offer_costs import OfferPrices, price_offers
from service.engine.training.cost import total_usd
from service.engine.training.reliability import checkpoint_interval_hours
from tests.unit.engine.builders import cluster, failures, run
from tests.unit.engine.training.test_cost import EVERYTHING

LINES = 10
"""At most so many lines, each rounded by half a cent at most."""

offer = st.tuples(st.floats(0.01, 100), st.sampled_from([1, 4, 8, 72]), st.sampled_from([0.0, 8760.0, 26280.0]))


def by_percentile(in_networks: Sequence[Sequence[Range]]) -> NDArray[np.float64]:
    """Hours of several runs in each network, as `price_offers` takes them."""
    return np.array([[(hours.p10, hours.p50, hours.p90) for hours in each] for each in in_networks]).transpose(2, 1, 0)


@given(st.lists(st.tuples(st.integers(1, 300), st.floats(0.1, 1e5)), min_size=1, max_size=3), st.lists(offer, min_size=1, max_size=5))
def test_totals_are_the_sums_of_the_lines(machines: list[tuple[int, float]], priced: list[tuple[float, int, float]]) -> None:
    """Each offer's p10, p50 and p90 on each machine is what its own bill comes to, to the rounding of the lines."""
    usd, accelerators_per_instance, term = zip(*priced, strict=True)
    runs = [replace(EVERYTHING, cluster=cluster(count)) for count, _ in machines]
    spreads = [Range(hours / 2, hours, hours * 3) for _, hours in machines]
    energy = np.linspace(200.0, 300.0, len(machines) * len(priced)).reshape(len(machines), len(priced))
    prices = OfferPrices(np.array(usd), np.array(accelerators_per_instance), np.array(term), np.zeros(len(priced), dtype=np.int64))
    found = price_offers(runs, by_percentile([spreads]), energy, 0.1, prices)
    for (row, column), energy_mwh in np.ndenumerate(energy):
        rate, instance, term_hours = priced[column]
        one = replace(runs[row], billing=Billing(rate, instance, term_hours))
        expected = total_usd(one, spreads[row], float(energy_mwh), 0.1, checkpoint_interval_hours(one))
        asked = (found.p10[row, column], found.p50[row, column], found.p90[row, column])
        assert asked == pytest.approx((expected.p10, expected.p50, expected.p90), abs=0.005 * LINES)


def test_whole_instances_and_spares_are_billed() -> None:
    """100 accelerators take 13 instances of 8 and 2 of 72; 10 % spares are one node of 8 and a quarter, so one."""
    asked = run(cluster=cluster(100), failures=failures(spare_share=0.1))
    prices = OfferPrices(np.ones(3), np.array([1, 8, 72]), np.zeros(3), np.zeros(3, dtype=np.int64))
    assert price_offers([asked], by_percentile([[Range.exactly(2.0)]]), np.zeros((1, 3)), 0.1, prices).p50[0].tolist() == [216, 224, 304]


def test_an_offer_is_billed_for_the_hours_in_its_own_network() -> None:
    """Two instances of 8 for 2 hours in one network and 5 in the other."""
    prices = OfferPrices(np.ones(3), np.array([8, 8, 8]), np.zeros(3), np.array([0, 1, 0]))
    hours = by_percentile([[Range.exactly(2.0)], [Range.exactly(5.0)]])
    assert price_offers([run(cluster=cluster(16))], hours, np.zeros((1, 3)), 0.1, prices).p50[0].tolist() == [32, 80, 32]
