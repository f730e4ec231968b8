"""Several programs on shared accelerators: one alone is the program, budgets follow the calendar, quotas, options, refusals."""

from __future__ import annotations

import copy
from datetime import date
from typing import Any

import pytest

from service.api.resources import portfolio as resource
from service.api.resources import programs
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DomainError
from service.domain.programs.portfolio import PortfolioAnswer, PortfolioProgram
from service.engine.numerics.money import sum_usd
from service.schemas.programs.portfolio import PortfolioAnswerSchema, PortfolioRequestSchema
from service.schemas.programs.request import ProgramRequestSchema
from service.serialization import to_builtins
from service.usecases.programs.plan import plan_program
from service.usecases.programs.portfolio import plan_portfolio


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def planned(context: AppContext, request: dict[str, Any]) -> PortfolioAnswer:
    return plan_portfolio(context, PortfolioRequestSchema().load(request))


def example(*names: str, **sections: Any) -> dict[str, Any]:
    """The example with some of its programs, or all."""
    request = copy.deepcopy(resource.EXAMPLE) | sections
    return request | {"programs": [one for one in request["programs"] if not names or one["name"] in names]}


def by_name(answer: PortfolioAnswer) -> dict[str, PortfolioProgram]:
    return {program.name: program for program in answer.programs}


def problem(context: AppContext, request: dict[str, Any]) -> DomainError:
    with pytest.raises(DomainError) as raised:
        planned(context, request)
    return raised.value


@pytest.mark.parametrize(
    "pools", [None, [{"accelerator": "H100", "count": 256}, {"accelerator": "H100", "count": 64, "from": "2027-02-01"}]]
)
def test_a_portfolio_of_one_is_the_program(context: AppContext, pools: list[dict[str, Any]] | None) -> None:
    """Budget, dates, probability and every day of the calendar."""
    more = {} if pools is None else {"pools": pools}
    single = plan_program(context, ProgramRequestSchema().load(programs.EXAMPLE | more))
    answer = planned(context, {"programs": [programs.EXAMPLE], **more})
    (found,) = answer.programs
    assert (found.total_usd, found.finish, found.finish_alone) == (single.plan.total_usd, single.schedule.finish, single.schedule.finish)
    assert found.deadline_probability == found.deadline_probability_alone == single.schedule.deadline_probability
    assert found.delay_days == 0
    assert [(one.what, one.start, one.finish) for one in found.calendar] == [
        (one.what, one.start, one.finish) for one in single.schedule.calendar
    ]
    assert answer.total_usd == sum_usd(week.usd for week in single.burn_plan)


def test_the_first_priority_is_as_if_alone_and_others_wait(context: AppContext) -> None:
    """Who waits for whom adds up to what the ends move; the months add up to the budgets."""
    answer = planned(context, example())
    first, second, third = answer.programs
    assert first.delay_days == 0
    assert first.finish == first.finish_alone
    assert second.delay_days > 0
    assert third.delay_days > second.delay_days
    assert second.deadline_probability is not None
    assert second.deadline_probability_alone is not None
    assert second.deadline_probability < second.deadline_probability_alone
    assert {run.program for wait in answer.contention if wait.program == "translator" for run in wait.waits_for} == {"assistant"}
    assert answer.total_usd == sum_usd(month.usd for month in answer.months)
    assert float(answer.total_usd or 0) == pytest.approx(sum(one.total_usd.p50 for one in answer.programs if one.total_usd))
    assert PortfolioAnswerSchema().validate(to_builtins(answer)) == {}


def test_people_are_paid_while_a_program_waits(context: AppContext) -> None:
    """What is paid by the month costs more where the program ends later."""
    stored = {"dataset_tb": 100, "usd_per_tb_month": 20}
    request = example("assistant", "translator")
    alone = example("translator")
    for entry in (*request["programs"], *alone["programs"]):
        entry["storage"] = stored
    shared, single = by_name(planned(context, request))["translator"], by_name(planned(context, alone))["translator"]
    assert shared.total_usd is not None
    assert single.total_usd is not None
    assert shared.total_usd.p50 > single.total_usd.p50


def test_a_pool_is_full_while_programs_wait_and_renting_beside_it_ends_that(context: AppContext) -> None:
    """What is rented costs its hours at the price stated, and each program then ends as alone."""
    answer = planned(context, example(pools=[{"accelerator": "H100", "count": 256}]))
    (pool,) = answer.pools
    assert (pool.accelerators, pool.usd_per_accelerator_hour) == (256, 2.5)
    assert all(week.used <= week.held + 0.01 for week in pool.weeks)
    assert any(week.over > 0 for week in pool.weeks)
    (rent,) = [option for option in answer.options if option.kind == "rent"]
    assert rent.accelerator_hours is not None
    assert rent.usd == pytest.approx(2.5 * rent.accelerator_hours, abs=0.02)
    earlier = {effect.program: effect.days_earlier for effect in rent.effects}
    assert earlier == pytest.approx({one.name: one.delay_days for one in answer.programs if one.delay_days}, abs=0.02)


