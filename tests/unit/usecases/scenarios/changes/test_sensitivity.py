"""Sensitivities: what moves cost and time, one input at a time and all of them together."""

from __future__ import annotations

from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.scenarios.registry import load_kind
from service.usecases.training.estimate import estimate
from tests.unit.usecases.comparison.comparing import selling
from tests.unit.usecases.requests import pointer_of
from tests.unit.usecases.scenarios.scenario_requests import PROGRAM, RUN, given, prepared, result_of

PRICE, TOKENS, MFU, COUNT = "price.usd_per_accelerator_hour", "data.tokens", "efficiency.mfu", "hardware.count"
INPUTS: dict[str, Any] = {
    PRICE: {"uniform": [1.5, 2.5]},
    TOKENS: {"triangular": [1e10, 2e10, 6e10]},
    MFU: {"normal": {"mean": 0.4, "sd": 0.03}},
}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings))


def found_for(context: AppContext, base: dict[str, Any] = RUN, **options: Any) -> dict[str, Any]:
    return result_of(context, given("sensitivity", base, "program" if "tiers" in base else "estimate", **options))


def refused(context: AppContext, base: dict[str, Any] = RUN, **options: Any) -> str:
    """Where the problem points that the request has before anything is evaluated."""
    return pointer_of(lambda: load_kind("sensitivity").prepare(context, given("sensitivity", base, **options)))


def indices_of(found: dict[str, Any], output: str) -> dict[str, dict[str, Any]]:
    return {row["input"]: row for row in found["sobol"]["outputs"][output]["inputs"]}


def test_a_bar_is_the_requests_own_estimate_at_an_inputs_low_and_high(context: AppContext) -> None:
    """The 10th and 90th percentile, the others as they are."""
    found = found_for(context, inputs={PRICE: {"uniform": [1.0, 3.0]}}, points=0)
    (bar,) = found["tornado"]
    assert (bar["low"], bar["high"]) == pytest.approx((1.2, 2.8))
    at_high = estimate(context, EstimateRequestSchema().load(RUN | {"price": {"usd_per_accelerator_hour": bar["high"]}})).estimate
    assert bar["at_high"]["cost_usd"] == at_high.cost.total_usd.p50
    assert bar["at_high"]["wall_clock_hours"] == bar["at_low"]["wall_clock_hours"] == found["base"]["wall_clock_hours"]
    assert bar["swing_usd"] == pytest.approx(bar["at_high"]["cost_usd"] - bar["at_low"]["cost_usd"])
    assert found["sobol"] is None


def test_bars_stand_by_what_they_move_of_the_cost(context: AppContext) -> None:
    """The widest first."""
    found = found_for(context, inputs=INPUTS, points=0)
    assert [bar["input"] for bar in found["tornado"]] == [TOKENS, PRICE, MFU]
    swings = [bar["swing_usd"] for bar in found["tornado"]]
    assert swings == sorted(swings, reverse=True)


def test_swing_moves_every_number_the_base_states(context: AppContext) -> None:
    """By a share down and up, whole where it is, counts by nodes; what the field does not take is null, texts with suffixes are numbers."""
    base = RUN | {"efficiency": {"mfu": 0.95}, "overhead": {"evaluation": 0.0}}
    found = found_for(context, base, swing=0.2)
    bars = {bar["input"]: bar for bar in found["tornado"]}
    assert set(bars) == {"model.params", TOKENS, COUNT, PRICE, MFU}
    assert (bars[COUNT]["low"], bars[COUNT]["high"]) == (48, 80)
    assert bars[TOKENS]["low"] == 16_000_000_000
    assert (bars[MFU]["high"], bars[MFU]["at_high"]["cost_usd"], bars[MFU]["swing_usd"]) == (None, None, None)
    assert found["tornado"][-1]["input"] == MFU


