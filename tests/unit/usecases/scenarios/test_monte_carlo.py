"""Monte Carlo of a request: what is refused, the plan found again where nothing is uncertain, the same result whoever does the chunks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.api.resources.programs import EXAMPLE as PROGRAM
from service.api.resources.training.estimate import EXAMPLE as RUN
from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.usecases.programs.plan import plan_program
from service.usecases.scenarios import monte_carlo
from service.usecases.scenarios.codec import pack_prepared, unpack_prepared
from service.usecases.scenarios.registry import PreparedScenario, ScenarioRequest
from service.usecases.training.estimate import estimate

PRICE = "price.usd_per_accelerator_hour"
CERTAIN_RUN: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 64},
    "efficiency": {"mfu": 0.4},
    "price": {"usd_per_accelerator_hour": 2.5},
    "failures": {"mttf_hours_per_accelerator": 5000},
}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> AppContext:
    """A context with the shipped prices."""

    folder = tmp_path_factory.mktemp("data")
    found = build_context(load_settings({"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "error"}))
    found.store.migrate()
    return found


def asked(base: dict[str, Any], **options: Any) -> ScenarioRequest:
    return build_request(ScenarioRequestSchema().load({"kind": "monte_carlo", "base": base, **options}))


def prepared(context: AppContext, base: dict[str, Any], **options: Any) -> PreparedScenario:
    """As workers get it: through JSON."""
    found = monte_carlo.prepare(context, asked(base, **options))
    return unpack_prepared(json.loads(json.dumps(pack_prepared(found))), f"{base} {options}")


def go_on() -> None:
    """Nobody asks for the end."""


def chunk(context: AppContext, found: PreparedScenario, index: int) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(monte_carlo.run_chunk(context, found, index, go_on)))
    return made


def result(context: AppContext, base: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The scenario's result, stopped where it is enough."""
    found = prepared(context, base, **options)
    tallies: list[dict[str, Any]] = []
    for index in range(found.chunks):
        tallies.append(chunk(context, found, index))
        if index + 1 in found.checkpoints and monte_carlo.is_sufficient(found, tallies):
            break
    return monte_carlo.finish(context, found, tallies)


def test_the_mean_of_a_run_that_only_fails_by_chance_is_the_estimate(context: AppContext) -> None:
    """Speed, time to failure and price stated, and no other cause: hours, cost and accelerator-hours within three standard errors."""
    found = result(context, CERTAIN_RUN, trials=100_000, early_stop=False)
    wanted = estimate(context, asked(CERTAIN_RUN).base).estimate
    for name, middle in (
        ("wall_clock_hours", wanted.time.wall_clock_hours.p50),
        ("accelerator_hours", wanted.time.accelerator_hours.p50),
        ("cost_usd", wanted.cost.total_usd.p50),
    ):
        assert abs(found[name]["mean"] - middle) <= 3 * found[name]["standard_error"] + 1e-5 * middle
    assert list(found["drivers"]) == ["failures"]
    assert 0.75 < found["drivers"]["failures"] < 0.95  # by their number; when each strikes is the rest


def test_the_median_of_an_uncertain_run_is_near_the_estimates(context: AppContext) -> None:
    """Within what failures beyond their median rate add."""
    found = result(context, RUN, trials=100_000)
    wanted = estimate(context, asked(RUN).base).estimate.time.wall_clock_hours
    assert found["wall_clock_hours"]["p50"] == pytest.approx(wanted.p50, rel=0.03)
    assert found["wall_clock_hours"]["p10"] == pytest.approx(wanted.p10, rel=0.05)
    assert found["wall_clock_hours"]["p90"] == pytest.approx(wanted.p90, rel=0.1)


def test_a_run_of_many_nodes_loses_between_them_in_trials_as_in_the_estimate(context: AppContext) -> None:
    """The median and the ends are the estimate's, with nothing but the goal stated; what runs differ by is blamed on how slow they are."""
    base = {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 128}}
    base |= {"price": {"usd_per_accelerator_hour": 2.0}}
    found = result(context, base, trials=50_000)
    wanted = estimate(context, asked(base).base).estimate
    assert wanted.throughput.effective_mfu < 0.9 * wanted.throughput.mfu.p50 * wanted.reliability.goodput
    for name, share in (("p10", 0.05), ("p50", 0.03), ("p90", 0.1)):
        assert found["wall_clock_hours"][name] == pytest.approx(getattr(wanted.time.wall_clock_hours, name), rel=share)
    assert found["time_drivers"]["throughput"] > 0.9


