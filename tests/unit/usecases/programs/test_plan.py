"""A whole program: what its runs come to, what stands around them, when it is done, and what it is told."""

from __future__ import annotations

import copy
import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.api.resources.programs import EXAMPLE
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, NoOffer, UnknownName
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.plan import ProgramAnswer, compare_programs, plan_program
from service.usecases.programs.resolve import resolve_program
from service.usecases.programs.runs import merge_requests
from service.usecases.programs.schedule import scale_run
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.training.estimate import estimate
from tests.unit.usecases.market import later, offer, sell

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("program-*.json"))
START = date(2027, 1, 4)


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def changed(*without: str, **sections: Any) -> dict[str, Any]:
    """The contract's example with sections set or left out."""
    return {name: value for name, value in (copy.deepcopy(EXAMPLE) | sections).items() if name not in without}


def asked(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = ProgramRequestSchema().load(request)
    return found


def planned(context: AppContext, request: dict[str, Any] | None = None) -> ProgramAnswer:
    return plan_program(context, asked(EXAMPLE if request is None else request))


def with_run(tier: int, **fields: Any) -> dict[str, Any]:
    """The example with fields of a tier's first run set."""
    request = changed()
    request["tiers"][tier]["runs"][0] |= fields
    return request


def with_schedule(**fields: Any) -> dict[str, Any]:
    return changed(schedule=EXAMPLE["schedule"] | fields)


def refused(context: AppContext, request: dict[str, Any], kind: type[DomainError] = InvalidRequest) -> DomainError:
    with pytest.raises(kind) as caught:
        planned(context, request)
    return caught.value


def entry(answer: ProgramAnswer, what: str) -> Any:
    return next(each for each in answer.schedule.calendar if each.what == what)


def assumed(answer: ProgramAnswer) -> dict[str, Any]:
    assert all(each.source for each in answer.assumptions)
    return {each.field: each.value for each in answer.assumptions}


# Money


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_add_up_to_the_cent(context: AppContext, file: Path) -> None:
    """Lines, envelope and burn plan are each the budget; runs, with their repeats, are their tier."""
    answer = planned(context, json.loads(file.read_text(encoding="utf-8")))
    found, budget = answer.plan, Decimal(repr(answer.plan.total_usd.p50)).quantize(Decimal("0.01"))
    assert len(found.tiers) == 3
    assert sum(line.usd for line in found.lines) == budget
    assert found.envelope.exploration_usd + found.envelope.committed_usd + found.envelope.reserve_usd == budget
    assert sum(week.usd for week in answer.burn_plan) == budget
    for tier in found.tiers:
        assert sum(block.cost_usd for block in tier.runs) == tier.cost_usd
    assert found.expected_usd < budget
    assert sum(week.tokens for week in answer.burn_plan) == pytest.approx(sum(tier.use.tokens for tier in found.tiers))
    hours = sum(tier.use.accelerator_hours.p50 for tier in found.tiers)
    assert float(sum(week.accelerator_hours for week in answer.burn_plan)) == pytest.approx(hours, abs=0.01)


def test_a_run_costs_what_its_estimate_says(context: AppContext) -> None:
    """The defaults laid under it, deep; storage and people left to the program that states them."""
    answer = planned(context)
    alone = estimate(context, {**asked(EXAMPLE)["tiers"][2]["runs"][0]["estimate"], **asked(EXAMPLE)["defaults"]})
    run = answer.plan.tiers[2].runs[0]
    kept = [line.usd for line in alone.estimate.cost.lines if line.line != "storage"]
    assert run.cost_usd == sum(kept)
    assert run.run.lines[0].line == "compute"
    assert run.use.accelerator_hours.p50 == pytest.approx(alone.estimate.time.accelerator_hours.p50)
    assert run.run.reliability.lost_hours == pytest.approx(run.use.wall_clock_hours.p50 * (1 - alone.estimate.reliability.goodput))


def test_a_run_lies_over_the_defaults_object_by_object() -> None:
    """What is stated nearer stands, its neighbours stay."""
    below = {"hardware": {"accelerator": "H100", "count": 256}, "price": {"region": "eu"}}
    assert merge_requests(below, {"hardware": {"count": 8}}) == {"hardware": {"accelerator": "H100", "count": 8}, "price": {"region": "eu"}}


def test_runs_that_ask_the_same_are_estimated_once(context: AppContext) -> None:
    """However many they are."""
    request = changed()
    run = request["tiers"][0]["runs"][0]
    request["tiers"][0]["runs"] = [run | {"name": f"ablation {at}"} for at in range(5)]
    found = planned(context, request).estimates
    assert len({id(found["prototype", f"ablation {at}"]) for at in range(5)}) == 1


def test_runs_that_ask_partly_the_same_are_each_as_alone(context: AppContext) -> None:
    """Runs of other tokens, shapes and failures beside each other assume and find what each does by itself."""
    estimates = EstimateCache(context)
    base = {**asked(EXAMPLE)["defaults"], **asked(EXAMPLE)["tiers"][0]["runs"][0]["estimate"]}
    for own in (
        {},
        {"data": {"tokens": 3e9}},
        {"failures": {"restart_minutes": 30.0}},
        {"model": {"params": 2_000_000_000}},
        {"overhead": {}},
    ):
        request = {**base, **own}
        assert estimates.estimate(request) == estimate(context, request)


def test_sweeps_are_grids_with_seeds_and_early_stopping(context: AppContext) -> None:
    """Four points by three, twice each: successive halving makes a third of them whole."""
    grid = {"learning_rate": [1e-4, 2e-4, 4e-4, 8e-4], "warmup": 2}
    whole = planned(context, with_run(0, repeat=1, grid=grid, seeds=2)).plan.tiers[0].runs[0]
    halved = (
        planned(context, with_run(0, repeat=1, grid=grid, seeds=2, early_stopping={"factor": 2, "least_share": 0.25})).plan.tiers[0].runs[0]
    )
    assert (whole.run.repetition.runs, whole.run_equivalents) == (16, 16)
    assert halved.run_equivalents == pytest.approx(2 * (8 * 0.25 + 4 * 0.25 + 2 * 0.5))
    assert halved.cost_usd < whole.cost_usd


def test_runs_go_side_by_side_as_the_program_has_accelerators(context: AppContext) -> None:
    """256 hold eight of 32, so that twelve take two turns; a stated number stands: one after another takes twelve."""
    many, single = planned(context), planned(context, with_run(0, concurrency=1))
    assert assumed(many)["tiers.ablations.concurrency"] == 8
    slower = single.plan.tiers[0].use.wall_clock_hours.p50 / many.plan.tiers[0].use.wall_clock_hours.p50
    assert slower == pytest.approx(12 / 2)


def test_more_runs_side_by_side_than_the_program_has_accelerators_for_are_warned_of(context: AppContext) -> None:
    """Eight runs of 32 fill 256; nine do not fit, and only as many as there are count."""
    many = [answer.warnings for answer in (planned(context, with_run(0, concurrency=concurrency)) for concurrency in (8, 9, 1000))]
    fits, nine, all_twelve = ([text for text in warnings if "side by side" in text] for warnings in many)
    assert not fits
    assert "9 runs of 32 accelerators side by side need 288, but defaults.hardware.count is 256" in nine[0]
    assert "12 runs of 32 accelerators side by side need 384" in all_twelve[0]


def test_published_overheads_name_their_source(context: AppContext) -> None:
    """A share nobody chose is an assumption."""
    answer = planned(
        context, changed(overhead={"evaluation": "published", "reruns": {"usd": 5000, "tier": "production", "basis": "one restart"}})
    )
    evaluation, reruns = answer.plan.overhead
    assert "Acme" in evaluation.basis
    assert assumed(answer)["overhead.evaluation"] == evaluation.share
    assert (reruns.usd, reruns.basis) == (Decimal(5000), "one restart")


def test_other_lines_have_their_own_basis(context: AppContext) -> None:
    """Hand-computed: 40 TB over the program's months and six more, 400 h of people, labels, data and egress."""
    request = changed(
        labelling={"items": 1000, "usd_per_item": 1.5, "tier": "prototype"},
        network={"egress_tb": 10, "usd_per_tb": 50},
        data={"raw_tokens": "4T", "filter_yield": 0.5, "purchase_usd": 1234.56},
        storage={"dataset_tb": 40, "usd_per_tb_month": 20, "checkpoints_kept": 0, "retention_months": 0},
    )
    answer = planned(context, request)
    usd = {line.line: line.usd for line in answer.plan.lines}
    assert (usd["personnel: evaluation"], usd["labelling"], usd["network"], usd["data purchase"]) == (36000, 1500, 500, Decimal("1234.56"))
    assert usd["outcome evaluation"] == 20000
    months = float(usd["storage: dataset"]) / 800
    days = (answer.schedule.finish.p50 - answer.schedule.start).days
    assert months * 730 / 24 == pytest.approx(days, rel=0.25)
    assert "storage: checkpoints" not in usd


def test_what_nobody_chose_is_reported(context: AppContext) -> None:
    """Every default of the program's own."""
    found = assumed(planned(context))
    wanted = {"reserves.confidence", "correlation", "rollback_share", "schedule.common_share", "schedule.target_probability"}
    assert wanted <= found.keys()
    assert found["tiers.validation.gate.sign_off_days"] == 0


def test_contingency_grows_with_the_risk_log(context: AppContext) -> None:
    """From the risks and the spread, unless a share is stated."""
    calm, risky = planned(context, changed(risks=[])), planned(context)
    stated = planned(context, changed(reserves={"contingency": 0.1, "evaluation_and_debugging": 0}))
    assert calm.plan.envelope.reserve_usd < risky.plan.envelope.reserve_usd
    without = stated.plan.envelope.exploration_usd + stated.plan.envelope.committed_usd
    assert float(stated.plan.envelope.reserve_usd) == pytest.approx(float(without) / 10, abs=0.01)
    assert any("no risks are listed" in warning for warning in calm.warnings)


def test_the_midpoint_falls_in_the_tier_that_is_under_way_then(context: AppContext) -> None:
    """People are half of a small program's budget: it is spent while the prototype still waits for its data."""
    example = next(file for file in EXAMPLES if "lora" in file.stem)
    answer = planned(context, json.loads(example.read_text(encoding="utf-8")))
    assert answer.midpoint is not None
    assert answer.midpoint.tier == "prototype"
    assert answer.midpoint.date < entry(answer, "prototype: LoRA sweep").finish


def test_what_belongs_to_no_tier_is_spent_over_the_whole_calendar(context: AppContext) -> None:
    """People cost the same each week, whether the machine trains or waits."""
    without, with_people = (planned(context, changed(personnel={"oncall_hours": hours, "usd_per_hour": 100})) for hours in (0, 1000))
    added = [float(more.usd - less.usd) for more, less in zip(with_people.burn_plan, without.burn_plan, strict=True)]
    assert round(sum(added), 2) >= 100_000
    whole_weeks = added[1:-2]
    assert len(whole_weeks) >= 3
    assert whole_weeks == pytest.approx([whole_weeks[0]] * len(whole_weeks), rel=0.02)


def test_a_plan_that_spends_little_beside_its_last_runs_is_warned_of(context: AppContext) -> None:
    """The least that was published is half of their cost: the example has more, but not without its overheads."""
    little = "that is published is 50% (OLMo series"
    assert not any(little in text for text in planned(context).warnings)
    assert any(little in text for text in planned(context, changed("overhead")).warnings)
    assert not any(
        little in text for text in planned(context, changed("overhead", "risks", "schedule", tiers=EXAMPLE["tiers"][:2])).warnings
    )


def test_final_runs_far_from_compute_optimal_are_warned_of_and_trial_runs_are_not(context: AppContext) -> None:
    """An ablation is short on purpose."""
    few_tokens = {"model": {"params": 7_000_000_000}, "data": {"tokens": 1_000_000_000}}
    counts = []
    for tier in (0, len(EXAMPLE["tiers"]) - 1):
        run = EXAMPLE["tiers"][tier]["runs"][0]
        warnings = planned(context, with_run(tier, name="short run", estimate=run["estimate"] | few_tokens)).warnings
        counts.append(sum("short run: far from compute-optimal" in warning for warning in warnings))
    assert counts == [0, 1]


def test_runs_priced_by_another_snapshot_are_named(context: AppContext) -> None:
    """The answer's own is the one that is used where none is pinned, whichever run comes first."""
    older, current = sell(context, "november", offer(2.0)), sell(context, "december", offer(2.5), at=later(30))
    pinned = with_run(0)
    pinned["tiers"][0]["runs"][0]["estimate"]["price"] = {"snapshot": older}
    answer = planned(context, pinned)
    assert answer.price_snapshot == current
    assert [text for text in answer.warnings if "snapshot" in text] == [
        f"priced by snapshot {older}, while the others are priced by {current}: prototype/ablations"
    ]
    assert not [text for text in planned(context).warnings if "snapshot" in text]


def test_a_plan_without_a_midpoint_gate_is_warned_of(context: AppContext) -> None:
    """And one with it says when it is due."""
    assert any("no midpoint_gate" in warning for warning in planned(context, changed("midpoint_gate")).warnings)
    midpoint = planned(context).midpoint
    assert midpoint is not None
    assert midpoint.tier == "production"
    assert START < midpoint.date < date(2027, 6, 30)


# Time


def test_tiers_gates_and_milestones_follow_each_other(context: AppContext) -> None:
    """Data delivered on the 25th let validation begin on the 26th; a gate is signed off after its tier, before the next."""
    answer = planned(context)
    assert entry(answer, "validation: scale check").start == date(2027, 1, 26)
    assert entry(answer, "prototype: ablations").start == START
    assert entry(answer, "prototype: ablations").finish <= entry(answer, "gate: prototype").finish <= date(2027, 1, 26)
    assert entry(answer, "privacy review").finish == date(2027, 1, 15)
    assert entry(answer, "production: main").start >= entry(answer, "gate: validation").finish
    assert answer.schedule.critical_path[-1] == "gate: production"
    assert answer.gates["validation"].earliest <= answer.gates["validation"].date.p50


def test_runs_of_a_tier_share_its_machine_unless_they_say_otherwise(context: AppContext) -> None:
    """One after the other in the order stated; with an empty `after` and accelerators for both beside each other."""

    def two(**fields: Any) -> dict[str, Any]:
        request = changed()
        first = request["tiers"][2]["runs"][0]
        request["tiers"][2]["runs"].append(first | {"name": "long context"} | fields)
        return request

    row, beside = planned(context, two()), planned(context, two(after=[]) | {"pools": [{"accelerator": "H100", "count": 512}]})
    assert entry(row, "production: long context").start >= entry(row, "production: main").finish
    assert entry(beside, "production: long context").start == entry(beside, "production: main").start
    assert beside.schedule.finish.p50 < row.schedule.finish.p50


def test_queues_upgrades_and_maintenance_make_it_later(context: AppContext) -> None:
    """Each of them; maintenance that an estimate holds already does not count twice."""
    finish = planned(context, with_schedule(queue_days=0)).schedule.finish.p50
    assert planned(context).schedule.finish.p50 > finish
    upgrade = {"name": "new fabric", "first": "2027-01-11", "last": "2027-02-07"}
    assert (planned(context, with_schedule(queue_days=0, upgrades=[upgrade])).schedule.finish.p50 - finish).days >= 10
    weekly = [{"weekday": "monday", "start_hour": 0, "hours": 84}]
    assert planned(context, with_schedule(queue_days=0, maintenance=weekly)).schedule.finish.p50 > finish
    request = with_schedule(queue_days=0, maintenance=weekly)
    request["defaults"] = EXAMPLE["defaults"] | {"schedule": {"maintenance_hours_per_week": 84}}
    assert assumed(planned(context, request))["schedule.maintenance"] == []


def test_the_release_is_the_end(context: AppContext) -> None:
    """Working days after the last gate."""
    answer = planned(context, with_schedule(release_days=10))
    assert answer.schedule.critical_path[-1] == "release"
    assert (entry(answer, "release").finish - entry(answer, "gate: production").finish).days >= 10


def test_the_deadlines_probability_is_that_of_plain_draws(context: AppContext) -> None:
    """Runs one after another without calendars, drawn by hand with half of the variance in common: within a point.

    Each tier's overheads of 33 % take that part of its runs' time, on 192 of 256 accelerators where twelve runs of 32 go eight at a time.
    The risk takes a tenth of production, three times in ten.
    """
    request = changed("deadline", schedule={"queue_days": 0})
    for tier in request["tiers"]:
        tier["gate"] |= {"sign_off_days": 0}
    blocks = [block for tier in planned(context, request).plan.tiers for block in tier.runs]
    generator, draws = np.random.default_rng(11), 400_000
    common, hours = generator.standard_normal(draws), np.zeros(draws)
    for block in blocks:
        time = block.use.wall_clock_hours
        z = np.sqrt(0.5) * common + np.sqrt(0.5) * generator.standard_normal(draws)
        ratio = np.where(z > 0, np.log(time.p90 / time.p50), np.log(time.p50 / time.p10))
        machine = 0.75 if block.run.name == "ablations" else 1.0
        risk = 0.1 * (generator.random(draws) < 0.3) if block.run.name == "main" else 0.0
        hours += time.p50 * np.exp(ratio * z / 1.2815515655446004) * (1 + 0.33 * machine + risk)
    for days in (int(hour // 24) for hour in np.quantile(hours, (0.3, 0.6, 0.85))):
        deadline = date.fromordinal(START.toordinal() + days)
        found = planned(context, request | {"deadline": deadline.isoformat()}).schedule.deadline_probability
        assert found == pytest.approx(float((hours <= 24 * (days + 1)).mean()), abs=0.01)


def test_a_deadline_alone_is_planned_backwards_from(context: AppContext) -> None:
    """From the last day that meets it with the wanted probability."""
    answer = planned(context, changed("start"))
    assert assumed(answer)["start"] == answer.schedule.start
    assert answer.schedule.deadline_probability == pytest.approx(0.8, abs=0.03)
    assert answer.schedule.start > START


@pytest.mark.parametrize("wanted", [0.5, 0.77, 0.8, 0.9, 0.999])
def test_a_start_that_is_found_is_enough_and_the_last_that_is(context: AppContext, wanted: float) -> None:
    """What is planned backwards is not called at risk, and neither is the same day stated; a day later is, and earlier buys it back."""
    request = changed("start", schedule=EXAMPLE["schedule"] | {"target_probability": wanted})
    answer = planned(context, request)
    found, latest = answer.schedule, answer.schedule.latest_start
    assert found.deadline_probability is not None
    assert latest is not None
    assert latest.start == found.start
    assert latest.probability == found.deadline_probability >= wanted
    assert found.deadline_options == ()
    stated = planned(context, request | {"start": found.start.isoformat()}).schedule
    assert (stated.deadline_probability, stated.deadline_options) == (found.deadline_probability, ())
    later = planned(context, request | {"start": (found.start + timedelta(days=1)).isoformat()}).schedule
    assert later.deadline_probability is not None
    assert later.deadline_probability < wanted
    (earlier,) = (each for each in later.deadline_options if each.lever == "start")
    assert (earlier.change, earlier.reaches_target) == (f"start 1 day earlier, on {found.start}", True)
    assert earlier.probability == found.deadline_probability


def test_without_dates_it_begins_today(context: AppContext) -> None:
    """The clock's day, which is said."""
    answer = planned(context, changed("start", "deadline"))
    assert assumed(answer)["start"] == context.clock().date()
    assert answer.schedule.deadline_probability is None


def test_a_deadline_at_risk_is_bought_back_at_a_price(context: AppContext) -> None:
    """More accelerators, fewer tokens or an earlier start, each planned whole; one in time needs nothing."""
    assert planned(context).schedule.deadline_options == ()
    late = planned(context, with_schedule(milestones=[]) | {"deadline": "2027-01-22"})
    probability = late.schedule.deadline_probability
    assert probability is not None
    assert probability < 0.8
    levers = {each.lever: each for each in late.schedule.deadline_options}
    assert {"accelerators", "scope", "start"} <= levers.keys()
    assert levers["start"].reaches_target
    more = next(each for each in late.schedule.deadline_options if each.change == "512 accelerators instead of 256")
    again = planned(
        context,
        with_schedule(milestones=[])
        | {"deadline": "2027-01-22", "defaults": merge_requests(EXAMPLE["defaults"], {"hardware": {"count": 512}})},
    )
    assert more.price_usd == pytest.approx(again.plan.total_usd.p50 - late.plan.total_usd.p50)
    assert more.probability_gain > 0
    smaller = [each for each in late.schedule.deadline_options if each.lever == "scope"]
    assert all(each.price_usd < 0 and each.probability_gain >= 0 for each in smaller)


def test_a_smaller_run_takes_its_share(context: AppContext) -> None:
    """Of everything."""
    run = planned(context).plan.tiers[2].runs[0].run
    half = scale_run(run, 0.5)
    assert half.use.flops == run.use.flops / 2
    assert half.use.wall_clock_hours.p50 == run.use.wall_clock_hours.p50 / 2
    assert float(sum(line.usd for line in half.lines)) == pytest.approx(run.use.usd.p50 / 2, abs=0.02)


# Data and choices


def test_tokens_flow_from_the_source_to_the_model(context: AppContext) -> None:
    """Raw, filtered, deduplicated, trained and effective; a first target with its basis."""
    data = {"raw_tokens": "10T", "filter_yield": 0.2, "dedupe_yield": 0.5, "epochs": 2, "params": "7B", "generalisation": "broad"}
    tokens = planned(context, changed(data=data | {"mixture": [{"name": "hard negatives", "share": 0.1, "unique_tokens": "10B"}]})).tokens
    assert tokens is not None
    assert tokens.flow is not None
    assert [tokens.flow.raw, tokens.flow.filtered, tokens.flow.deduplicated, tokens.flow.trained] == pytest.approx([1e13, 2e12, 1e12, 2e12])
    assert 1e12 < tokens.flow.effective < 2e12
    assert tokens.suggested is not None
    assert tokens.suggested.p10 <= 2e12 <= tokens.suggested.p90
    assert tokens.worthwhile_epochs == pytest.approx(4.4, abs=0.3)


def test_a_first_target_goes_by_the_last_runs_model_where_its_size_is_stated(context: AppContext) -> None:
    """Asked for by domain or reach; of a preset nothing is suggested, which is said."""
    stated = planned(context, changed(data={"complexity": "single_domain"}))
    assert stated.tokens is not None
    assert stated.tokens.suggested is not None
    preset = changed(data={"complexity": "single_domain"})
    preset["tiers"][2]["runs"][0]["estimate"]["model"] = {"preset": "llama-2-7b"}
    nothing = planned(context, preset)
    assert nothing.tokens is None
    assert any("state data.params" in warning for warning in nothing.warnings)


def test_data_that_do_not_last_are_warned_of(context: AppContext) -> None:
    """The main run takes 1T."""
    answer = planned(context, changed(data={"raw_tokens": "1T", "filter_yield": 0.5}))
    assert any("get more data" in warning for warning in answer.warnings)


def test_spend_choices_compare_published_curves_and_own(context: AppContext) -> None:
    """Most gain first; a budget is divided wholly while returns last."""
    found = planned(context, changed(spend_choices={"budget_usd": 10000})).spend_choices
    assert found is not None
    assert {each.choice for each in found.choices} == {"scale", "data_quality", "robustness", "utilisation"}
    gains = [each.gain_per_usd or 0.0 for each in found.choices]
    assert gains == sorted(gains, reverse=True)
    assert sum(each.allocated_usd or 0.0 for each in found.choices) == pytest.approx(10000)
    curve = {"choice": "labels", "usd": [0, 100], "gain": [0, 2], "loss_avoided_usd": [0, 50], "unit": "points"}
    own = planned(context, changed(spend_choices={"curves": [curve]})).spend_choices
    assert own is not None
    assert [(each.choice, each.gain_per_usd, each.loss_avoided_per_usd) for each in own.choices] == [("labels", 0.02, 0.5)]


# Differences


def test_a_lower_price_is_all_that_makes_the_difference(context: AppContext) -> None:
    """Causes add up to it; other lines do not move, overheads but for a cent of rounding a line."""
    cheaper = changed(defaults=merge_requests(EXAMPLE["defaults"], {"price": {"usd_per_accelerator_hour": 2.0}}))
    found = compare_programs(context, {"before": asked(EXAMPLE), "after": asked(cheaper)})
    assert sum(cause.usd for cause in found.difference.causes) == found.difference.usd
    assert found.difference.usd == Decimal(repr(found.after_usd)) - Decimal(repr(found.before_usd))
    assert found.difference.causes[0].cause == "price"
    moved = {cause.cause for cause in found.difference.causes if abs(cause.usd) > Decimal("0.05")}
    assert moved <= {"price", "reserves", "other lines"}
    assert found.difference.headline.startswith("-")


def test_a_difference_says_which_program_is_wrong(context: AppContext) -> None:
    """Pointers lie below it."""
    with pytest.raises(InvalidRequest) as caught:
        compare_programs(context, {"before": asked(EXAMPLE), "after": asked(changed(deadline="2026-01-01"))})
    assert caught.value.pointer == "/after/deadline"


# What it is told


def test_contradictions_point_to_where_they_are(context: AppContext) -> None:
    """A circle, an unknown name, a deadline before the start, shares beyond everything, tiers that are not planned."""
    circle = [{"name": "review", "days": 2, "after": ["production"], "blocks": ["prototype"]}]
    problem = refused(context, with_schedule(milestones=circle))
    assert "cycle" in problem.message
    assert problem.pointer.startswith(("/tiers/", "/schedule/milestones/0"))
    gone = changed()
    gone["tiers"] = gone["tiers"][1:]
    assert refused(context, changed(deadline="2026-12-31")).pointer == "/deadline"
    assert refused(context, with_schedule(milestones=[{"name": "review", "blocks": ["main"]}])).pointer == "/schedule/milestones/0"
    assert refused(context, with_schedule(milestones=[{"name": "main", "days": 1}])).pointer == "/schedule/milestones/0/name"
    assert refused(
        context, changed(data={"raw_tokens": "1T", "mixture": [{"name": "a", "share": 0.7}, {"name": "b", "share": 0.6}]})
    ).pointer == ("/data/mixture")
    assert refused(context, gone | {"overhead": {"sweeps": {"share": 0.1, "tier": "prototype"}}}).pointer == "/overhead/sweeps/tier"
    assert refused(context, gone | {"risks": [{"name": "any", "probability": 0.1, "tier": "prototype"}]}).pointer == "/risks/0/tier"
    assert refused(context, gone | {"labelling": {"items": 1, "usd_per_item": 1, "tier": "prototype"}}).pointer == "/labelling/tier"
    windows = [{"weekday": day, "start_hour": 0, "hours": 167} for day in ("monday", "friday")]
    assert refused(context, with_schedule(maintenance=windows)).pointer == "/schedule/maintenance"
    both = {"checkpoints_kept": 5, "checkpoint_every_hours": 24}
    assert refused(context, changed(storage=both)).pointer == "/storage/checkpoints_kept"
    risk = {"name": "leak", "probability": 0.1, "cost_usd": 10}
    addressed = changed(spend_choices={}, risks=[risk | {"addressed_by": "robustnes"}])
    misspelt = refused(context, addressed, UnknownName)
    assert isinstance(misspelt, UnknownName)
    assert (misspelt.pointer, misspelt.near) == ("/risks/0/addressed_by", ("robustness",))
    unknown = with_schedule(milestones=[{"name": "review", "days": 1, "blocks": ["productoin"]}])
    found = refused(context, unknown, UnknownName)
    assert found.pointer == "/schedule/milestones/0/blocks/0"
    assert isinstance(found, UnknownName)
    assert "production" in found.near


def test_a_day_begins_before_its_24th_hour() -> None:
    """A window may begin within the last hour of a day; midnight is the next day's."""
    late, beyond = (with_schedule(maintenance=[{"weekday": "monday", "start_hour": hour, "hours": 4}]) for hour in (23.75, 24))
    assert asked(late)["schedule"]["maintenance"][0]["start_hour"] == 23.75
    assert ProgramRequestSchema().validate(beyond) == {
        "schedule": {"maintenance": {0: {"start_hour": ["must be a number from 0 to below 24"]}}}
    }


def test_what_is_wrong_in_the_defaults_is_refused_there(context: AppContext) -> None:
    """And where the run says it itself, at the run."""
    unknown = changed(defaults=EXAMPLE["defaults"] | {"hardware": {"accelerator": "H999", "count": 256}})
    found = refused(context, unknown, UnknownName)
    assert isinstance(found, UnknownName)
    assert (found.pointer, bool(found.near)) == ("/defaults/hardware/accelerator", True)
    own = with_run(0, estimate={"model": {"params": "1B"}, "data": {"tokens": "1B"}, "hardware": {"accelerator": "H999", "count": 8}})
    assert refused(context, own, UnknownName).pointer == "/tiers/0/runs/0/estimate/hardware/accelerator"
    pinned = changed(defaults=EXAMPLE["defaults"] | {"price": {"snapshot": "none"}})
    assert refused(context, pinned, UnknownName).pointer == "/defaults/price/snapshot"
    sold_by_nobody = changed(defaults=EXAMPLE["defaults"] | {"price": {"provider": "nobody"}})
    assert refused(context, sold_by_nobody, NoOffer).pointer == "/defaults/price"


@pytest.mark.parametrize(
    ("defaults", "estimate", "pointer"),
    [
        (
            {"training": {"parallelism": {"tensor": 8}}},
            {"model": {"layers": 16, "hidden_size": 1792, "attention_heads": 7, "ffn_hidden_size": 7168, "vocab_size": 32000}},
            "/training/parallelism/tensor",
        ),
        ({"model": {"params": "1B"}}, {"model": {"preset": "llama-3.1-8b"}}, "/model/params"),
        ({"price": {"provider": "lambda"}}, {"hardware": {"accelerator": "MI250X", "count": 8}}, "/price"),
    ],
)
def test_what_only_one_run_makes_wrong_is_refused_at_the_run(
    context: AppContext, defaults: dict[str, Any], estimate: dict[str, Any], pointer: str
) -> None:
    """The defaults do for the others: nobody looks for the run by a fault told there."""
    request = with_run(0, estimate={"model": {"params": "1B"}, "data": {"tokens": "1B"}} | estimate)
    below = request | {"defaults": EXAMPLE["defaults"] | defaults}
    assert refused(context, below, DomainError).pointer == f"/tiers/0/runs/0/estimate{pointer}"


def test_runs_are_refused_where_they_stand(context: AppContext) -> None:
    """What is missing after the defaults, and what the estimate itself refuses."""
    bare = changed("defaults")
    assert refused(context, bare).pointer == "/tiers/1/runs/0/estimate/hardware/accelerator"
    assert refused(context, with_run(2, estimate={"model": {"params": "7B"}})).pointer == "/tiers/2/runs/0/estimate/data"
    large = with_run(2, estimate={"model": {"params": "900B"}, "data": {"tokens": "1T"}, "hardware": {"count": 8}})
    assert refused(context, large, DoesNotFit).pointer.startswith("/tiers/2/runs/0/estimate")
    for stopping in ({}, {"factor": 2}, {"factor": 2, "least_share": 0.1, "rungs": [{"at": 0.5, "keep": 0.5}]}):
        assert refused(context, with_run(0, early_stopping=stopping)).pointer == "/tiers/0/runs/0/early_stopping"
    assert refused(context, with_run(0, repeat=100_000, seeds=1000)).pointer == "/tiers/0/runs/0"


def test_more_layouts_than_a_request_may_cost_are_refused(context: AppContext) -> None:
    """Each model, training and machine is a search; runs that share one are free: 300 dense models, one of them the validation tier's."""
    request = changed()
    run = request["tiers"][0]["runs"][0]

    def runs(count: int, size: int) -> dict[str, Any]:
        estimates = [{"model": {"params": 10**9 + size * at}, "data": {"tokens": 10**9 + at}} for at in range(count)]
        request["tiers"][0]["runs"] = [run | {"name": f"{at}", "repeat": 1, "estimate": one} for at, one in enumerate(estimates)]
        return request

    assert refused(context, runs(300, 10**7)).pointer == "/tiers/2/runs/0/estimate/model"
    assert len(planned(context, runs(300, 0)).plan.tiers[0].runs) == 300


def test_dates_that_leave_no_start_are_refused(context: AppContext) -> None:
    """Data that come after the deadline."""
    late = with_schedule(milestones=[{"name": "data", "date": "2027-08-01", "blocks": ["production"]}])
    late.pop("start")
    assert refused(context, late).pointer == "/deadline"


def test_what_takes_centuries_is_refused(context: AppContext) -> None:
    """A date that was not meant: its burn plan would have hundreds of thousands of weeks."""
    far = with_schedule(milestones=[{"name": "data", "date": "9999-12-31", "blocks": ["production"]}])
    assert refused(context, far).pointer == "/start"


def test_resolving_again_is_the_same(context: AppContext) -> None:
    """No chance but that of the seed."""
    first, second = (resolve_program(EstimateCache(context), asked(EXAMPLE), START, AssumptionLog()) for _ in range(2))
    assert first.plan == second.plan
    assert planned(context).schedule == planned(context).schedule
