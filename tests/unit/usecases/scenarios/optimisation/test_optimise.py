"""Optimisation: the best accelerator, count, offer, start, size and commitment within constraints."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import DomainError, InvalidRequest
from service.engine.scenarios.optimisation import lognormal_mean, lognormal_quantile
from service.presets.scaling.laws import default_law
from service.usecases.comparison.compare import Comparison, compare
from service.usecases.scenarios.registry import load_kind
from service.usecases.training.estimate import estimate
from tests.unit.usecases.comparison.comparing import A100, H100, H200, WORKLOAD, selling
from tests.unit.usecases.requests import pointer_of
from tests.unit.usecases.scenarios.scenario_requests import PROGRAM, given, prepared, result_of, tally_of

# What a caller writes: the workload with hardware, which the search leaves aside.
BASE: dict[str, Any] = WORKLOAD | {"data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 8}}
START = date(2027, 1, 4)
COUNTS = [32, 64, 128]
DC = {"name": "dc1", "accelerator": "H100", "count": 64, "capex_usd_per_accelerator": 32000.0, "years": 4.0, "utilisation": 0.7}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings))


def optimised(context: AppContext, base: dict[str, Any] = BASE, **options: Any) -> dict[str, Any]:
    candidates = {"counts": COUNTS} | options.pop("candidates", {})
    constraints = {"start": START} | options.pop("constraints", {})
    return result_of(context, given("optimize", base, candidates=candidates, constraints=constraints, **options))


def all_options(context: AppContext, candidates: dict[str, Any] | None = None, **request: Any) -> list[Option]:
    asked = {"counts": COUNTS} | (candidates or {})
    constraints = {"start": START} | request.pop("constraints", {})
    found: Comparison = compare(context, {"workload": WORKLOAD, "candidates": asked, "constraints": constraints, "limit": 1000} | request)
    return [option for option in found.options if option.feasible]


def cost(option: Option, quantile: float | None = None) -> float:
    assert option.cost_usd is not None
    return lognormal_mean(option.cost_usd) if quantile is None else lognormal_quantile(option.cost_usd, quantile)


def hours(option: Option) -> float:
    assert option.time is not None
    return option.time.wall_clock_hours.p50


def test_the_best_is_the_comparisons_cheapest_by_mean_cost(context: AppContext) -> None:
    """Of every accelerator, count and offer; narrowing the checkpoint interval makes it no dearer, and hardly cheaper."""
    found = optimised(context)
    expected = min(all_options(context), key=cost)
    assert found["best"]["id"] == expected.id
    assert found["best"]["objective"] == pytest.approx(cost(expected), rel=1e-3)
    assert found["best"]["objective"] <= cost(expected)
    assert found["considered"] == 10 * len(COUNTS)


def test_a_quantile_of_cost_may_choose_otherwise_than_the_mean(context: AppContext) -> None:
    """It is the quantile's own least."""
    found = optimised(context, objective="cost_quantile", quantile=0.95)
    assert found["best"]["objective"] == pytest.approx(min(cost(option, 0.95) for option in all_options(context)), rel=1e-3)


def test_the_fastest_is_the_comparisons_fastest(context: AppContext) -> None:
    """Within a budget."""
    found = optimised(context, objective="time", constraints={"max_cost_usd": 120_000.0})
    expected = min(hours(option) for option in all_options(context, constraints={"max_cost_usd": 120_000.0}))
    assert found["best"]["wall_clock_hours"]["p50"] == pytest.approx(expected, rel=1e-3)
    assert found["best"]["cost_usd"]["p50"] <= 120_000
    assert found["infeasible"]["over_budget"] > 0


def test_the_front_is_what_no_option_beats(context: AppContext) -> None:
    """By brute force over mean cost, finish and carbon of everything compared."""
    options = all_options(context)
    points = {
        (option.id, option.count): (cost(option), hours(option), option.energy.tco2e) for option in options if option.energy is not None
    }

    def beaten(point: tuple[float, ...]) -> bool:
        return any(other != point and all(b <= a for a, b in zip(point, other, strict=True)) for other in points.values())

    front = {(row["id"], row["count"]) for row in optimised(context)["pareto_front"]}
    assert front == {name for name, point in points.items() if not beaten(point)}