@pytest.mark.parametrize(
    ("hardware", "ends"),
    [
        ({"accelerator": "H100", "count": 256}, (232, 280)),
        ({"accelerator": "H100", "count": 16}, (8, 24)),  # a node at least
        ({"accelerator": "H100", "count": 256, "accelerators_per_node": 4}, (232, 280)),
        ({"accelerator": "H100", "count": 8}, (7, 9)),  # one node moves by accelerators
        ({"accelerator": "H100", "count": 20}, (18, 22)),  # and so do counts of no whole nodes
    ],
)
def test_counts_move_by_whole_nodes(context: AppContext, hardware: dict[str, Any], ends: tuple[int, int]) -> None:
    """230 or 282 accelerators divide into bad layouts, and more of them would seem to take longer."""
    (bar,) = (bar for bar in found_for(context, RUN | {"hardware": hardware}, swing=0.1)["tornado"] if bar["input"] == COUNT)
    assert (bar["low"], bar["high"]) == ends
    if hardware["count"] == 256:
        assert bar["at_low"]["wall_clock_hours"] > bar["at_high"]["wall_clock_hours"]


def test_the_count_of_a_programs_run_moves_by_whole_nodes_of_the_defaults(context: AppContext) -> None:
    """A run that states no accelerator has that of the defaults."""
    request = given("sensitivity", PROGRAM | {"defaults": {"hardware": {"accelerator": "H100", "count": 64}}}, "program", swing=0.1)
    assert load_kind("sensitivity").prepare(context, request).request["swung"]["defaults.hardware.count"] == [56, 72]


def test_what_multiplies_has_the_indices_of_a_product(context: AppContext) -> None:
    """Cost is price x tokens / MFU but for what is held: shares are those of the inputs' relative variances, which nearly add up to 1.

    Squared coefficients of variation: price 1/48, tokens 7/162, MFU 0.0056.
    """
    base = RUN | {"storage": {"usd_per_tb_month": 0.0}}
    rows = indices_of(found_for(context, base, inputs=INPUTS, points=1024), "cost_usd")
    price, tokens, mfu = (0.5**2 / 12 * 4) / 4 / 2**2 * 4, 7 / 54, 0.0056
    whole = (1 + price) * (1 + tokens) * (1 + mfu) - 1
    for path, share in ((PRICE, price), (TOKENS, tokens), (MFU, mfu)):
        assert rows[path]["first_order"] == pytest.approx(share / whole, abs=0.04)
        assert rows[path]["first_order_interval"][0] <= rows[path]["first_order"] <= rows[path]["first_order_interval"][1]
    assert 0.9 < sum(row["first_order"] for row in rows.values()) <= 1.01


def test_time_does_not_depend_on_the_price(context: AppContext) -> None:
    """Its share of the variance of the hours is 0."""
    rows = indices_of(found_for(context, inputs=INPUTS, points=64), "wall_clock_hours")
    assert (rows[PRICE]["first_order"], rows[PRICE]["total"]) == (0.0, 0.0)
    assert rows[TOKENS]["total"] > 0.8


def test_the_order_of_the_inputs_changes_nothing(context: AppContext) -> None:
    """The answers are the same to the bit."""
    assert found_for(context, inputs=INPUTS, points=32) == found_for(context, inputs=dict(reversed(INPUTS.items())), points=32)


