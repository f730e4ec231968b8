"""Each constraint rules out exactly what breaks it, and says why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import InvalidRequest
from service.usecases.comparison.compare import Comparison, compare
from tests.unit.usecases.comparison.comparing import H100, MARKET, NOW, WORKLOAD, by_id, compared, offer, selling
from tests.unit.usecases.requests import pointer_of

COUNTS = {"counts": [32, 64, 128]}
COUNTRIES = {"us-east-1": "USA", "eu-central-1": "DEU", "eu-north1": "FIN", "europe-west4": "NLD", "US": "USA", "nowhere": ""}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context that sells the market."""
    return selling(build_context(settings))


def days(option: Option) -> float:
    assert option.time is not None
    return option.time.wall_clock_hours.p50 / 24


def usd(option: Option) -> float:
    assert option.cost_usd is not None
    return option.cost_usd.p50


def tco2e(option: Option) -> float:
    assert option.energy is not None
    return option.energy.tco2e


def newly_ruled_out(context: AppContext, constraints: dict[str, Any]) -> tuple[Comparison, set[str]]:
    """The comparison, and what it rules out beyond what no constraint does."""
    before, after = compared(context, COUNTS), compared(context, COUNTS, constraints=constraints)
    unbound = {option.id for option in before.options if option.feasible}
    return after, {option.id for option in after.options if option.id in unbound and not option.feasible}