def test_numbers_between_the_usual_ones_are_tried(context: AppContext) -> None:
    """Where the caller lists none: no multiple of a node costs less than the best by more than the gap."""
    limits = {"start": START, "deadline": date(2027, 2, 20)}
    found = result_of(context, given("optimize", BASE, candidates={"accelerators": ["H100"]}, constraints=limits))
    every = all_options(context, {"accelerators": [H100], "counts": list(range(8, 257, 8))}, constraints=limits)
    assert found["best"]["objective"] * (1 - found["gap"]["share"]) <= min(map(cost, every)) + 1e-6
    assert found["best"]["objective"] == pytest.approx(min(map(cost, every)), rel=0.02)
    assert found["gap"]["by"]["count"] == 0.0
    assert 0 <= found["gap"]["share"] < 0.001
    assert "refined" in found["gap"]["basis"]


def test_a_checkpoint_interval_of_the_callers_stays(context: AppContext) -> None:
    """It is then no choice; the one that is searched for costs less than another."""
    fixed = optimised(context, BASE | {"failures": {"checkpoint_interval_minutes": 600.0}})
    free = optimised(context)
    assert fixed["gap"]["by"]["checkpoint_interval"] == 0.0
    assert free["best"]["objective"] < fixed["best"]["objective"]


def test_a_deadline_rules_out_what_is_late_and_says_when_to_start_at_last(context: AppContext) -> None:
    """On the last day the deadline is still kept with the probability wanted, on the next it is not."""
    limits = {"deadline": date(2027, 3, 31), "min_deadline_probability": 0.8}
    best = optimised(context, constraints=limits)["best"]
    assert best["deadline_probability"] >= 0.8
    last = date.fromisoformat(best["latest_start"])
    for day, kept in ((last, True), (date.fromordinal(last.toordinal() + 1), False)):
        ids = {option.id for option in all_options(context, constraints={**limits, "start": day})}
        assert (best["id"] in ids) == kept


def test_falling_prices_are_waited_for_as_long_as_the_deadline_allows(context: AppContext) -> None:
    """Rents fall by 40 % a year: the best starts on its last day, and costs so much less."""
    limits = {"deadline": date(2027, 12, 31)}
    now = optimised(context, constraints=limits, candidates={"pricing": ["on_demand"]})["best"]
    later = optimised(
        context,
        constraints=limits,
        candidates={"pricing": ["on_demand"]},
        starts={"latest": date(2027, 7, 4), "price_change_per_year": -0.4},
    )["best"]
    assert now["start"] == START.isoformat()
    assert later["start"] == min("2027-07-04", later["latest_start"])
    assert later["usd"] / now["usd"] == pytest.approx(0.6 ** (181 / 365), rel=0.01)
    assert later["finish"]["p50"] > "2027-07-04"


def test_a_budget_that_only_later_prices_keep_can_be_met(context: AppContext) -> None:
    """The limit is on what is paid."""
    cheapest = min(all_options(context, {"pricing": ["on_demand"]}), key=cost).cost_usd
    assert cheapest is not None
    options: dict[str, Any] = {"constraints": {"max_cost_usd": cheapest.p50 * 0.9}, "candidates": {"pricing": ["on_demand"]}}
    assert optimised(context, **options)["best"] is None
    options["constraints"] = {"max_cost_usd": cheapest.p50 * 0.9}
    options["candidates"] = {"pricing": ["on_demand"]}
    found = optimised(context, **options, starts={"latest": date(2027, 7, 4), "price_change_per_year": -0.4})
    assert found["best"]["cost_usd"]["p50"] <= cheapest.p50 * 0.9