def certain_program() -> dict[str, Any]:
    tiers = [
        {
            "tier": tier,
            "runs": [{"name": "main", "repeat": repeat, "estimate": {"data": {"tokens": tokens}}}],
            "gate": {"decides": "more", "pass_probability": share, "sign_off_days": 2},
        }
        for tier, repeat, tokens, share in (("prototype", 4, "50B", 0.6), ("validation", 2, "200B", 0.7), ("production", 1, "2T", 0.9))
    ]
    return {
        "name": "certain",
        "start": "2027-01-04",
        "deadline": "2027-06-30",
        "defaults": {name: CERTAIN_RUN[name] for name in ("model", "hardware", "efficiency", "price", "failures")},
        "tiers": tiers,
        "overhead": {"sweeps": 0.1, "debugging": {"usd": 5000}},
        "reserves": {"evaluation_and_debugging": 0.0, "contingency": 0.0},
        "storage": {"dataset_tb": 40, "usd_per_tb_month": 20},
        "personnel": {"evaluation_hours": 400, "usd_per_hour": 90},
        "labelling": {"items": 1000, "usd_per_item": 2, "tier": "validation"},
    }


def test_the_mean_of_a_program_without_spread_is_its_gate_trees(context: AppContext) -> None:
    """Expected cost, cost with all gates passed, probability of completion; failures are the only chance beside the gates."""
    base = certain_program()
    found = result(context, base, trials=200_000, early_stop=False)
    wanted = plan_program(context, asked(base).base)
    cost, whole = found["cost_usd"], found["completed"]["cost_usd"]
    assert abs(cost["mean"] - float(wanted.plan.expected_usd)) <= 3 * cost["standard_error"]
    assert abs(whole["mean"] - wanted.plan.total_usd.p50) <= 3 * whole["standard_error"] + 1e-4 * whole["mean"]
    assert found["completion_probability"] == pytest.approx(wanted.plan.completion_probability, abs=0.004)
    assert found["finish"]["p50"] == wanted.schedule.finish.p50.isoformat()
    assert found["deadline_probability"] == 1.0


def test_the_mean_of_a_program_that_may_pivot_has_the_pivots_expected_cost(context: AppContext) -> None:
    """A gate that is failed half of the time goes on with another program."""
    base = certain_program()
    gates = [tier for tier in base["tiers"] if "gate" in tier]
    gates[0]["gate"] |= {
        "pass_probability": 0.5,
        "pivot": {"name": "smaller", "tiers": [{**base["tiers"][-1], "gate": {"decides": "release"}}]},
    }
    found = result(context, base, trials=100_000, early_stop=False)
    wanted = plan_program(context, asked(base).base).plan
    cost = found["cost_usd"]
    assert wanted.endings[0].pivot == "smaller"
    assert abs(cost["mean"] - float(wanted.expected_usd)) <= 3 * cost["standard_error"]


def test_a_programs_deadline_is_as_probable_as_the_plan_says(context: AppContext) -> None:
    """The contract's example, to five points: trials draw failures and the queue apart, the plan as one range."""
    base = {**PROGRAM, "deadline": "2027-02-15"}
    found = result(context, base, trials=50_000)
    wanted = plan_program(context, asked(base).base).schedule
    assert found["deadline_probability"] == pytest.approx(wanted.deadline_probability, abs=0.05)
    assert 0 < sum(found["drivers"].values()) <= 1 + 1e-9
    assert sum(one["share"] for one in found["statements"] if one["event"] == "deadline is missed") == pytest.approx(1.0, abs=0.05)


def test_chunks_done_in_any_order_and_twice_are_the_same(context: AppContext) -> None:
    """What a chunk gives depends on the request and its index alone."""
    found = prepared(context, PROGRAM, trials=200_000, seed=3)
    backwards = [chunk(context, found, index) for index in reversed(range(found.chunks))]
    again = [chunk(context, replace(found, key=""), index) for index in range(found.chunks)]
    assert again == backwards[::-1]
    assert monte_carlo.finish(context, found, again) == monte_carlo.finish(context, found, backwards)


