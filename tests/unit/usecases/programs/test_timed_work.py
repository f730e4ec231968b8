"""What costs money takes time: overheads and risks on the calendar, runs that share accelerators, and the same in every trial."""

from __future__ import annotations

import copy
import itertools
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.engine.scenarios.program import draw_inputs, random_spec, simulate_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import ProgramAnswer, plan_program
from service.usecases.scenarios.trial_models import build_trial_model

OVERHEADS = ("sweeps", "data_pipeline", "evaluation", "debugging", "reruns")
RUN = {"model": {"params": "7B"}, "data": {"tokens": "400B"}}
PROGRAM: dict[str, Any] = {
    "name": "assistant",
    "start": "2027-01-04",
    "defaults": {"hardware": {"accelerator": "H100", "count": 128}, "price": {"usd_per_accelerator_hour": 2.5}},
    "tiers": [
        {"tier": "validation", "runs": [{"name": "small", "estimate": RUN}], "gate": {"decides": "to go on"}},
        {"tier": "production", "runs": [{"name": "main", "estimate": {**RUN, "data": {"tokens": "2T"}}}], "gate": {"decides": "release"}},
    ],
}
LATE = [{"name": name, "probability": 0.15, "days": 30} for name in ("a", "b", "c")] + [{"name": "d", "probability": 1.0, "days": 10}]
BESIDE = [{"name": name, "after": [], "estimate": RUN} for name in ("a", "b", "c")]


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def asked(**sections: Any) -> dict[str, Any]:
    found: dict[str, Any] = ProgramRequestSchema().load(copy.deepcopy(PROGRAM) | sections)
    return found


def planned(context: AppContext, **sections: Any) -> ProgramAnswer:
    return plan_program(context, asked(**sections))


def side_by_side(**first: Any) -> list[dict[str, Any]]:
    runs = copy.deepcopy(BESIDE)
    runs[0] |= first
    return [{"tier": "production", "runs": runs, "gate": {"decides": "release"}}]


def dates(answer: ProgramAnswer) -> dict[str, tuple[date, date]]:
    return {entry.what: (entry.start, entry.finish) for entry in answer.schedule.calendar}


def days_to_finish(answer: ProgramAnswer) -> int:
    return (answer.schedule.finish.p50 - answer.schedule.start).days


def run_days(answer: ProgramAnswer) -> float:
    return sum(block.use.wall_clock_hours.p50 for tier in answer.plan.tiers for block in tier.runs) / 24


def trial_hours(context: AppContext, trials: int = 4000, **sections: Any) -> Any:
    model = build_trial_model(context, "program", asked(**sections), (), {}).model
    rng = np.random.default_rng(5)
    return simulate_program(model, draw_inputs(random_spec(model), trials, rng), {}, rng, causes=False).hours  # type: ignore[arg-type]


# Overheads


def test_five_overheads_of_as_much_as_the_runs_take_five_times_as_long_again(context: AppContext) -> None:
    """Each costs what the runs cost, on the same machine, so the program ends later by five times the runs' time."""
    plain, loaded = planned(context), planned(context, overhead=dict.fromkeys(OVERHEADS, 1.0))
    assert days_to_finish(loaded) - days_to_finish(plain) == pytest.approx(5 * run_days(plain), rel=0.12, abs=2)
    runs_usd = sum(float(tier.cost_usd) for tier in plain.plan.tiers)
    assert float(sum(line.usd for line in loaded.plan.lines if line.line.startswith("overhead"))) == pytest.approx(5 * runs_usd)


def test_sweeps_and_data_come_before_the_runs_evaluation_debugging_and_reruns_after_them(context: AppContext) -> None:
    """Tier by tier, one after the other; the gate waits for the last."""
    found = dates(planned(context, overhead=dict.fromkeys(OVERHEADS, 1.0)))
    order = ["overhead sweeps", "overhead data pipeline", "small", "overhead evaluation", "overhead debugging", "overhead reruns"]
    for earlier, later in itertools.pairwise(order):
        assert found[f"validation: {earlier}"][1] <= found[f"validation: {later}"][0]
    assert found["gate: validation"][0] >= found["validation: overhead reruns"][1]
    assert found["production: overhead sweeps"][0] >= found["gate: validation"][1]


def test_what_runs_beside_takes_no_time(context: AppContext) -> None:
    """`blocking` false: its cost, without a day; the default is named."""
    beside = planned(context, overhead={"debugging": {"share": 1.0, "blocking": False}})
    assert days_to_finish(beside) == days_to_finish(planned(context))
    assert "production: overhead debugging" not in dates(beside)
    assumed = {each.field: each.value for each in planned(context, overhead={"debugging": 1.0}).assumptions}
    assert assumed["overhead.blocking"] is True
    assert "overhead.blocking" not in {each.field for each in beside.assumptions}


