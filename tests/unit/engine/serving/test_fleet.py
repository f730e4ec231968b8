"""Fleets: whole replicas in whole instances, and which configuration of a replica costs least then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.serving.requirements import EngineLimits, MeanRequest, Replicas, ServingMachine, ServingRates, WeightFormat
from service.domain.training.model import Experts, Transformer
from service.engine.serving.fleet import (
    RentalUnit,
    ServingDemand,
    TimedReplicas,
    cheapest_configuration,
    fleet_token_costs,
    mean_requests_per_s,
    paid_accelerators,
    prefill_tokens_per_s,
    size_fleet,
    time_replicas,
    usd_per_month,
)
from service.engine.training.inference.model import ServingSetup, describe_served_model
from service.engine.training.inference.roofline import prefill_s, replica_speed
from tests.unit.engine.builders import H100

USUAL = ServingRates("hopper", 0.8, 0.5, 0.7, 0.6, 1e-5, 1e-5, 1e-3, Range(0.8, 1.0, 1.2), Range(0.4, 0.8, 1.2), Range(0.4, 0.8, 1.2), "")
LLAMA_8B = Transformer(32, 4096, 32, 8, 128, 14_336, 128_256)
MIXTRAL = Transformer(32, 4096, 32, 8, 128, 14_336, 32_000, experts=Experts(8, 2, 14_336))
NODES = RentalUnit(8, float("inf"))


def service(model: Transformer = LLAMA_8B, **changes: Any) -> ServingSetup:
    asked = MeanRequest(**{"prompt_tokens": 1000.0, "output_tokens": 500.0, **changes})
    machine = ServingMachine(H100, USUAL, EngineLimits(0.9, 2e9, 2048, 8192, 16))
    return ServingSetup(describe_served_model(model), WeightFormat("bf16", 16, 2.0, 2.0, 2.0, ("bf16",), ""), machine, asked)


def best(found: TimedReplicas, rate: float | None, rent: RentalUnit = NODES) -> TimedReplicas:
    chosen = cheapest_configuration(found, ServingDemand(rate, 0.6), rent)
    assert chosen is not None
    return chosen


@pytest.mark.parametrize(
    ("accelerators", "replicas", "instance", "paid"),
    [(2, 3, 8, 8), (2, 5, 8, 16), (8, 2, 8, 16), (16, 1, 8, 16), (12, 2, 8, 32), (4, 3, 10, 20), (1, 7, 1, 7)],
)
def test_whole_instances_are_paid_for(accelerators: int, replicas: int, instance: int, paid: int) -> None:
    """Several replicas share an instance as far as they fit whole; a replica over several instances shares none."""
    assert paid_accelerators(accelerators, replicas, instance) == paid


def test_a_rate_is_carried_by_whole_replicas_at_the_load_factor() -> None:
    """Just above what two replicas of 2 carry takes three, in one instance of 8; the bill is that instance's."""
    found = time_replicas(service())
    two = found.select(int(np.flatnonzero((found.replicas.accelerators == 2) & (found.replicas.tensor == 2))[0]))
    able = 0.6 * float(two.speed.requests_per_s)
    demand = ServingDemand(2.01 * able, 0.6)
    paid = size_fleet(two, demand, NODES)
    assert (float(paid.replicas), float(paid.accelerators)) == (3, 8)
    assert usd_per_month(paid, 2.5) == 8 * 2.5 * 730
    assert float(fleet_token_costs(two, demand, NODES, 2.5).usd_per_request) == pytest.approx(8 * 2.5 / 3600 / (2.01 * able))
    assert float(size_fleet(two, demand, NODES, share=0.5).replicas) == 5


def test_without_a_rate_replicas_fill_their_instances() -> None:
    """A request costs the time of its replica at the load factor."""
    chosen = best(time_replicas(service()), None)
    usd = 2.5 * float(chosen.replicas.accelerators) / 3600 / (0.6 * float(chosen.speed.requests_per_s))
    assert float(fleet_token_costs(chosen, ServingDemand(None, 0.6), NODES, 2.5).usd_per_request) == pytest.approx(usd)


def test_of_equal_bills_the_quickest_is_taken() -> None:
    """A rate that any replica carries: the whole instance is paid anyway, so as many ranks as there are and one sequence at once."""
    chosen = best(time_replicas(service()), 1e-3)
    assert (int(chosen.replicas.tensor), int(chosen.replicas.batch)) == (8, 1)
    assert int(best(time_replicas(service()), 1e-3, RentalUnit(1, 1.0)).replicas.accelerators) == 1


def test_replicas_stay_where_links_are_known_and_as_large_as_asked() -> None:
    """No more accelerators than are joined; only the counts that are named; nothing where both leave nothing."""
    found = time_replicas(service())
    assert int(best(found, None, RentalUnit(2, 2.0)).replicas.accelerators) <= 2
    chosen = cheapest_configuration(found, ServingDemand(None, 0.6, (4,)), NODES)
    assert chosen is not None
    assert int(chosen.replicas.accelerators) == 4
    assert cheapest_configuration(found, ServingDemand(None, 0.6, (4,)), RentalUnit(2, 2.0)) is None
    assert cheapest_configuration(time_replicas(service(tpot_s=1e-6)), ServingDemand(None, 0.6), NODES) is None