def test_early_stop_is_judged_at_fixed_numbers_of_trials(context: AppContext) -> None:
    """After 1, 2, 4, … chunks, and earlier than all of them where that is sure enough."""
    found = prepared(context, CERTAIN_RUN, trials=10**9)
    assert found.checkpoints[:4] == (1, 2, 4, 8)
    assert found.chunks <= 2048
    assert result(context, CERTAIN_RUN, trials=10**9)["trials_done"] == found.units_per_chunk
    assert prepared(context, CERTAIN_RUN, trials=10**9, early_stop=False).checkpoints == ()


def test_a_price_that_is_drawn_makes_the_cost_uncertain_and_nothing_else(context: AppContext) -> None:
    """Uniform between 2 and 4 USD: the median is that of 3."""
    found = result(context, CERTAIN_RUN, trials=50_000, distributions={PRICE: {"uniform": [2.0, 4.0]}})
    wanted = estimate(context, asked({**CERTAIN_RUN, "price": {"usd_per_accelerator_hour": 3.0}}).base).estimate
    assert found["cost_usd"]["p50"] == pytest.approx(wanted.cost.total_usd.p50, rel=0.01)
    assert found["drivers"][PRICE] > 0.95
    assert PRICE not in {name for name, share in found["time_drivers"].items() if share > 0.01}


def test_a_count_that_is_drawn_takes_its_own_estimates(context: AppContext) -> None:
    """64 or 128 accelerators, half and half: hours in two lumps, cost nearly the same."""
    found = result(context, CERTAIN_RUN, trials=50_000, distributions={"hardware.count": {"choice": [64, 128]}})
    low, high = (estimate(context, asked({**CERTAIN_RUN, "hardware": {"accelerator": "H100", "count": count}}).base) for count in (128, 64))
    assert found["wall_clock_hours"]["p25"] == pytest.approx(low.estimate.time.wall_clock_hours.p50, rel=0.02)
    assert found["wall_clock_hours"]["p75"] == pytest.approx(high.estimate.time.wall_clock_hours.p50, rel=0.02)
    assert found["time_drivers"]["hardware.count"] > 0.95


def test_a_queue_and_price_regimes_are_taken(context: AppContext) -> None:
    """Waiting in an M/M/c pool adds its mean; two regimes make the price uncertain."""
    distributions = {
        "schedule.queue_hours": {"queue": {"slots": 4, "arrivals_per_hour": 0.3, "mean_hours": 10}},
        PRICE: {"regimes": {"calm_factor": 1, "scarce_factor": 2, "calm_hours": 50, "scarce_hours": 50}},
    }
    found = result(context, CERTAIN_RUN, trials=50_000, distributions=distributions)
    plain = result(context, CERTAIN_RUN, trials=50_000)
    assert found["wall_clock_hours"]["mean"] > plain["wall_clock_hours"]["mean"] + 1
    assert found["cost_usd"]["mean"] == pytest.approx(1.5 * plain["cost_usd"]["mean"], rel=0.02)
    assert found["drivers"]["price"] > 0.9


