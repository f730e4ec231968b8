"""A tier that is repeated where its gate is failed: in the calendar and in every trial."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from service.api.resources.programs import EXAMPLE
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.engine.scenarios.program import draw_inputs, random_spec, simulate_program
from service.formats.documents.render import render
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import ProgramAnswer, plan_program
from service.usecases.scenarios.trial_models import build_trial_model


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def asked(repeat: object = None, gate: int = 1, **fields: Any) -> dict[str, Any]:
    """The contract's example without reserves, one gate of which repeats its tier."""
    found = copy.deepcopy(EXAMPLE) | {"reserves": {"evaluation_and_debugging": 0.0, "contingency": 0.0}}
    found["tiers"][gate]["gate"] |= fields | ({} if repeat is None else {"repeat_on_fail": repeat})
    return found


def planned(context: AppContext, request: dict[str, Any]) -> ProgramAnswer:
    return plan_program(context, ProgramRequestSchema().load(request))


def test_true_is_once_and_false_is_never(context: AppContext) -> None:
    """And a number is that many times."""
    never, nothing = planned(context, asked(repeat=False)), planned(context, asked())
    assert never.plan == nothing.plan
    assert never.schedule == nothing.schedule
    assert planned(context, asked(repeat=True)).plan.lines == planned(context, asked(1)).plan.lines
    gate = planned(context, asked(2)).plan.tiers[1].gate
    assert gate is not None
    assert gate.gate.repeat_on_fail == 2


def test_a_likely_repeat_moves_the_end_by_the_tier(context: AppContext) -> None:
    """A gate that is rather failed: the median calendar has the tier twice, and production waits for the second decision."""
    once = planned(context, asked(pass_probability=0.02, sign_off_days=4))
    twice = planned(context, asked(3, pass_probability=0.02, sign_off_days=4))
    entries = {entry.what: entry for entry in twice.schedule.calendar}
    first, again = entries["validation: scale check"], entries["validation: scale check (repeat 1)"]
    assert (again.kind, again.tier) == ("repeat", "validation")
    assert again.start >= entries["gate: validation"].finish
    assert (again.finish - again.start).days >= (first.finish - first.start).days - 1
    assert entries["production: main"].start >= entries["gate: validation (repeat 1)"].finish
    assert twice.schedule.finish.p50 > once.schedule.finish.p50
    assert twice.gates["validation"].date.p50 == entries["gate: validation (repeat 3)"].finish_range.p50


def test_an_unlikely_repeat_moves_the_late_end_only(context: AppContext) -> None:
    """The median stays, and so does its critical path; the deadline is met less often."""
    once, twice = (planned(context, asked(times, pass_probability=0.8, sign_off_days=20)) for times in (0, 1))
    assert (twice.schedule.finish.p50 - once.schedule.finish.p50).days <= 10
    assert twice.schedule.finish.p90 > once.schedule.finish.p90
    assert twice.schedule.critical_path == once.schedule.critical_path
    assert once.schedule.deadline_probability is not None
    assert twice.schedule.deadline_probability is not None
    assert twice.schedule.deadline_probability <= once.schedule.deadline_probability


def test_runs_that_wait_for_a_tier_wait_for_its_last_decision(context: AppContext) -> None:
    """By the tier's name too, and what risks take is there once."""
    request = asked(1, gate=2, pass_probability=0.1)
    request["schedule"]["milestones"] = [{"name": "launch", "days": 1, "after": ["production"]}]
    found = planned(context, request)
    entries = {entry.what: entry for entry in found.schedule.calendar}
    assert entries["launch"].start >= entries["gate: production (repeat 1)"].finish
    assert "risk: loss spike needs a rollback (repeat 1)" not in entries


def test_trials_repeat_as_the_plan_does(context: AppContext) -> None:
    """Mean cost over the gates, mean with all gates passed, and the end: as the gate tree and the calendar have them."""
    request = asked(2, pass_probability=0.55, sign_off_days=3) | {"risks": []}
    found = planned(context, request)
    model = build_trial_model(context, "program", ProgramRequestSchema().load(request), (), {}).model
    rng = np.random.default_rng(5)
    trials = simulate_program(model, draw_inputs(random_spec(model), 40_000, rng), {}, rng, causes=True)  # type: ignore[arg-type]
    plain = asked(0, pass_probability=0.55, sign_off_days=3) | {"risks": []}
    never = build_trial_model(context, "program", ProgramRequestSchema().load(plain), (), {}).model
    rng = np.random.default_rng(5)
    once = simulate_program(never, draw_inputs(random_spec(never), 40_000, rng), {}, rng, causes=False)  # type: ignore[arg-type]
    assert np.mean(trials.completed) == pytest.approx(found.plan.completion_probability, abs=0.01)
    line = next(float(line.usd) for line in found.plan.lines if line.line == "repeats: validation")
    # The plan has the medians of runs, trials have their means; storage lasts longer.
    loaded = float(sum(tier.loaded_usd for tier in found.plan.tiers))
    mean_over_median = 1 + (np.mean(once.completed_usd) - (found.plan.total_usd.p50 - line)) / loaded
    assert np.mean(trials.completed_usd) - np.mean(once.completed_usd) == pytest.approx(line * mean_over_median, rel=0.05)
    assert {"repeats"} <= trials.cost_scores.keys() & trials.time_scores.keys()
    days = (found.schedule.finish.p90 - found.schedule.start).days
    assert np.quantile(trials.hours, 0.9) / 24 == pytest.approx(days, rel=0.08)


def test_documents_show_repeats(context: AppContext) -> None:
    """A line of the budget, and rows of the calendar."""
    body = present_program(planned(context, asked(1)))
    for form in ("md", "html", "csv", "xlsx", "ics", "focus"):
        content, _ = render("program", body, form)
        assert content
    page, _ = render("program", body, "md")
    assert "repeats: validation" in page.decode()
    assert "scale check (repeat 1)" in page.decode()


def test_more_repeated_activities_than_a_calendar_takes_are_refused(context: AppContext) -> None:
    """With the gate to change."""
    request = asked(5)
    run = request["tiers"][1]["runs"][0]
    request["tiers"][1]["runs"] = [run | {"name": f"check {at}"} for at in range(40)]
    with pytest.raises(InvalidRequest) as caught:
        planned(context, request)
    assert caught.value.pointer == "/tiers/1/gate/repeat_on_fail"


def test_a_repeat_that_is_no_number_is_refused() -> None:
    """Neither text nor more than five."""
    for wrong in ("often", 6, -1, 1.5):
        assert "repeat_on_fail" in str(ProgramRequestSchema().validate(asked(wrong)))
