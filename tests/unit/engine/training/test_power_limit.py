"""Machines whose accelerators are limited in power."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.domain.quantities import Range
from service.domain.training.run import Axes
from service.engine.training.power_limit import limit_power, watts_at_limit
from service.engine.training.search.layout_search import choose_layout
from tests.unit.engine.builders import LLAMA_7B, cluster, training, utilisation

UTILISATION = utilisation()
TWICE = Range(1.8, 2.0, 2.2)


def test_work_on_the_device_takes_longer_and_exchanges_do_not() -> None:
    asked = training(axes=Axes(tensor=8, pipeline=1, data=2, micro_batch=1))
    plain, limited = (choose_layout(LLAMA_7B, asked, cluster(16), used).steps for used in (UTILISATION, limit_power(UTILISATION, TWICE)))
    assert limited.compute[0] == pytest.approx(2 * plain.compute[0])
    assert plain.total[0] < limited.total[0] < 2 * plain.total[0]
    assert limited.network[0] <= plain.network[0] * (1 + 1e-9)


def test_the_range_holds_that_of_the_limit() -> None:
    """Independent: distances add in squares; a limit that changes nothing leaves everything."""
    certain = replace(UTILISATION, spread=Range.exactly(1.0))
    found = limit_power(certain, TWICE).spread
    assert (found.p10, found.p90) == pytest.approx((2 / 2.2, 2 / 1.8))
    assert limit_power(UTILISATION, Range.exactly(1.0)) == UTILISATION


def test_the_nodes_own_power_stays() -> None:
    assert watts_at_limit(1000.0, 600.0, 0.5) == 700.0