def test_the_same_seed_gives_the_same_and_another_another(context: AppContext) -> None:
    """Of the indices; the tornado has no chance in it."""
    first, again, other = (found_for(context, inputs=INPUTS, points=32, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first["tornado"] == other["tornado"]
    assert first["sobol"] != other["sobol"]


def test_inputs_that_count_are_drawn_whole(context: AppContext) -> None:
    """A count between 8 and 64 is one of 57."""
    found = found_for(context, inputs={COUNT: {"uniform": [8, 64]}}, points=0)
    assert (found["tornado"][0]["low"], found["tornado"][0]["high"]) == (14, 58)


def test_points_without_an_answer_are_told(context: AppContext) -> None:
    """Where they are few they are left out, where they are many there are no indices."""
    base = {name: section for name, section in RUN.items() if name != "efficiency"} | {"hardware": {"accelerator": "H100", "count": 8}}
    few = {"model.params": {"choice": [10**9, 2 * 10**9, 10**13], "weights": [20, 20, 1]}}
    found = found_for(context, base, inputs=few, points=64)
    assert found["sobol"] is not None
    assert any("have no answer and are left out" in warning for warning in found["warnings"])
    many = {"model.params": {"choice": [10**9, 10**13]}}
    assert found_for(context, base, inputs=many, points=16)["sobol"] is None


def test_a_base_without_an_answer_fails_with_its_reason(context: AppContext) -> None:
    """Nothing can be compared with it; a program of many runs is evaluated by its workers alone, and they say so."""
    runs = [{"name": f"run {at}", "estimate": {"model": {"params": 10**13 + at}, "data": {"tokens": "1B"}}} for at in range(9)]
    base = PROGRAM | {"tiers": [{"tier": "production", "runs": runs}]}
    with pytest.raises(InvalidRequest, match="the base request has no answer"):
        found_for(context, base, inputs={"overhead.evaluation": {"uniform": [0, 0.1]}}, points=0)


def test_an_input_the_base_leaves_open_is_told(context: AppContext) -> None:
    """What is assumed there may be something else altogether."""
    found = found_for(context, inputs={"failures.mttf_hours_per_accelerator": {"p10": 20_000, "p50": 50_000, "p90": 90_000}}, points=0)
    assert "failures.mttf_hours_per_accelerator" in found["warnings"][0]


def test_programs_have_sensitivities_too(context: AppContext) -> None:
    """By paths into their tiers and what their runs share; shares, days and amounts in cents as well as plain numbers."""
    base = PROGRAM | {
        "risks": [{"name": "spike", "probability": 0.3, "cost_usd": 20_000}],
        "schedule": {"queue_days": 3},
    }
    inputs = {
        "tiers.0.runs.0.estimate.data.tokens": {"p10": 8e11, "p50": 1e12, "p90": 2e12},
        "risks.0.cost_usd": {"normal": {"mean": 20_000, "sd": 1234.567}},
        "risks.0.probability": {"uniform": [0.1, 0.5]},
        "schedule.queue_days": {"uniform": [1, 30]},
    }
    found = found_for(context, base, inputs=inputs, points=4)
    bars = {bar["input"]: bar for bar in found["tornado"]}
    assert found["tornado"][0]["input"] == "tiers.0.runs.0.estimate.data.tokens"
    assert bars["schedule.queue_days"]["at_high"]["hours_to_finish"] > bars["schedule.queue_days"]["at_low"]["hours_to_finish"] + 20 * 24
    assert found["sobol"]["outputs"]["cost_usd"]["inputs"][0]["input"] == "tiers.0.runs.0.estimate.data.tokens"


def test_points_are_a_power_of_two_and_said(context: AppContext) -> None:
    """Rounded up; the number of evaluations is that of the design and the tornado."""
    told = prepared(context, given("sensitivity", RUN, inputs=INPUTS, points=100))
    assert told.units == 1 + 2 * 3 + 128 * (3 + 2)
    assert {note["field"]: note["value"] for note in told.request["assumptions"]}["points"] == 128


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({}, "/inputs"),
        ({"inputs": {"price.usd": {"uniform": [1, 2]}}}, "/inputs/price.usd"),
        ({"inputs": {PRICE: {"normal": {"mean": 2, "sd": -1}}}}, f"/inputs/{PRICE}"),
        ({"inputs": {PRICE: {"normal": {"mean": 2, "sd": 1}}}}, f"/inputs/{PRICE}"),  # reaches below 0
        ({"inputs": {MFU: {"uniform": [0.3, 1.2]}}}, f"/inputs/{MFU}"),
        ({"inputs": {"training.precision": {"uniform": [0.3, 1.2]}}}, "/inputs/training.precision"),
        ({"inputs": {"training.flash_attention": {"choice": [0, 1]}}}, "/inputs/training.flash_attention"),
        ({"inputs": INPUTS, "points": 100_000}, "/points"),
        ({"inputs": {f"a.b{index}": {} for index in range(51)}}, "/inputs"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(context: AppContext, options: dict[str, Any], pointer: str) -> None:
    """Before anything is evaluated."""
    assert refused(context, **options) == pointer
