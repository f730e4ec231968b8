"""What a planned program expects of its runs."""

from __future__ import annotations

from typing import Any

import pytest

from bench.harness import offline_context
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import plan_program
from service.usecases.tracking.baseline import _run_over_step_speed, baseline_of_plan, program_baseline, shift_plan

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


def test_a_plans_lines_gates_and_energy_are_in_its_baseline() -> None:
    """Shares of people and storage by line, the runs' spread, each tier's gate with its days, and what a run emits."""
    people = {"evaluation_hours": 100, "usd_per_hour": 90}
    body = {
        "name": "one",
        "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": RUN}], "gate": {"decides": "release", "evidence": "x"}}],
        "personnel": people,
    }
    with offline_context() as context:
        answer = present_program(plan_program(context, ProgramRequestSchema().load(body)))
    planned = baseline_of_plan(answer, body)
    found = program_baseline({"name": "one", "state": "open", **planned}, planned)
    shares = {line.line: line.share for line in found.lines}
    assert shares["personnel: evaluation"] == pytest.approx(9000 / answer["total_usd"]["p50"])
    assert sum(shares.values()) == pytest.approx(found.around_share)
    assert found.cost_spread is not None
    assert found.cost_spread.p10 < found.cost_spread.p50 == 1.0 < found.cost_spread.p90
    (gate,) = found.gate_dates
    assert (gate.tier, gate.finish.p50 >= gate.start) == ("production", True)
    assert found.runs[0].energy_mwh == pytest.approx(answer["tiers"][0]["runs"][0]["estimate"]["energy"]["mwh"])
    moved = program_baseline({"name": "one", "state": "open", **shift_plan(planned, "2030-01-01")}, planned)
    assert moved.finish is not None
    assert moved.gate_dates[0].finish.p50 <= moved.finish.p50
    assert moved.gate_dates[0].start.year == 2030