def test_the_size_is_the_cheapest_that_reaches_the_loss(context: AppContext) -> None:
    """Against a fine grid of sizes, each with the tokens that the law says, within the gap."""
    law = default_law().law
    limits = {"start": START, "max_loss": 2.3}
    candidates = {"accelerators": ["H100"], "counts": [64], "pricing": ["on_demand"], "providers": ["aws"], "regions": ["us-east-1"]}
    found = result_of(
        context,
        given(
            "optimize",
            BASE,
            candidates=candidates,
            constraints=limits,
            model_size={"min_params": 500_000_000, "max_params": 8_000_000_000},
        ),
    )
    best = found["best"]
    assert law.E + law.A / best["params"] ** law.alpha + law.B / best["tokens"] ** law.beta == pytest.approx(2.3, abs=1e-6)
    fine = []
    for params in np.geomspace(5e8, 8e9, 60):
        left = 2.3 - law.E - law.A / params**law.alpha
        if left > 0:
            work = WORKLOAD | {
                "model": {"params": round(params), "kv_heads": 8},
                "data": {"tokens": round((law.B / left) ** (1 / law.beta))},
            }
            fine += [cost(option) for option in compare(context, {"workload": work, "candidates": candidates}).options if option.feasible]
    assert best["objective"] * (1 - found["gap"]["share"]) <= min(fine)
    assert best["objective"] == pytest.approx(min(fine), rel=0.03)
    assert any(note["field"] == "model_size.law" for note in found["assumptions"])


def test_capacity_is_committed_up_to_the_critical_ratio(context: AppContext) -> None:
    """Of an even demand between 0 and 100, a reservation at 2.40 against 2.95 on demand: the 19th percentile."""
    candidates = {"accelerators": ["H100"], "pricing": ["on_demand", "reserved_1y"], "providers": ["aws", "nebius"], "counts": [64]}
    found = optimised(context, candidates=candidates, demand={"accelerators": {"uniform": [0, 100]}})["commitment"]
    assert found["critical_ratios"]["reserved_1y"] == pytest.approx(1 - 2.40 / 2.95)
    assert found["committed_accelerators"] == pytest.approx(100 * (1 - 2.40 / 2.95), abs=0.02)
    assert [each["supply_option"] for each in found["slices"]] == ["reserved_1y", "on_demand"]
    assert found["usd_per_hour"] < found["usd_per_hour_on_demand_alone"] == pytest.approx(2.95 * 50, rel=1e-4)


def test_a_demand_in_steps_is_committed_to_exactly(context: AppContext) -> None:
    """The smallest step that is enough often enough."""
    candidates = {"accelerators": ["H100"], "pricing": ["on_demand", "reserved_1y"], "providers": ["aws", "nebius"], "counts": [64]}
    demand = {"accelerators": {"choice": [20, 60, 200], "weights": [0.1, 0.6, 0.3]}}
    assert optimised(context, candidates=candidates, demand=demand)["commitment"]["committed_accelerators"] == 60


def test_reservations_that_nobody_sells_are_said(context: AppContext) -> None:
    """Of all kinds where none are asked for, else of those; one that is sold is not missed."""
    demand = {"accelerators": {"uniform": [0, 100]}}

    def missing(**candidates: object) -> list[str]:
        asked = {"accelerators": ["H100"], "counts": [64]} | candidates
        return [warning for warning in optimised(context, candidates=asked, demand=demand)["warnings"] if "cannot commit" in warning]

    (everything,) = missing()
    assert everything.startswith(f"no reserved_3y price of {H100} is known")
    (asked,) = missing(pricing=["on_demand", "reserved_3y"])
    assert asked == everything
    assert missing(pricing=["on_demand", "reserved_1y"]) == []


def test_owned_hardware_is_an_option_and_a_way(context: AppContext) -> None:
    """Where it is the cheapest it is the best, and carries what is always needed."""
    cheap = DC | {"capex_usd_per_accelerator": 1000.0}
    found = optimised(
        context, candidates={"accelerators": ["H100"]}, on_prem=[cheap], demand={"accelerators": {"choice": [64]}}, constraints={}
    )
    assert (found["best"]["provider"], found["best"]["pricing"], found["best"]["latest_start"]) == ("on_prem:dc1", "owned", None)
    assert [each["supply_option"] for each in found["commitment"]["slices"]] == ["on_prem:dc1"]


def test_nothing_that_keeps_the_constraints_is_an_answer_too(context: AppContext) -> None:
    """No best, and what came nearest."""
    found = optimised(context, constraints={"max_cost_usd": 1000.0})
    assert found["best"] is None
    assert found["pareto_front"] == []
    assert found["infeasible"]["over_budget"] == found["considered"]
    assert any("over" in warning or "more than" in warning for warning in found["warnings"])


