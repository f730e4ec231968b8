"""A program's model in service: beside its budget, at the figures of POST /v1/serving."""

from __future__ import annotations

from typing import Any

import pytest

from bench.harness import offline_context
from service.domain.errors import DomainError, InvalidRequest
from service.formats.documents.program.markdown import write
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.serving import ServingRequestSchema
from service.usecases.programs.plan import plan_program
from service.usecases.serving.serve import serve

RUN = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "100B"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
}
SERVING: dict[str, Any] = {"tokens_per_day": 1e9, "months": 12.0, "prompt_tokens": 1000, "output_tokens": 300}
SERVING |= {"hardware": {"accelerators": ["H100"]}, "price": {"usd_per_accelerator_hour": 2.0}, "latency": {"time_per_output_token_ms": 30}}


def planned(serving: dict[str, Any] | None) -> dict[str, Any]:
    """The plan of one run with this section."""
    body = {"name": "one", "start": "2027-01-04", "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": RUN}]}]}
    with offline_context() as context:
        return present_program(plan_program(context, ProgramRequestSchema().load(body | ({"serving": serving} if serving else {}))))


def test_serving_stands_beside_the_budget() -> None:
    """Budget, lines and finish are those without it; the sum of both is the middle of the total."""
    plain, served = planned(None), planned(SERVING)
    assert "serving" not in plain
    for field in ("total_usd", "lines", "envelope", "schedule", "burn_plan"):
        assert served[field] == plain[field]
    found = served["serving"]
    assert found["run"] == "production/main"
    assert found["tokens"] == pytest.approx(1e9 * 365)
    assert found["with_budget_usd"]["p50"] == pytest.approx(served["total_usd"]["p50"] + found["usd"]["p50"])
    assert b"Budget and serving together" in write(served)


def test_its_figures_are_those_of_serving() -> None:
    """The same model and traffic asked of POST /v1/serving."""
    traffic = {"prompt_tokens": 1000, "output_tokens": 300, "tokens_per_month": round(1e9 * 730 / 24), "lifetime_tokens": round(1e9 * 365)}
    alone = {name: SERVING[name] for name in ("hardware", "price", "latency")} | {"model": RUN["model"], "traffic": traffic, "levers": True}
    with offline_context() as context:
        answer = serve(context, ServingRequestSchema().load(alone))
    found = planned(SERVING)["serving"]
    assert answer.lifetime is not None
    assert answer.lifetime.serving_usd is not None
    assert found["usd"]["p50"] == pytest.approx(answer.lifetime.serving_usd.p50, rel=1e-6)
    assert answer.levers is not None
    assert [each["lever"] for each in found["levers"]] == [each.lever for each in answer.levers]


def test_what_cannot_be_served_is_refused_with_its_place() -> None:
    """A latency that none keeps, and a run that is not there."""
    with pytest.raises(DomainError) as refused:
        planned(SERVING | {"latency": {"time_per_output_token_ms": 0.01}})
    assert refused.value.pointer.startswith("/serving")
    with pytest.raises(InvalidRequest, match="no run is called other"):
        planned(SERVING | {"run": "other"})