@pytest.mark.parametrize(
    ("constraint", "reason", "figure"),
    [
        ("max_cost_usd", "over_budget", usd),
        ("max_wall_clock_days", "takes_too_long", days),
        ("max_tco2e", "too_much_carbon", tco2e),
    ],
)
def test_a_limit_rules_out_what_is_above_it(context: AppContext, constraint: str, reason: str, figure: Callable[[Option], float]) -> None:
    """By the p50; what is just at the limit stays. The count of the reason is that of all options it holds for."""
    options = compared(context, COUNTS).options
    limit = sorted(figure(option) for option in options)[len(options) // 2]
    found, ruled_out = newly_ruled_out(context, {constraint: limit})
    above = {option.id for option in options if figure(option) > limit}
    assert 0 < len(above) < len(options)
    assert ruled_out == {option.id for option in options if option.feasible} & above
    assert found.infeasible[reason] == len(above)
    assert all(option.id in above for option in found.options if any("more than" in text for text in option.reasons))


def test_a_deadline_counts_from_the_start_with_the_queue_to_the_end_of_its_day(context: AppContext) -> None:
    """Start and deadline may stand in the workload's schedule as well; the probability of keeping it is said."""
    options = compared(context, COUNTS).options
    middle = sorted(days(option) for option in options)[len(options) // 2]
    start, queue_days = date(2027, 1, 4), 3
    deadline = start + timedelta(days=int(middle) + queue_days)
    schedule = {"queue_hours": 24 * queue_days}
    asked = {"workload": WORKLOAD | {"schedule": schedule}, "constraints": {"start": start, "deadline": deadline}}
    found = compared(context, COUNTS, **asked)
    late = {option.id for option in options if days(option) + queue_days > int(middle) + queue_days + 1}
    assert 0 < len(late) < len(options)
    assert found.infeasible["misses_deadline"] == len(late)
    assert {option.id for option in found.options if any("later than the deadline" in text for text in option.reasons)} == late
    for option in found.options:
        assert option.time is not None
        assert (option.time.deadline_probability or 0) < 0.5 if option.id in late else (option.time.deadline_probability or 0) >= 0.5
    in_schedule = WORKLOAD | {"schedule": schedule | {"start": start, "deadline": deadline}}
    assert compared(context, COUNTS, workload=in_schedule).infeasible == found.infeasible


def test_without_a_start_the_deadline_counts_from_today(context: AppContext) -> None:
    """Which is assumed and said."""
    found = compared(context, constraints={"deadline": date(2027, 3, 1)})
    assert {each.field: each.value for each in found.assumptions}["constraints.start"] == NOW.date().isoformat()
    assert all(option.time and option.time.deadline_probability is None for option in compared(context).options)


@pytest.mark.parametrize("constraints", [{}, {"start": date(2026, 12, 1)}])
def test_a_deadline_in_the_schedule_alone_is_one_too(context: AppContext, constraints: dict[str, Any]) -> None:
    """Counted from the constraints' start, or from today."""
    deadline = date(2026, 12, 10)
    scheduled = compared(context, workload=WORKLOAD | {"schedule": {"deadline": deadline}}, constraints=constraints)
    assert scheduled.infeasible == compared(context, constraints=constraints | {"deadline": deadline}).infeasible
    assert scheduled.infeasible["misses_deadline"] > 0


def test_a_deadline_before_the_start_is_an_error(context: AppContext) -> None:
    """At the deadline, wherever it stands."""
    start, deadline = date(2027, 2, 1), date(2027, 1, 1)
    constraints = {"start": start, "deadline": deadline}
    assert pointer_of(lambda: compared(context, constraints=constraints), InvalidRequest) == "/constraints/deadline"
    scheduled = WORKLOAD | {"schedule": {"deadline": deadline}}
    where = pointer_of(lambda: compared(context, workload=scheduled, constraints={"start": start}), InvalidRequest)
    assert where == "/workload/schedule/deadline"


@pytest.mark.parametrize("name", ["start", "deadline"])
def test_a_variant_has_no_days_of_its_own(context: AppContext, name: str) -> None:
    """They would hold for nothing: one calendar is kept by all."""
    variants = [{"name": "a", "workload": {}}, {"name": "b", "workload": {"schedule": {name: date(2027, 2, 1)}}}]
    assert pointer_of(lambda: compared(context, variants=variants), InvalidRequest) == f"/variants/1/workload/schedule/{name}"


@pytest.mark.parametrize(
    ("jurisdictions", "inside"),
    [
        (["DE"], {"DEU"}),
        (["deu", "FI"], {"DEU", "FIN"}),
        (["EU"], {"DEU", "FIN", "NLD"}),
        (["EEA", "US"], {"DEU", "FIN", "NLD", "USA"}),
        (["NO"], set()),
    ],
)
def test_jurisdictions_are_countries_or_groups_of_them(context: AppContext, jurisdictions: list[str], inside: set[str]) -> None:
    """Every offer elsewhere is ruled out, and one whose country nobody knows too."""
    found = compared(context, constraints={"jurisdictions": jurisdictions})
    told = {option.id for option in found.options if any("jurisdictions" in text or "the country of" in text for text in option.reasons)}
    assert told == {option.id for option in found.options if COUNTRIES[option.offer.region] not in inside}
    assert found.infeasible.get("outside_jurisdictions", 0) == len(told) - 1
    assert found.infeasible["unknown_jurisdiction"] == 1
    (warned,) = (text for text in found.warnings if "unknown_jurisdiction" in text)
    assert warned.endswith("of somewhere")


def test_a_country_the_price_sheet_states_counts_before_the_regions(settings: Settings) -> None:
    """So that a place whose name says nothing is known all the same."""
    context = selling(build_context(settings), (offer("2.00", "somewhere", "nowhere", extras={"country": "DEU"}),))
    assert compared(context, constraints={"jurisdictions": ["DE"]}).options[0].feasible
    assert compared(context, constraints={"jurisdictions": ["FR"]}).infeasible == {"outside_jurisdictions": 1}


def test_a_deadline_may_be_kept_more_surely_than_by_the_median(context: AppContext) -> None:
    """Options that keep it with less than the probability asked for are ruled out, and say with how much they do."""
    constraints = {"start": date(2027, 1, 4), "deadline": date(2027, 2, 14)}
    usual = compared(context, COUNTS, constraints=constraints)
    found = compared(context, COUNTS, constraints=constraints | {"min_deadline_probability": 0.9})
    chances = {option.id: option.time.deadline_probability or 0.0 for option in usual.options if option.time}
    unsure = {name for name, chance in chances.items() if chance < 0.9}
    assert usual.infeasible["misses_deadline"] < found.infeasible["misses_deadline"] == len(unsure) < len(chances)
    assert {option.id for option in found.options if any("less than 90%" in text for text in option.reasons)} == unsure
    pointer = pointer_of(lambda: compared(context, constraints={"min_deadline_probability": 0.9}), InvalidRequest)
    assert pointer == "/constraints/min_deadline_probability"


def test_options_say_on_which_day_they_end(context: AppContext) -> None:
    """From the start, after the queue, as an estimate says it; without a start or a deadline there is no such day."""
    start = date(2027, 1, 4)
    waiting = WORKLOAD | {"schedule": {"queue_hours": 48.0}}
    for option in compared(context, constraints={"start": start}, workload=waiting).options:
        assert option.time is not None
        assert option.time.finish is not None
        hours = option.time.wall_clock_hours
        for part in ("p10", "p50", "p90"):
            assert getattr(option.time.finish, part) == start + timedelta(days=2 + getattr(hours, part) / 24)
    assert all(option.time and option.time.finish is None for option in compared(context).options)


def test_a_run_of_years_is_no_option_unless_asked_for(context: AppContext) -> None:
    """Two years where neither a deadline nor a number of days is stated, which is assumed and said."""
    long = WORKLOAD | {"data": {"tokens": 10**14}}
    found = compared(context, {"counts": [8, 1024]}, workload=long)
    late = {option.id for option in found.options if days(option) > 730}
    assert found.infeasible["beyond_horizon"] == len(late) > 0
    assert {
        option.id for option in found.options if any("a deadline or max_wall_clock_days is stated" in text for text in option.reasons)
    } == late
    assert {each.field: each.value for each in found.assumptions}["constraints.max_wall_clock_days"] == 730
    stated = compared(context, {"counts": [8, 1024]}, workload=long, constraints={"max_wall_clock_days": 1e6})
    assert "beyond_horizon" not in stated.infeasible
    assert "constraints.max_wall_clock_days" not in {each.field for each in stated.assumptions}


def test_where_nothing_is_feasible_the_nearest_is_named(context: AppContext) -> None:
    """First among the warnings, with what it misses by how much; it is shown however few options are."""
    everything = compared(context, COUNTS)
    least = min(usd(option) for option in everything.options if option.feasible)
    limit = least - 1000
    found = compared(context, COUNTS, constraints={"max_cost_usd": limit}, objective="time", limit=1)
    (nearest,) = (option for option in found.options if option.cost_usd and option.cost_usd.p50 == least)
    assert found.warnings[0].startswith(f"No option meets all constraints. The nearest one, {nearest.id}, does not because: costs ")
    assert found.warnings[0].endswith(f"more than {limit:,.10g} by 1,000")
    assert not any("No option" in text for text in everything.warnings)


def test_without_a_live_source_availability_is_known_of_nothing(settings: Settings) -> None:
    """Which the warning says, with where the sources are listed."""
    context = selling(build_context(settings), (offer("2.00"),))
    warnings = compared(context, constraints={"require_available": True}).warnings
    assert sum("GET /v1/providers" in text for text in warnings) == 1
    assert not any("GET /v1/providers" in text for text in compared(context).warnings)


def test_only_what_can_be_ordered_where_that_is_asked_for(context: AppContext) -> None:
    """A price in a list is no stock; offered and live are."""
    found = compared(context, constraints={"require_available": True})
    told = {option.offer.availability for option in found.options if any("can be ordered" in text for text in option.reasons)}
    assert told.isdisjoint({"offered", "live"})
    assert {option.offer.availability for option in found.options if option.feasible} == {"offered", "live"}
    assert found.infeasible["not_available"] == len(MARKET) - 2


def test_an_option_is_told_every_reason(context: AppContext) -> None:
    """Each counts for itself."""
    found = compared(context, constraints={"max_cost_usd": 1.0, "jurisdictions": ["NO"], "require_available": True})
    assert found.infeasible == {
        "splits_nodes": 1,
        "over_budget": len(MARKET),
        "outside_jurisdictions": len(MARKET) - 1,
        "unknown_jurisdiction": 1,
        "not_available": len(MARKET) - 2,
    }
    assert sum(len(option.reasons) for option in found.options) == sum(found.infeasible.values())


def test_null_constraints_constrain_nothing(context: AppContext) -> None:
    """As if they were left out."""
    nothing = dict.fromkeys(("start", "deadline", "max_cost_usd", "max_wall_clock_days", "max_tco2e", "jurisdictions"))
    assert compared(context, constraints=nothing | {"require_available": False}) == compared(context)


def test_a_model_that_does_not_fit_has_null_figures_and_the_advice(context: AppContext) -> None:
    """What cannot run stands last, with what would fit; constraints on figures it does not have say nothing."""
    request = {
        "workload": WORKLOAD | {"model": {"preset": "llama-3.1-405b"}},
        "candidates": {"accelerators": ["H100"], "counts": [16, 512]},
    }
    found = compare(context, request | {"limit": 1000, "constraints": {"max_cost_usd": 1e9}})
    cannot = [option for option in found.options if option.count == 16]
    assert len(cannot) == found.infeasible["cannot_run"] == sum(each.accelerator == H100 for each in MARKET)
    for option in cannot:
        assert (option.cost_usd, option.time, option.energy, option.throughput, option.feasible) == (None, None, None, None, False)
        assert "What would fit" in option.reasons[0]
    assert max(option.rank for option in found.options if option.cost_usd) < min(option.rank for option in cannot)
    assert set(by_id(found)) >= {option.id for option in cannot}


def test_a_precision_an_accelerator_lacks_rules_only_that_out(context: AppContext) -> None:
    """The others are compared."""
    found = compared(context, workload=WORKLOAD | {"training": {"precision": "fp8"}})
    assert {option.offer.accelerator for option in found.options if option.time is None} == {"NVIDIA-A100-80GB-SXM"}
    assert all("does not compute in fp8" in option.reasons[0] for option in found.options if option.time is None)


def test_what_nobody_could_run_or_pay_is_ruled_out(context: AppContext) -> None:
    """As an estimate refuses it: more accelerator-hours or dollars than there are."""
    starved = compared(context, workload=WORKLOAD | {"training": {"input_tokens_per_s_per_node": 1e-9}})
    assert starved.infeasible["cannot_run"] == len(MARKET)
    dear = compared(context, workload=WORKLOAD | {"personnel": {"evaluation_hours": 1e12, "usd_per_hour": 1e4}})
    assert dear.infeasible["beyond_reason"] == len(MARKET)
    for option in (*starved.options, *dear.options):
        assert option.cost_usd is None
        assert option.reasons[0].startswith("the run would take more than 1e+14 accelerator-hours or 1e+15 USD")