def test_an_amount_takes_the_time_it_buys(context: AppContext) -> None:
    """As the share of the runs' cost that it comes to; of one tier where it names one."""
    runs_usd = sum(float(tier.cost_usd) for tier in planned(context).plan.tiers)
    share = planned(context, overhead={"reruns": 0.5})
    amount = planned(context, overhead={"reruns": {"usd": round(runs_usd / 2, 2)}})
    assert days_to_finish(amount) == days_to_finish(share)
    validation = dates(planned(context, overhead={"reruns": {"share": 0.5, "tier": "validation"}}))
    assert "validation: overhead reruns" in validation
    assert "production: overhead reruns" not in validation


def test_the_burn_plan_spends_an_overhead_when_it_is_done(context: AppContext) -> None:
    """All of the budget, to the cent; and later than where it is spent beside the runs."""
    after, beside = (planned(context, overhead={"reruns": {"share": 1.0, "blocking": blocking}}) for blocking in (True, False))
    for answer in (after, beside):
        assert float(sum(week.usd for week in answer.burn_plan)) == pytest.approx(answer.plan.total_usd.p50, abs=0.005)
    assert len(after.burn_plan) > len(beside.burn_plan)
    assert after.burn_plan[0].usd < beside.burn_plan[0].usd


# Risks


def test_redoing_production_almost_for_certain_takes_its_time_again(context: AppContext) -> None:
    """A risk of 99 % to lose all of production: the median finish is later by production's time, and the deadline is not met."""
    risk = {"name": "lost", "probability": 0.99, "tier": "production", "cost_share_of_tier": 1.0}
    plain, risky = planned(context), planned(context, risks=[risk])
    production = plain.plan.tiers[-1].use.wall_clock_hours.p50 / 24
    assert days_to_finish(risky) - days_to_finish(plain) == pytest.approx(production, rel=0.12, abs=1.5)
    deadline = (plain.schedule.finish.p90 + timedelta(days=1)).isoformat()
    safe, late = planned(context, deadline=deadline).schedule, planned(context, deadline=deadline, risks=[risk]).schedule
    assert safe.deadline_probability is not None
    assert late.deadline_probability is not None
    assert safe.deadline_probability > 0.9
    assert late.deadline_probability < safe.deadline_probability - 0.4


def test_risks_that_depend_on_each_other_are_late_together(context: AppContext) -> None:
    """Fully correlated, the finish's p90 has all of their days and its median rather none; a risk that is certain depends on nothing."""
    apart = planned(context, risks=LATE)
    together = planned(context, risks=LATE, risk_correlation=1.0)
    pair = planned(context, risks=LATE, risk_correlation=[{"risks": ["a", "b"], "correlation": 1.0}])
    assert together.schedule.finish.p50 <= apart.schedule.finish.p50
    assert (together.schedule.finish.p90 - apart.schedule.finish.p90).days > 25
    assert (pair.schedule.finish.p90 - apart.schedule.finish.p90).days > 10
    assert planned(context, risks=LATE, risk_correlation=0.0).schedule.finish == apart.schedule.finish


def test_days_of_a_risk_are_its_own(context: AppContext) -> None:
    """Stated days instead of the share of the runs; none where 0 is stated; an unlikely risk moves the p90 alone."""
    base = {"name": "delivery", "tier": "validation", "cost_share_of_tier": 0.5}
    none = planned(context, risks=[{**base, "probability": 1.0, "days": 0}])
    assert days_to_finish(none) == days_to_finish(planned(context))
    certain = planned(context, risks=[{**base, "probability": 1.0, "days": 30}])
    assert days_to_finish(certain) - days_to_finish(none) in {29, 30, 31}
    rare = planned(context, risks=[{**base, "probability": 0.3, "days": {"p10": 20, "p50": 30, "p90": 45}}])
    assert days_to_finish(rare) - days_to_finish(none) < 10
    assert (rare.schedule.finish.p90 - none.schedule.finish.p90).days > 15


@pytest.mark.parametrize("step", range(4))
def test_a_worse_world_never_makes_the_deadline_more_likely(context: AppContext, step: int) -> None:
    """Likelier or longer risks, larger overheads: less likely, or as likely, each time."""
    deadline = (planned(context).schedule.finish.p50 + timedelta(days=12)).isoformat()
    worlds: list[dict[str, Any]] = []
    for at in (step, step + 1):
        likelier = {"name": "r", "probability": (0.0, 0.2, 0.5, 0.9, 1.0)[at], "tier": "validation", "days": 20}
        longer = {"name": "r", "probability": 0.5, "days": (1, 5, 10, 20, 40)[at]}
        worlds += [{"risks": [likelier]}, {"risks": [longer]}, {"overhead": {"debugging": (0.0, 0.2, 0.5, 0.8, 1.0)[at]}}]
    chances = [planned(context, deadline=deadline, **world).schedule.deadline_probability or 0.0 for world in worlds]
    for better, worse in zip(chances[:3], chances[3:], strict=True):
        assert worse <= better + 0.01


# Pools