def test_delays_come_by_priority_and_slack(context: AppContext) -> None:
    """The least important first; each says what the others gain and it loses."""
    answer = planned(context, example(pools=[{"accelerator": "H100", "count": 256}]))
    delays = [option for option in answer.options if option.kind == "delay"]
    assert [option.program for option in delays] == ["translator", "assistant"]
    for option in delays:
        days = {effect.program: effect.days_earlier for effect in option.effects}
        assert max(days.values()) > 0
        assert days[option.program or ""] < 0


def test_without_pools_all_share_the_largest_machine(context: AppContext) -> None:
    request = example()
    del request["pools"]
    answer = planned(context, request)
    assert [(pool.pool, pool.accelerators) for pool in answer.pools] == [("NVIDIA-H100-80GB-SXM", 256)]
    assert "pools.NVIDIA-H100-80GB-SXM.count" in {assumption.field for assumption in answer.assumptions}


def test_runs_take_the_quota_of_their_provider_and_region(context: AppContext) -> None:
    """Two quotas of the same accelerator are no contention; a run that could take both is asked which."""
    quotas = [{"accelerator": "H100", "count": 256, "provider": name} for name in ("aws", "gcp")]
    request = example("assistant", "translator", pools=quotas)
    for entry, name in zip(request["programs"], ("aws", "gcp"), strict=True):
        entry["defaults"]["price"] = {"provider": name}
    answer = planned(context, request)
    assert answer.contention == ()
    assert [(pool.pool, pool.provider, pool.region) for pool in answer.pools] == [
        ("NVIDIA-H100-80GB-SXM aws", "aws", None),
        ("NVIDIA-H100-80GB-SXM gcp", "gcp", None),
    ]
    unsaid = problem(context, example("assistant", pools=quotas))
    assert unsaid.pointer == "/programs/0/tiers/0/runs/0/pool"
    assert "state pool, or price.provider" in unsaid.message


def test_pools_that_a_program_states_are_its_own(context: AppContext) -> None:
    """Nobody waits for them."""
    request = example("assistant", "translator", pools=[{"name": "ours", "accelerator": "H100", "count": 256}])
    request["programs"][1]["pools"] = [{"accelerator": "H100", "count": 256}]
    answer = planned(context, request)
    assert answer.contention == ()
    assert {pool.pool for pool in answer.pools} == {"ours", "translator: NVIDIA-H100-80GB-SXM"}


def test_a_start_is_that_of_programs_without_one(context: AppContext) -> None:
    request = example("assistant", "translator")
    request["programs"][1] |= {"start": "2027-03-01", "deadline": "2027-04-30"}
    assert [one.start for one in planned(context, request).programs] == [date(2027, 1, 4), date(2027, 3, 1)]


def test_refusals_say_where(context: AppContext) -> None:
    """Names that two have, runs that no pool holds, pools that end before they begin, and too many runs."""
    twice = example("assistant")
    twice["programs"] *= 2
    assert problem(context, twice).pointer == "/programs/1/name"
    small = problem(context, example(pools=[{"accelerator": "H100", "count": 128}]))
    assert small.pointer == "/programs/0/tiers/0/runs/0"
    unknown = problem(context, example(pools=[{"accelerator": "H10000", "count": 128}]))
    assert unknown.pointer == "/pools/0/accelerator"
    nowhere = example("assistant")
    nowhere["programs"][0]["defaults"]["hardware"]["accelerator"] = "H10000"
    assert problem(context, nowhere).pointer == "/programs/0/defaults/hardware/accelerator"
    backwards = example(pools=[{"accelerator": "H100", "count": 256, "from": "2027-02-01", "to": "2027-01-01"}])
    assert problem(context, backwards).pointer == "/pools/0/to"
    wrong = example()
    wrong["programs"][1]["tiers"][1]["runs"][0]["after"] = ["nothing"]
    assert problem(context, wrong).pointer == "/programs/1/tiers/1/runs/0/after/0"
    many = example("assistant")
    run = many["programs"][0]["tiers"][0]["runs"][0]
    many["programs"][0]["tiers"][0]["runs"] = [run | {"name": f"run {place}"} for place in range(300)]
    many["programs"].append(copy.deepcopy(many["programs"][0]) | {"name": "another"})
    assert "602 runs are more than the 400" in problem(context, many).message


def test_without_a_price_there_is_no_budget_but_a_calendar(context: AppContext) -> None:
    request = example("assistant", "translator", pools=[{"accelerator": "H800", "count": 256}])
    for entry in request["programs"]:
        entry["defaults"] = {"hardware": {"accelerator": "H800", "count": 256}}
        del entry["tiers"][1]
    answer = planned(context, request)
    assert (answer.total_usd, answer.months) == (None, ())
    assert all(program.total_usd is None for program in answer.programs)
    assert answer.contention != ()
