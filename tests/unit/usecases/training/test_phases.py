"""A run in phases: context extension and annealing are timed on their own layouts and machines, and add up to the run."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from marshmallow import ValidationError

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.training.estimate import Estimate
from service.formats.documents.results.estimate import tables
from service.schemas.comparison.request import CompareRequestSchema
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.training.request import EstimateRequestSchema
from service.serialization import to_builtins
from service.usecases.programs.plan import plan_program
from service.usecases.training.estimate import EstimateAnswer, estimate

RUN: dict[str, Any] = {
    "model": {"preset": "llama-3-8b"},
    "data": {"tokens": "1T"},
    "training": {"seq_len": 8192, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "H100", "count": 128},
    "price": {"usd_per_accelerator_hour": 2.5},
    "storage": {"dataset_tb": 40},
    "network": {"egress_tb": 10},
    "personnel": {"evaluation_hours": 100, "usd_per_hour": 90},
    "overhead": {"evaluation": 0.1},
    "schedule": {"start": "2027-01-04", "deadline": "2027-03-01"},
}
BASE = {"name": "base", "tokens": "900B"}
LONG = {"name": "long context", "tokens": "80B", "seq_len": 131072}
ANNEAL = {"name": "anneal", "tokens": "20B"}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def answered(context: AppContext, phases: list[dict[str, Any]] | None, **changes: Any) -> EstimateAnswer:
    """The estimate of the run in these phases; None: without phases."""
    training = RUN["training"] if phases is None else RUN["training"] | {"phases": phases}
    return estimate(context, EstimateRequestSchema().load(RUN | {"training": training} | changes))


def test_a_run_of_one_phase_is_the_run(context: AppContext) -> None:
    """In every figure, assumption and warning; the phase itself is shown besides."""
    plain, one = answered(context, None), answered(context, [BASE | {"tokens": "1T"}])
    assert replace(one, estimate=replace(one.estimate, phases=None)) == plain
    assert one.estimate.phases is not None
    assert one.estimate.phases[0].cost == plain.estimate.cost


def test_equal_phases_are_the_whole_run(context: AppContext) -> None:
    """A run cut in equal pieces costs and lasts what it did, but for what rounding to cents and kept checkpoints change."""
    plain = answered(context, None).estimate
    cut = answered(context, [BASE | {"name": str(part), "tokens": "250B"} for part in range(4)]).estimate
    assert cut.time.wall_clock_hours.p10 == pytest.approx(plain.time.wall_clock_hours.p10)
    assert cut.time.wall_clock_hours.p90 == pytest.approx(plain.time.wall_clock_hours.p90)
    assert cut.time.finish == plain.time.finish
    assert cut.flops.total == pytest.approx(plain.flops.total)
    assert cut.throughput.mfu.p50 == pytest.approx(plain.throughput.mfu.p50)
    assert cut.throughput.effective_tokens_per_s == pytest.approx(plain.throughput.effective_tokens_per_s)
    assert cut.energy.mwh == pytest.approx(plain.energy.mwh)
    assert cut.reliability.expected_interruptions == pytest.approx(plain.reliability.expected_interruptions)
    assert cut.cost.total_usd is not None
    assert plain.cost.total_usd is not None
    assert cut.cost.total_usd.p90 == pytest.approx(plain.cost.total_usd.p90)
    assert {line.line for line in cut.cost.lines} == {line.line for line in plain.cost.lines}
    for line in cut.cost.lines:
        assert line.usd == pytest.approx(_usd(plain, line.line), abs=Decimal("0.05"))


def test_lines_add_up_to_the_cent_and_hours_exactly(context: AppContext) -> None:
    """Over phases of different lengths; each has its own layout."""
    found = answered(context, [BASE, LONG, ANNEAL]).estimate
    assert found.phases is not None
    for line in found.cost.lines:
        assert line.usd == sum(_usd_of(phase.cost.lines, line.line) for phase in found.phases)
    assert found.cost.total_usd is not None
    assert found.cost.total_usd.p50 == float(sum(line.usd for line in found.cost.lines))
    for name in ("p10", "p50", "p90"):
        parts = [getattr(phase.time.wall_clock_hours, name) for phase in found.phases]
        assert getattr(found.time.wall_clock_hours, name) == pytest.approx(sum(parts))
    assert found.tokens.trained == 1e12
    base, long, _ = found.phases
    assert long.throughput.tokens_per_s_per_accelerator.p50 < base.throughput.tokens_per_s_per_accelerator.p50
    assert long.throughput.parallelism != base.throughput.parallelism
    assert _usd_of(base.cost.lines, "personnel") == 0


def test_a_phase_on_a_machine_of_its_own_is_priced_there(context: AppContext) -> None:
    """By its own price, and at list price where it states none: the run's price is of another accelerator."""
    own = LONG | {"hardware": {"accelerator": "H200", "count": 64}}
    found = answered(context, [BASE, own | {"price": {"usd_per_accelerator_hour": 4.0}}, ANNEAL]).estimate
    assert found.phases is not None
    assert [(phase.accelerator, phase.accelerators) for phase in found.phases][1] == ("NVIDIA-H200-141GB-SXM", 64)
    assert [phase.usd_per_accelerator_hour for phase in found.phases] == [2.5, 4.0, 2.5]
    listed = answered(context, [BASE, own, ANNEAL]).estimate.phases
    assert listed is not None
    assert listed[1].usd_per_accelerator_hour not in (None, 2.5)


