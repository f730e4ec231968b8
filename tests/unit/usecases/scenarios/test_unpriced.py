"""Scenarios over accelerators that nobody sells: everything but dollars, and a refusal of what is asked in dollars."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.cli.planning.scenario_result import render_result
from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import NoOffer, UnpricedAccelerator
from tests.unit.usecases.scenarios.scenario_requests import PROGRAM, RUN, given, prepared, result_of

STATED = "price.usd_per_accelerator_hour"
HARDWARE = {"accelerator": "H800", "count": 64}
UNPRICED: dict[str, Any] = {name: section for name, section in RUN.items() if name != "price"} | {"hardware": HARDWARE}
PRICED: dict[str, Any] = {**UNPRICED, "price": {"usd_per_accelerator_hour": 2.0}}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> AppContext:
    """A context with the shipped prices."""
    folder = tmp_path_factory.mktemp("data")
    found = build_context(load_settings({"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "error"}))
    found.store.migrate()
    return found


def test_trials_are_those_of_a_stated_price_without_their_cost(context: AppContext) -> None:
    """Hours, finish and their causes need no price."""
    unpriced, priced = (result_of(context, given("monte_carlo", base, trials=2000, seed=3)) for base in (UNPRICED, PRICED))
    for name in ("wall_clock_hours", "accelerator_hours", "time_drivers", "completion_probability"):
        assert unpriced[name] == priced[name], name
    assert (unpriced["cost_usd"], unpriced["planned"]["cost_usd"], unpriced["completed"]) == (None, None, None)
    assert unpriced["drivers"] == {}
    assert unpriced["summary"]["p50_usd"] is None
    assert STATED in unpriced["summary"]["text"]
    assert sum(STATED in warning for warning in unpriced["warnings"]) == 1
    assert "wall_clock_hours" in render_result(unpriced)


def test_a_program_ends_as_with_a_stated_price(context: AppContext) -> None:
    """Its trials count hours and dates."""
    base = {**PROGRAM, "defaults": {"hardware": HARDWARE}}
    priced = {**base, "defaults": {"hardware": HARDWARE, "price": {"usd_per_accelerator_hour": 2.0}}}
    ours, theirs = (result_of(context, given("monte_carlo", each, "program", trials=1000, seed=3)) for each in (base, priced))
    for name in ("wall_clock_hours", "accelerator_hours", "finish", "time_drivers"):
        assert ours[name] == theirs[name], name
    assert (ours["cost_usd"], ours["budget_probability"], ours["drivers"]) == (None, None, {})
    with pytest.raises(UnpricedAccelerator, match=STATED):
        prepared(context, given("monte_carlo", base, "program", trials=1000, budget_usd=1e6))


def test_a_budget_asks_for_the_price(context: AppContext) -> None:
    """Whether it is kept is a question about dollars."""
    with pytest.raises(UnpricedAccelerator, match=STATED) as refused:
        prepared(context, given("monte_carlo", UNPRICED, trials=1000, budget_usd=1e6))
    assert refused.value.pointer == "/base/price"


def test_a_price_that_is_drawn_is_a_price(context: AppContext) -> None:
    """A distribution in its place makes the cost known."""
    drawn = {STATED: {"uniform": [1.5, 2.5]}}
    found = result_of(context, given("monte_carlo", UNPRICED, trials=1000, distributions=drawn, budget_usd=1e9))
    assert found["cost_usd"]["p50"] > 0
    assert found["budget_probability"] == 1


def test_a_sensitivity_weighs_inputs_by_time(context: AppContext) -> None:
    """Tornado and indices of what is known."""
    inputs = {"efficiency.mfu": {"uniform": [0.3, 0.5]}, "data.tokens": {"uniform": [1.9e10, 2.1e10]}}
    found = result_of(context, given("sensitivity", UNPRICED, inputs=inputs, points=64))
    assert found["base"]["cost_usd"] is None
    assert [bar["input"] for bar in found["tornado"]] == ["efficiency.mfu", "data.tokens"]
    assert [bar["swing_usd"] for bar in found["tornado"]] == [None, None]
    assert set(found["sobol"]["outputs"]) == {"wall_clock_hours", "accelerator_hours", "hours_to_finish", "tco2e"}
    assert "efficiency.mfu moves it most" in found["summary"]["text"]
    assert "variance of the time" in render_result(found)


def test_a_sweep_shows_the_cells_that_have_a_price_and_those_that_have_none(context: AppContext) -> None:
    """The cheapest is among those with a price; without any the fastest is named."""
    axes = {"hardware.accelerator": ["H800", "H100"], "hardware.count": [64, 128]}
    found = result_of(context, given("sweep", UNPRICED, axes=axes))
    assert [row["cost_usd"] is None for row in found["rows"]] == [True, True, False, False]
    assert found["summary"]["p50_usd"] > 0
    alone = result_of(context, given("sweep", UNPRICED, axes={"hardware.count": [64, 128]}))
    assert "hardware.count 128" in alone["summary"]["text"]
    assert STATED in alone["summary"]["text"]
    assert "$" not in json.dumps(alone["summary"])
    assert "-" in render_result(alone)


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ({"accelerators": ["H800"]}, "state your own hardware in on_prem"),
        ({"providers": ["aws"], "accelerators": ["MI300X"]}, "candidates.providers"),
    ],
)
def test_an_optimisation_without_an_offer_is_refused_when_submitted(context: AppContext, candidates: dict[str, Any], words: str) -> None:
    """Not on the worker: nothing that it could find is sold."""
    with pytest.raises(NoOffer, match=words) as refused:
        prepared(context, given("optimize", UNPRICED, candidates=candidates))
    assert refused.value.pointer == "/candidates"


def test_owned_hardware_that_nobody_sells_can_be_optimised(context: AppContext) -> None:
    """Its cost is stated."""
    owned = {**HARDWARE, "capex_usd": 2e6, "amortization_months": 48}
    assert prepared(context, given("optimize", UNPRICED, candidates={"accelerators": ["H800"]}, on_prem=[owned])).chunks == 1