Options = dict[str, Any]


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"distributions": {PRICE: {"normal": {"mean": 2, "sd": -1}}}}, f"/distributions/{PRICE}"),
        ({"distributions": {PRICE: {"uniform": [4, 2]}}}, f"/distributions/{PRICE}"),
        ({"distributions": {PRICE: 3}}, f"/distributions/{PRICE}"),
        (
            {
                "distributions": {PRICE: 3, "failures.restart_minutes": {"uniform": [1, 2]}},
                "correlations": [{"between": [PRICE, "failures.restart_minutes"], "correlation": 0.5}],
            },
            f"/distributions/{PRICE}",
        ),
        ({"distributions": {"hardware.kount": {"uniform": [1, 2]}}}, "/distributions/hardware.kount"),
        (
            {"distributions": {"schedule.queue_hours": {"queue": {"slots": 1, "arrivals_per_hour": 1, "mean_hours": 2}}}},
            "/distributions/schedule.queue_hours",
        ),
        ({"distributions": {"hardware.count": {"choice": list(range(1, 400))}}}, "/distributions"),
        (
            {
                "distributions": {PRICE: {"uniform": [2, 4]}},
                "correlations": [{"between": [PRICE, "hardware.count"], "correlation": 0.5}],
            },
            "/correlations/0/between/1",
        ),
        (
            {
                "distributions": {name: {"uniform": [1, 2]} for name in (PRICE, "failures.restart_minutes", "failures.detection_minutes")},
                "correlations": [
                    {"between": [PRICE, "failures.restart_minutes"], "correlation": 0.9},
                    {"between": [PRICE, "failures.detection_minutes"], "correlation": 0.9},
                    {"between": ["failures.restart_minutes", "failures.detection_minutes"], "correlation": -0.9},
                ],
            },
            "/correlations",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_where_it_stands(context: AppContext, options: Options, pointer: str) -> None:
    """At once, before anything is evaluated."""
    with pytest.raises(InvalidRequest) as refused:
        monte_carlo.prepare(context, asked(CERTAIN_RUN, **options))
    assert refused.value.pointer == pointer


def test_a_heavy_tail_is_warned_of_where_its_shares_of_variance_say_nothing(context: AppContext) -> None:
    """A price of which one in a thousand is two thousand times the median; an ordinary one is nothing to warn of."""
    heavy, usual = (
        result(context, CERTAIN_RUN, trials=50_000, distributions={PRICE: {"lognormal": {"median": 2.5, "sigma": sigma}}})["warnings"]
        for sigma in (2.5, 0.3)
    )
    assert next(warning for warning in heavy if "heavy tail" in warning).startswith("cost_usd has a heavy tail")
    assert not any("heavy tail" in warning for warning in usual)


def test_what_a_count_changes_is_not_put_down_to_failures(context: AppContext) -> None:
    """Half the accelerators take twice as long: failures, which are rare, are no more of a cause for that."""
    base = {name: section for name, section in CERTAIN_RUN.items() if name != "failures"} | {"data": {"tokens": "100B"}}
    found = result(context, base, trials=50_000, distributions={"hardware.count": {"choice": [32, 64]}})
    assert found["time_drivers"]["hardware.count"] > 0.95
    assert found["time_drivers"]["failure_rate"] < 0.02


def test_what_is_planned_waits_in_the_queue_too(context: AppContext) -> None:
    """Trials' hours run from the order on, and so do those they are held against."""
    waiting = result(context, {**CERTAIN_RUN, "schedule": {"queue_hours": 24}})
    concurrency = result(context, CERTAIN_RUN)
    for waits, none in ((waiting["planned"]["wall_clock_hours"], concurrency["planned"]["wall_clock_hours"]), _means(waiting, concurrency)):
        assert waits == pytest.approx(none + 24, rel=1e-6)


def _means(*found: dict[str, Any]) -> tuple[float, ...]:
    return tuple(one["wall_clock_hours"]["mean"] for one in found)


def test_what_was_not_chosen_is_said(context: AppContext) -> None:
    """Number of trials, seed, and what every trial takes for granted."""
    found = result(context, CERTAIN_RUN)
    said = {one["field"] for one in found["assumptions"]}
    assert {"trials", "seed", "early_stop", "trials.failures"} <= said
    assert found["price_snapshot"]


def test_a_chunk_asks_often_whether_to_go_on(context: AppContext) -> None:
    """Once a block, and whoever asks may end it."""
    found = prepared(context, CERTAIN_RUN)
    steps: list[int] = []
    monte_carlo.run_chunk(context, found, 0, _counting(steps))
    assert len(steps) >= found.units_per_chunk // found.request["block"] == 2
    with pytest.raises(KeyboardInterrupt):
        monte_carlo.run_chunk(context, found, 0, _interrupted)


def _counting(steps: list[int]) -> Callable[[], None]:
    return lambda: steps.append(1)


def _interrupted() -> None:
    raise KeyboardInterrupt


def test_the_cause_of_missed_deadlines_is_named(context: AppContext) -> None:
    """A long queue before a run that is certain but for its failures."""
    start = {"start": "2027-01-04", "deadline": "2027-04-30"}
    waits = {"schedule.queue_hours": {"lognormal": {"median": 300, "sigma": 1.0}}}
    found = result(context, {**CERTAIN_RUN, "schedule": start}, trials=50_000, distributions=waits)
    assert 0 < found["deadline_probability"] < 1
    first = found["statements"][0]
    assert first["event"] == "deadline is missed"
    assert first["cause"] == "schedule.queue_hours"
    assert first["share"] > 0.9
    assert found["finish"]["p10"] <= found["finish"]["p50"] <= found["finish"]["p95"]