def test_runs_that_do_not_fit_wait_and_the_plan_says_for_whom(context: AppContext) -> None:
    """Three runs of 128 side by side on 128: one after the other, with the least that would help."""
    shared, roomy = (
        planned(context, tiers=side_by_side()),
        planned(context, tiers=side_by_side(), pools=[{"accelerator": "H100", "count": 384}]),
    )
    (use,) = shared.schedule.pools
    assert use.accelerators == 128
    assert [(wait.run, wait.waits_for) for wait in use.waits] == [
        ("production: b", ("production: a",)),
        ("production: c", ("production: b",)),
    ]
    assert use.least_useful is not None
    assert use.one_more_node is not None
    assert (use.least_useful.added, use.one_more_node.added, use.one_more_node.days_saved) == (128, 8, 0)
    assert use.least_useful.days_saved == pytest.approx(run_days(shared) / 3, abs=0.5)
    assert any("waits" in text and "share 128 accelerators" in text for text in shared.warnings)
    assert days_to_finish(shared) > 2 * days_to_finish(roomy)
    assert roomy.schedule.pools[0].waits == ()
    assert shared.plan.total_usd == roomy.plan.total_usd


def test_priority_decides_who_goes_first(context: AppContext) -> None:
    """The first stated goes last."""
    found = dates(planned(context, tiers=side_by_side(priority=5)))
    assert found["production: b"][0] < found["production: c"][0] < found["production: a"][0]


@pytest.mark.parametrize(
    ("pools", "pointer"),
    [
        ([{"accelerator": "H100", "count": 64}], "/tiers/0/runs/0"),
        ([{"accelerator": "H100", "count": 384, "from": "2027-02-01", "to": "2027-01-01"}], "/pools/0/to"),
        ([{"name": "x", "accelerator": "H100", "count": 384}, {"name": "x", "accelerator": "A100", "count": 8}], "/pools/1/accelerator"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(context: AppContext, pools: list[dict[str, Any]], pointer: str) -> None:
    """Where it stands."""
    with pytest.raises(InvalidRequest) as caught:
        planned(context, tiers=side_by_side(), pools=pools)
    assert caught.value.pointer == pointer


def test_a_pool_is_named_by_the_runs_that_take_it(context: AppContext) -> None:
    """A run on the second pool does not wait for the first; a name that is none is refused."""
    pools = [{"name": name, "accelerator": "H100", "count": 128} for name in ("north", "south")]
    tiers = side_by_side(pool="north")
    tiers[0]["runs"][1] |= {"pool": "south"}
    tiers[0]["runs"][2] |= {"pool": "south"}
    waits = [wait.run for use in planned(context, tiers=tiers, pools=pools).schedule.pools for wait in use.waits]
    assert waits == ["production: c"]
    with pytest.raises(InvalidRequest, match="no pool is called 'west'"):
        planned(context, tiers=side_by_side(pool="west"), pools=pools)


# Trials


@pytest.mark.parametrize(
    "sections",
    [
        {"overhead": dict.fromkeys(OVERHEADS, 0.4)},
        {"risks": [{"name": "r", "probability": 0.6, "tier": "production", "cost_share_of_tier": 0.8}]},
        {"risks": [{"name": "r", "probability": 0.6, "days": {"p10": 10, "p50": 20, "p90": 40}}]},
        {"risks": LATE, "risk_correlation": 1.0},
        {"tiers": side_by_side()},
    ],
    ids=["overheads", "a share lost", "days lost", "days lost together", "a shared pool"],
)
def test_every_trial_takes_the_time_that_the_plan_does(context: AppContext, sections: dict[str, Any]) -> None:
    """Median and p90 of the trials, within what a run's own trials differ from its range by."""
    plan = planned(context, **sections)
    hours = trial_hours(context, **sections)
    assert np.median(hours) / 24 == pytest.approx(days_to_finish(plan) + 0.5, rel=0.06, abs=1)
    assert np.quantile(hours, 0.9) / 24 == pytest.approx((plan.schedule.finish.p90 - plan.schedule.start).days + 0.5, rel=0.12, abs=1.5)


def test_the_share_of_an_overhead_that_is_drawn_moves_its_time(context: AppContext) -> None:
    """Three times the planned share takes three times the overhead's time."""
    sections = {"overhead": {"debugging": 1.0}}
    model = build_trial_model(context, "program", asked(**sections), ("overhead.debugging",), {}).model
    spec = random_spec(model)

    def hours(share: float) -> float:
        rng = np.random.default_rng(5)
        values = {"overhead.debugging": np.full(200, share)}
        return float(np.median(simulate_program(model, draw_inputs(spec, 200, rng), values, rng, causes=False).hours))  # type: ignore[arg-type]

    assert hours(3.0) - hours(0.0) == pytest.approx(3 * (hours(1.0) - hours(0.0)), rel=1e-6)
    assert hours(1.0) == pytest.approx(2 * hours(0.0), rel=0.01)
