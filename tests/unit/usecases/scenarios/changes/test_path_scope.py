"""A field that is given for all runs of a program: what its name stands for, and which runs it reaches."""

from __future__ import annotations

from typing import Any

import pytest

from service.api.resources.scenarios import EXAMPLE
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.usecases.scenarios.registry import PreparedScenario
from tests.unit.usecases.comparison.comparing import selling
from tests.unit.usecases.scenarios.scenario_requests import PROGRAM, given, prepared, result_of

Body = dict[str, Any]
COUNT, PRICE = "hardware.count", "price.usd_per_accelerator_hour"
TWO: Body = {"choice": [32, 64]}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings))


def program(*estimates: Body, **changes: Any) -> Body:
    """A program of runs that say so much more of themselves than their size."""
    plain: Body = {"model": {"params": "1B"}, "data": {"tokens": "200B"}}
    runs = [{"name": f"run {at}", "estimate": plain | each} for at, each in enumerate(estimates)]
    return PROGRAM | {"tiers": [{"tier": "production", "runs": runs}]} | changes


def asked(context: AppContext, base: Body, **options: Any) -> PreparedScenario:
    return prepared(context, given("monte_carlo", base, "program", **options))


def refused(context: AppContext, base: Body, name: str, distribution: Body) -> tuple[str, str]:
    """Pointer and message."""
    with pytest.raises(InvalidRequest) as found:
        asked(context, base, distributions={name: distribution})
    return found.value.pointer, found.value.message


def test_a_runs_field_of_a_program_is_every_runs(context: AppContext) -> None:
    """The same result as of `defaults.<path>`, which it stands for, under the name that was asked; said so."""
    base = program({})
    one, other = (
        result_of(context, given("monte_carlo", base, "program", trials=5000, distributions={name: TWO}))
        for name in (COUNT, f"defaults.{COUNT}")
    )
    assert one["wall_clock_hours"] == other["wall_clock_hours"]
    assert one["time_drivers"][COUNT] == other["time_drivers"][f"defaults.{COUNT}"] > 0.1
    (said,) = (each for each in one["assumptions"] if each["field"] == f"distributions.{COUNT}")
    assert said["value"] == f"defaults.{COUNT}"
    assert one["warnings"] == other["warnings"]


def test_a_field_that_the_program_has_is_its_own(context: AppContext) -> None:
    """An overhead of the program, and a queue of its schedule: nothing is said to stand for anything else."""
    base = program({}, schedule={"queue_days": 3})
    told = asked(context, base, distributions={"overhead.evaluation": {"uniform": [0.0, 0.1]}, "schedule.queue_days": {"uniform": [1, 5]}})
    assert [one["path"] for one in told.request["fields"]] == ["overhead.evaluation", "schedule.queue_days"]


def test_names_that_stand_for_others_can_be_correlated(context: AppContext) -> None:
    """By the names they were given; a price of regimes is no trouble to them."""
    regimes = {"regimes": {"calm_factor": 1, "scarce_factor": 2, "calm_hours": 50, "scarce_hours": 50}}
    distributions = {"data.tokens": {"uniform": [1e11, 2e11]}, "failures.restart_minutes": {"uniform": [10, 20]}, PRICE: regimes}
    correlations = [{"between": ["data.tokens", "failures.restart_minutes"], "correlation": 0.5}]
    base = program({"data": {}})
    told = asked(context, base, distributions=distributions, correlations=correlations)
    assert [len(row) for row in told.request["correlation_factor"]] == [2, 2]


def test_one_field_under_two_names_is_refused(context: AppContext) -> None:
    """Neither could stand for the other."""
    with pytest.raises(InvalidRequest, match="leave one of them out") as found:
        asked(context, program({}), distributions={COUNT: TWO, f"defaults.{COUNT}": TWO})
    assert found.value.pointer == f"/distributions/{COUNT}"


@pytest.mark.parametrize("name", [COUNT, f"defaults.{COUNT}"])
def test_a_default_that_reaches_no_run_is_refused(context: AppContext, name: str) -> None:
    """Each has its own."""
    mine = {"hardware": {"accelerator": "H100", "count": 8}}
    pointer, message = refused(context, program(mine, mine), name, TWO)
    assert pointer == f"/distributions/{name}"
    assert "applies to no run" in message


@pytest.mark.parametrize("name", [PRICE, f"defaults.{PRICE}"])
def test_a_price_of_the_defaults_beside_a_runs_own_filter_is_refused(context: AppContext, name: str) -> None:
    """By the name of the run and its filter, and with what would be right."""
    pointer, message = refused(context, program({}, {"price": {"provider": "aws"}}), name, {"uniform": [1, 3]})
    assert pointer == f"/distributions/{name}"
    assert message.startswith("tiers.0.runs.1.estimate.price.provider selects")
    assert f"vary tiers.0.runs.1.estimate.{PRICE}" in message


def test_a_default_that_reaches_some_runs_says_how_many(context: AppContext) -> None:
    """One of three: the others state their own, or have a distribution of their own."""
    base = program({}, {"hardware": {"accelerator": "H100", "count": 8}}, {})
    distributions = {COUNT: TWO, f"tiers.0.runs.2.estimate.{COUNT}": {"choice": [8, 16]}}
    (warning,) = asked(context, base, distributions=distributions).request["warnings"]
    assert warning == "defaults.hardware.count applies to 1 of 3 runs: the others state their own hardware.count"


def test_a_default_count_says_how_many_repeats_run_side_by_side(context: AppContext) -> None:
    """So it does something even where no run takes it for its own."""
    base = program({"hardware": {"accelerator": "H100", "count": 8}})
    base["tiers"][0]["runs"][0]["repeat"] = 8
    found = result_of(context, given("monte_carlo", base, "program", trials=5000, distributions={COUNT: TWO}))
    assert any("applies to 0 of 1 runs" in warning for warning in found["warnings"])
    assert found["time_drivers"][COUNT] > 0.1


@pytest.mark.parametrize(
    ("name", "changes", "instead"),
    [
        ("defaults.overhead.evaluation", {}, "overhead"),
        ("tiers.0.runs.0.estimate.overhead.evaluation", {}, "overhead"),
        ("schedule.queue_hours", {"schedule": {"queue_days": 3}}, "schedule.queue_days"),
    ],
)
def test_what_the_program_states_instead_is_to_be_varied(context: AppContext, name: str, changes: Body, instead: str) -> None:
    """A run's own would change nothing."""
    distribution = {"uniform": [0.0, 0.1]} if "overhead" in name else {"uniform": [1, 100]}
    pointer, message = refused(context, program({}, **changes), name, distribution)
    assert (pointer, f"the program states {instead}," in message) == (f"/distributions/{name}", True)


def test_the_example_is_taken_over_a_program_too(context: AppContext) -> None:
    """Its distributions are those of the contract."""
    assert asked(context, program({}), distributions=EXAMPLE["distributions"]).chunks