def test_a_reservation_pays_its_terms_once(context: AppContext) -> None:
    """Phases on one machine use one term together: cutting a run in phases buys no second one."""
    reserved = {"price": {"pricing": "reserved_1y"}, "hardware": {"accelerator": "A100-80GB", "count": 128}}
    plain = answered(context, None, **reserved).estimate
    cut = answered(context, [BASE, ANNEAL | {"tokens": "100B"}], **reserved).estimate
    assert _usd(plain, "unused commitment") > 0
    assert cut.cost.total_usd is not None
    assert plain.cost.total_usd is not None
    assert cut.cost.total_usd.p50 == pytest.approx(plain.cost.total_usd.p50)


def test_tokens_that_do_not_add_up_are_refused_with_their_sum(context: AppContext) -> None:
    """The answer says both numbers."""
    with pytest.raises(InvalidRequest, match=r"add up to 980,000,000,000, data.tokens is 1,000,000,000,000") as refused:
        answered(context, [BASE, LONG])
    assert refused.value.pointer == "/training/phases"


def test_a_phase_that_does_not_fit_is_named(context: AppContext) -> None:
    """With a pointer to what it states."""
    small = {"hardware": {"accelerator": "H100", "count": 1}, "parallelism": "auto"}
    with pytest.raises(DoesNotFit, match=r"^phase long context: "):
        answered(context, [BASE, LONG | small, ANNEAL])
    with pytest.raises(InvalidRequest, match=r"^phase anneal: ") as refused:
        answered(context, [BASE | {"tokens": "980B"}, ANNEAL | {"precision": "mxfp8"}])
    assert refused.value.pointer == "/training/phases/1/precision"


def test_doors_without_phases_refuse_them(context: AppContext) -> None:
    """A comparison would else silently plan the run as one."""
    phased = {"phases": [BASE | {"tokens": "1T"}]}
    workload = {"model": {"params": "7B"}, "data": {"tokens": "1T"}, "training": phased}
    with pytest.raises(ValidationError, match="phases"):
        CompareRequestSchema().load({"workload": workload})


def test_deepseeks_context_extension_took_what_its_phases_take(context: AppContext) -> None:
    """Reported: 2,664,000 hours of H800 for 14.8T tokens at 4K, 119,000 for 1,000 steps at 32K and 1,000 at 128K.

    DeepSeek-V3 technical report (arXiv 2412.19437), table 1 and section 4.3. The tokens of the extension alone say 23,000 hours.
    """
    extension = 1000 * 1920 * 32768
    phases = [
        {"name": "pre-training", "tokens": "14.8T"},
        {"name": "32K", "tokens": extension, "seq_len": 32768},
        {"name": "128K", "tokens": extension, "seq_len": 131072},
    ]
    found = answered(
        context,
        phases,
        model={"preset": "deepseek-v3"},
        data={"tokens": 14_800_000_000_000 + 2 * extension},
        training={"precision": "fp8", "seq_len": 4096, "global_batch_tokens": extension // 1000, "software_year": 2024, "phases": phases},
        hardware={"accelerator": "H800", "count": 2048},
    ).estimate
    assert found.phases is not None
    hours = [phase.time.accelerator_hours for phase in found.phases]
    assert hours[1].p10 + hours[2].p10 < 119_000 < hours[1].p90 + hours[2].p90
    assert hours[1].p50 + hours[2].p50 == pytest.approx(119_000, rel=0.25)
    assert hours[2].p50 > 2 * hours[1].p50


def _usd(found: Estimate, name: str) -> Decimal:
    return _usd_of(found.cost.lines, name)


def _usd_of(lines: Any, name: str) -> Decimal:
    return sum((line.usd for line in lines if line.line == name), Decimal(0))


def test_a_program_plans_a_run_in_phases_as_any_other(context: AppContext) -> None:
    """Its budget is the estimate's, and it holds the accelerators of its largest phase."""
    phases = [BASE, LONG | {"hardware": {"accelerator": "H100", "count": 256}}, ANNEAL]
    own = {name: RUN[name] for name in ("model", "data", "hardware", "price")} | {"training": RUN["training"] | {"phases": phases}}
    alone = estimate(context, EstimateRequestSchema().load(own)).estimate
    planned = plan_program(
        context,
        ProgramRequestSchema().load(
            {"name": "p", "start": "2027-01-04", "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": own}]}]}
        ),
    )
    found = planned.estimates["production", "main"]
    assert found.estimate == alone
    assert planned.plan.tiers[0].runs[0].cost_usd == sum(line.usd for line in alone.cost.lines)
    assert planned.schedule.pools[0].accelerators == 256


def test_documents_of_a_kept_estimate_show_its_phases(context: AppContext) -> None:
    """A row each, whose dollars are the run's; no table without phases."""
    named = {table.name: table for table in tables(to_builtins(answered(context, [BASE, LONG, ANNEAL])))}
    assert [row[0] for row in named["phases"].rows] == ["base", "long context", "anneal"]
    assert sum(row[-1] for row in named["phases"].rows) == pytest.approx(sum(row[1] for row in named["cost"].rows))  # type: ignore[misc]
    assert "phases" not in {table.name for table in tables(to_builtins(answered(context, None)))}
