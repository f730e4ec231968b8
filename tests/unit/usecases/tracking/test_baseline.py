"""What a planned program expects of its runs."""

from __future__ import annotations

from typing import Any

import pytest

from bench.harness import offline_context
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import plan_program
from service.usecases.tracking.baseline import _run_over_step_speed, baseline_of_plan, program_baseline

RUN = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "100B"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
}


@pytest.mark.parametrize("capacity_share", [1.0, 0.5])
def test_a_run_that_waits_for_capacity_is_as_fast_while_it_runs(capacity_share: float) -> None:
    """Its planned speed is that of the hours it holds its accelerators, not of the clock."""
    failures: dict[str, Any] = {"capacity_share": capacity_share}
    body = {"name": "one", "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": RUN | {"failures": failures}}]}]}
    with offline_context() as context:
        estimate = present_program(plan_program(context, ProgramRequestSchema().load(body)))["tiers"][0]["runs"][0]["estimate"]
    clock = estimate["throughput"]["effective_tokens_per_s"] / estimate["throughput"]["tokens_per_s"]
    assert _run_over_step_speed(estimate) == pytest.approx(clock / estimate["reliability"]["goodput"] / capacity_share)


def test_phases_of_a_run_are_in_its_baseline() -> None:
    """With the tokens and the planned speed of each; not of a run that is repeated."""
    phases = [{"name": "base", "tokens": "90B"}, {"name": "long", "tokens": "10B", "seq_len": 32768}]
    run = {"name": "main", "estimate": RUN | {"training": {"phases": phases}}}
    body = {"name": "one", "tiers": [{"tier": "production", "runs": [run, run | {"name": "again", "repeat": 2}]}]}
    with offline_context() as context:
        answer = present_program(plan_program(context, ProgramRequestSchema().load(body)))
    planned = baseline_of_plan(answer, body)
    main, again = program_baseline({"name": "one", "state": "open", **planned}, planned).runs
    assert [(phase.name, phase.tokens) for phase in main.phases] == [("base", 9e10), ("long", 1e10)]
    assert main.phases[1].tokens_per_s < main.phases[0].tokens_per_s
    assert main.wall_clock_hours is not None
    assert sum(phase.tokens / phase.tokens_per_s / 3600 for phase in main.phases) == pytest.approx(main.wall_clock_hours.p50)
    assert again.phases == ()