def test_speeds_are_at_the_median_of_what_is_reached() -> None:
    """Mixtures whose median lies at 0.8 of the prediction serve 0.8 of it and wait 1 / 0.8 as long."""
    one = service(MIXTRAL)
    found = time_replicas(one)
    predicted = replica_speed(one, found.replicas)
    assert found.speed.output_tokens_per_s == pytest.approx(0.8 * np.asarray(predicted.output_tokens_per_s))
    assert found.speed.input_tokens_per_s == pytest.approx(0.8 * np.asarray(predicted.input_tokens_per_s))
    assert found.speed.requests_per_s == pytest.approx(0.8 * np.asarray(predicted.requests_per_s))
    assert found.speed.tpot_s == pytest.approx(np.asarray(predicted.tpot_s) / 0.8)
    assert found.speed.ttft_s == pytest.approx(np.asarray(predicted.ttft_s) / 0.8)
    assert (found.relative.p10, found.relative.p50, found.relative.p90) == pytest.approx((0.5, 1.0, 1.5))
    first = found.select(0)
    alone = Replicas(first.replicas.accelerators, first.replicas.tensor, first.replicas.batch)
    assert prefill_tokens_per_s(first) == pytest.approx(0.8 * 1000 / float(prefill_s(one, alone)))


def test_nothing_is_tried_where_nothing_fits() -> None:
    """A model larger than the largest replica has no configuration."""
    assert len(np.ravel(time_replicas(service(replace(LLAMA_8B, layers=9999))).replicas.batch)) == 0


def test_a_month_has_730_hours() -> None:
    """2.628e9 tokens a month in requests of 1,000 are one request a second."""
    assert mean_requests_per_s(2.628e9, 1000) == pytest.approx(1.0)


@given(rate=st.floats(1e-4, 1e4), more=st.floats(1.0, 100.0), instance=st.sampled_from([1, 3, 8, 10]))
def test_more_requests_are_never_cheaper(rate: float, more: float, instance: int) -> None:
    """The least that is paid a month rises with the rate."""
    found, rent = time_replicas(service()), RentalUnit(instance, float("inf"))
    few, many = (float(size_fleet(best(found, each, rent), ServingDemand(each, 0.6), rent).accelerators) for each in (rate, rate * more))
    assert few <= many


def at(found: TimedReplicas, accelerators: int, tensor: int) -> TimedReplicas:
    """The largest batch of a configuration."""
    return found.select(int(np.flatnonzero((found.replicas.accelerators == accelerators) & (found.replicas.tensor == tensor))[0]))


@pytest.mark.parametrize(("accelerators", "instance", "replicas", "paid"), [(2, 8, 4, 8), (8, 8, 1, 8), (16, 8, 1, 16), (4, 10, 2, 10)])
def test_replicas_that_fill_an_instance(accelerators: int, instance: int, replicas: int, paid: int) -> None:
    """Without a rate: as many as fit whole, at least one, serving at the load factor what they reach."""
    chosen = at(time_replicas(service()), accelerators, 2)
    fleet = size_fleet(chosen, ServingDemand(None, 0.6), RentalUnit(instance, float("inf")), share=0.5)
    assert (float(fleet.replicas), float(fleet.accelerators)) == (replicas, paid)
    assert float(fleet.requests_per_s) == pytest.approx(replicas * 0.5 * 0.6 * float(chosen.speed.requests_per_s))


def test_half_the_throughput_makes_requests_twice_as_dear() -> None:
    """Without a rate the same machines serve half as many; at a rate the bill is that of the machines that are needed then."""
    chosen = at(time_replicas(service()), 2, 2)
    per_s = float(chosen.speed.requests_per_s)
    usd = [float(fleet_token_costs(chosen, ServingDemand(None, 0.6), NODES, 2.5, share).usd_per_request) for share in (1.0, 0.5)]
    assert usd == pytest.approx([2 * 2.5 / 3600 / (0.6 * per_s), 2 * 2.5 / 3600 / (0.3 * per_s)])
    rate = 4.01 * 0.6 * per_s  # five replicas of 2, or nine: two instances of 8, or three
    usd = [float(fleet_token_costs(chosen, ServingDemand(rate, 0.6), NODES, 2.5, share).usd_per_request) for share in (1.0, 0.5)]
    assert usd == pytest.approx([16 * 2.5 / 3600 / rate, 24 * 2.5 / 3600 / rate])


def test_the_cheapest_pays_for_the_fewest_accelerators_a_request() -> None:
    """Of all that are tried, none pays for fewer accelerators for each request that it serves."""
    found, demand = time_replicas(service(LLAMA_8B, tpot_s=0.02)), ServingDemand(None, 0.6)
    fleet = size_fleet(found, demand, NODES)
    in_time = np.asarray(found.speed.tpot_s) <= 0.02
    weights = np.asarray(fleet.accelerators / fleet.requests_per_s)
    chosen = size_fleet(best(found, None), demand, NODES)
    assert float(chosen.accelerators / chosen.requests_per_s) == pytest.approx(weights[in_time].min())
    assert weights[in_time].min() > weights.min()


@pytest.mark.parametrize(("prompt", "cached_share", "computed"), [(1000.0, 0.0, 1000), (1000.0, 0.25, 750), (0.0, 0.0, 1)])
def test_prefill_counts_what_no_cache_holds(prompt: float, cached_share: float, computed: float) -> None:
    """Prompt tokens that are computed, at least one, over the time of the prompt alone."""
    setup = service(prompt_tokens=prompt, cached_share=cached_share)
    chosen = at(time_replicas(setup), 2, 2)
    assert prefill_tokens_per_s(chosen) == pytest.approx(computed / float(prefill_s(setup, chosen.replicas)))