@pytest.mark.parametrize("failures", [{}, {"checkpoint_interval_minutes": 45.0}])
def test_the_checkpoint_interval_is_told_whoever_chose_it(context: AppContext, failures: dict[str, Any]) -> None:
    """Daly's where none is better, the caller's where one is stated: of the best and of all that nothing beats, as their estimates say."""
    found = optimised(context, BASE | {"failures": failures}, candidates={"accelerators": ["H100"], "pricing": ["on_demand"]})
    for row in found["pareto_front"]:
        machine = {"hardware": {"accelerator": row["accelerator"], "count": row["count"]}, "failures": failures}
        stated = given("monte_carlo", BASE | machine | {"price": {"usd_per_accelerator_hour": 2.0}}).base
        wanted = estimate(context, stated).estimate.reliability.checkpoint_interval_minutes
        assert row["checkpoint_interval_minutes"] == pytest.approx(wanted)
    assert found["best"]["checkpoint_interval_minutes"] > 0


def test_a_chunk_is_an_accelerator_at_a_size(context: AppContext) -> None:
    """Each gives the same however often and wherever it is made."""
    told = prepared(context, given("optimize", BASE, candidates={"accelerators": ["H200", "A100", "H100"], "counts": [64]}))
    assert told.request["accelerators"] == sorted([A100, H100, H200])
    assert told.chunks == 3
    assert tally_of(context, told, 1) == tally_of(context, told, 1)


def test_an_accelerator_nobody_sells_is_no_obstacle(context: AppContext) -> None:
    """The others are compared; alone it is the scenario's problem."""
    assert optimised(context, candidates={"accelerators": ["H100", "B200"]})["best"]["accelerator"] == H100
    with pytest.raises(DomainError):
        optimised(context, candidates={"accelerators": ["B200"]})


SIZES = {"min_params": 10**9, "max_params": 10**10}


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"objective": "cost_quantile"}, "/quantile"),
        ({"quantile": 0.9}, "/quantile"),
        ({"model_size": SIZES}, "/constraints/max_loss"),
        ({"constraints": {"max_loss": 2.0}}, "/model_size"),
        ({"model_size": SIZES, "constraints": {"max_loss": 1.0}}, "/constraints/max_loss"),
        ({"model_size": {"min_params": 10**10, "max_params": 10**9}, "constraints": {"max_loss": 2.2}}, "/model_size/min_params"),
        ({"constraints": {"start": START, "deadline": date(2027, 1, 1)}}, "/constraints/deadline"),
        ({"constraints": {"start": START}, "starts": {"latest": date(2027, 1, 1)}}, "/starts/latest"),
        ({"demand": {"accelerators": {"uniform": [-1, 10]}}}, "/demand/accelerators"),
        ({"demand": {"accelerators": {"normal": {"mean": 10, "sd": -2}}}}, "/demand/accelerators"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(context: AppContext, options: dict[str, Any], pointer: str) -> None:
    """Before anything is compared."""
    assert pointer_of(lambda: load_kind("optimize").prepare(context, given("optimize", BASE, **options))) == pointer


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        ({"evaluation": {"suites": [{"name": "mmlu", "samples": 100}]}}, "/base/evaluation"),
        ({"training": {"phases": [{"name": "all", "tokens": 10**12}]}}, "/base/training/phases"),
    ],
)
def test_parts_that_machines_are_not_compared_by_are_refused(context: AppContext, part: dict[str, Any], pointer: str) -> None:
    """Suites take another time on each machine; phases may have machines of their own."""
    assert pointer_of(lambda: load_kind("optimize").prepare(context, given("optimize", {**BASE, **part}))) == pointer


def test_a_program_is_no_base(context: AppContext) -> None:
    """One run is optimised."""
    with pytest.raises(InvalidRequest, match="estimate request"):
        load_kind("optimize").prepare(context, given("optimize", PROGRAM, "program"))


def test_an_unknown_accelerator_or_law_is_refused_at_once(context: AppContext) -> None:
    """With the names that are like it."""
    with pytest.raises(DomainError, match="H1000"):
        load_kind("optimize").prepare(context, given("optimize", BASE, candidates={"accelerators": ["H1000"]}))
    sizes = SIZES | {"law": "chinchila"}
    with pytest.raises(DomainError, match="chinchila"):
        load_kind("optimize").prepare(context, given("optimize", BASE, model_size=sizes, constraints={"max_loss": 2.2}))
