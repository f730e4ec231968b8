"""What a user's script does with the installed package, against the service of OUTLAY_SERVER. Prints a line for each question."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import outlay_sdk
from outlay_sdk import InvalidRequest, NotFound, Outlay, OutlayError, ScenarioRunning, Unreachable
from outlay_sdk.generated.api.providers import get_price_source
from outlay_sdk.generated.models import Data, EstimateRequest, Hardware, Model, Provider, ScenarioResultType0

Raised = TypeVar("Raised", bound=OutlayError)

EVENTS = 1200
"""More than a page of a list holds, and than one request takes."""
RUN: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "h100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.5},
}
FLEET: dict[str, Any] = {
    "demand": {"accelerator": "h100-sxm", "count": 64, "start": "2027-01-01", "years": 3, "utilisation": 0.7},
    "own": [{"name": "hall", "capex_usd_per_accelerator": 30000}],
    "trials": 100,
}
PROGRAM: dict[str, Any] = {
    "name": "assistant 7B",
    "start": "2027-01-04",
    "deadline": "2027-06-30",
    "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": RUN}]}],
}
SCENARIO: dict[str, Any] = {"kind": "monte_carlo", "base": RUN, "trials": 200, "seed": 1}


def ask_questions(outlay: Outlay) -> None:
    """Estimate, comparison, buying or renting, a program, a question in words; each shows itself in a notebook."""
    estimate = outlay.estimate(RUN)
    typed = EstimateRequest(model=Model(preset="llama-2-7b"), data=Data(tokens="1T"), hardware=Hardware(accelerator="h100", count=256))
    assert estimate.cost.total_usd is not None
    assert outlay.estimate(typed).time.accelerator_hours.p50 == estimate.time.accelerator_hours.p50
    compared = outlay.compare({"workload": {name: RUN[name] for name in ("model", "data")}, "candidates": {"accelerators": ["h100-sxm"]}})
    assert compared.options[0].rank == 1
    for answer in (estimate, compared, outlay.buy_or_rent(FLEET), outlay.program(PROGRAM)):
        shown: str = answer._repr_html_()  # type: ignore[union-attr]  # a notebook looks for it, and no type has it
        assert "<table>" in shown
        assert "None" not in shown
        print(answer.summary.text)
    asked = outlay.ask("llama 3 8b on 1T tokens, 512 h100")
    assert asked.summary is not None
    print(asked.summary.text)


def wait_for_scenario(outlay: Outlay) -> None:
    """A scenario is waited for; one that takes longer than the caller wants goes on."""
    try:
        outlay.scenario(SCENARIO, timeout_s=0)
    except ScenarioRunning as running:
        done = outlay.wait(running.scenario.id)
    assert isinstance(done.result, ScenarioResultType0)
    assert done.id in {entry.id for entry in outlay.scenarios()}
    print(f"scenario {done.state}: {sorted(done.result.additional_properties)[:3]}")


def track(outlay: Outlay) -> None:
    """A program with a run, whose events are more than a page, each counted once."""
    program = outlay.start_program({"name": "assistant 7B", "budget_usd": 100_000, "planned_tokens": "1T"})
    run = outlay.start_run(program.id, {"name": "main"})
    begun = datetime.now(UTC) - timedelta(hours=EVENTS)
    moments = [(begun + timedelta(hours=hour)).isoformat() for hour in range(EVENTS)]
    events = [
        {"id": f"e{n}", "type": "progress", "at": at, "step": n, "tokens_done": n * 10**8, "accelerator_hours": n, "cost_usd": 2.5 * n}
        for n, at in enumerate(moments)
    ]
    assert outlay.add_events(run.id, events[:1000]).accepted == 1000
    assert outlay.add_events(run.id, events[900:]).duplicates == 100
    assert [entry.id for entry in outlay.events(run.id)] == [event["id"] for event in events]
    assert [found.id for found in outlay.runs(program.id)] == [run.id]
    assert program.id in {found.id for found in outlay.programs()}
    print(outlay.program_status(program.id).summary.text)


def list_things(outlay: Outlay) -> None:
    """Catalogues, page by page, and an operation without a method of its own."""
    assert len(list(outlay.accelerators())) > 5
    assert len({model.name for model in outlay.models()}) > 5
    assert all(offer.accelerator == "NVIDIA-H100-80GB-SXM" for offer in outlay.offers("NVIDIA-H100-80GB-SXM"))
    source = get_price_source.sync("aws", client=outlay.connection)
    assert isinstance(source, Provider)
    print(f"{len(list(outlay.offers()))} offers, {source.name} is {source.state}")


def make_errors(outlay: Outlay) -> None:
    """A wrong request, an unknown thing and a service that is away are exceptions, which say where and why."""
    wrong = error_of(lambda: outlay.estimate(RUN | {"hardwares": {}}), InvalidRequest)
    assert wrong.problem is not None
    assert [error.pointer for error in wrong.problem.errors or []] == ["/hardwares"]
    error_of(lambda: outlay.program_status("nothing"), NotFound)
    error_of(lambda: Outlay("http://127.0.0.1:9").ask("7B"), Unreachable)


def error_of(ask: Callable[[], object], kind: type[Raised]) -> Raised:
    """The exception that asking raises."""
    try:
        ask()
    except kind as error:
        print(f"{kind.__name__}: {error}")
        return error
    raise AssertionError(f"{kind.__name__} is not raised")


def main() -> None:
    """Everything, with address and key of the environment."""
    assert "site-packages" in Path(outlay_sdk.__file__).parts
    with Outlay() as outlay:
        ask_questions(outlay)
        list_things(outlay)
        track(outlay)
        make_errors(outlay)
        wait_for_scenario(outlay)


if __name__ == "__main__":
    main()
