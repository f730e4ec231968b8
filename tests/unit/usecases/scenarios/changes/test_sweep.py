"""Sweeps: every combination of some values, or a list of changes, as a table."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.scenarios.registry import load_kind
from service.usecases.training.estimate import estimate
from tests.unit.usecases.comparison.comparing import selling
from tests.unit.usecases.requests import pointer_of
from tests.unit.usecases.scenarios.scenario_requests import PROGRAM, RUN, given, prepared, result_of


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings))


def swept(context: AppContext, base: dict[str, Any] = RUN, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result_of(context, given("sweep", base, "program" if "tiers" in base else "estimate", **options))["rows"]
    return rows


def refused(context: AppContext, base: dict[str, Any] = RUN, **options: Any) -> str:
    """Where the problem points that the request has before anything is evaluated."""
    shape = "program" if "tiers" in base else "estimate"
    return pointer_of(lambda: load_kind("sweep").prepare(context, given("sweep", base, shape, **options)))


def test_every_combination_is_a_row(context: AppContext) -> None:
    """In the order of the axes, the last turning fastest, values as they were read."""
    rows = swept(context, axes={"hardware.count": [8, 64], "data.tokens": ["1B", "20B", 10**11]})
    expected = itertools.product([8, 64], [10**9, 2 * 10**10, 10**11])
    assert [tuple(row["inputs"].values()) for row in rows] == list(expected)
    assert all(row["feasible"] and row["problem"] is None for row in rows)


def test_a_row_is_the_requests_own_estimate(context: AppContext) -> None:
    """Cost, hours, accelerator-hours, carbon and finish of the request with these values in it."""
    base = RUN | {"schedule": {"start": "2027-01-04", "deadline": "2027-02-01"}}
    (row,) = swept(context, base, axes={"efficiency.mfu": [0.3]})
    found = estimate(context, EstimateRequestSchema().load(base | {"efficiency": {"mfu": 0.3}})).estimate
    assert row["cost_usd"] == {"p10": found.cost.total_usd.p10, "p50": found.cost.total_usd.p50, "p90": found.cost.total_usd.p90}
    assert row["accelerator_hours"]["p50"] == found.time.accelerator_hours.p50
    assert row["wall_clock_hours"]["p90"] == found.time.wall_clock_hours.p90
    assert (row["tco2e"], row["deadline_probability"]) == (found.energy.tco2e, found.time.deadline_probability)
    assert found.time.finish is not None
    assert row["finish"]["p50"] == found.time.finish.p50.isoformat()


def test_steps_between_two_ends_are_equal_or_in_equal_factors(context: AppContext) -> None:
    """Both ends among them, whole where the field counts."""
    rows = swept(context, axes={"hardware.count": {"from": 8, "to": 512, "steps": 4, "log": True}})
    assert [row["inputs"]["hardware.count"] for row in rows] == [8, 32, 128, 512]
    rows = swept(context, axes={"efficiency.mfu": {"from": 0.2, "to": 0.4, "steps": 3}})
    assert [row["inputs"]["efficiency.mfu"] for row in rows] == pytest.approx([0.2, 0.3, 0.4])


def test_a_list_changes_what_each_row_says(context: AppContext) -> None:
    """The rest is the base's; an empty change is the base itself."""
    changes = [{}, {"hardware.count": 128}, {"hardware.count": 8, "training.precision": "fp8"}, {"data.tokens": "1B"}]
    rows = swept(context, changes=changes)
    assert [row["inputs"] for row in rows] == [
        {},
        {"hardware.count": 128},
        {"hardware.count": 8, "training.precision": "fp8"},
        {"data.tokens": 10**9},
    ]
    alone = swept(context, axes={"hardware.count": [64, 128]})
    assert [row["cost_usd"] for row in rows[:2]] == [row["cost_usd"] for row in alone]


def test_dates_and_whole_sections_can_be_swept(context: AppContext) -> None:
    """Each value is read by the field's own rules."""
    base = RUN | {"schedule": {"start": "2027-01-04"}}
    rows = swept(
        context, base, axes={"schedule.start": ["2027-01-04", "2027-02-01"], "model": [{"params": "1B"}, {"preset": "llama-2-7b"}]}
    )
    assert [row["inputs"]["schedule.start"] for row in rows] == ["2027-01-04"] * 2 + ["2027-02-01"] * 2
    assert rows[2]["finish"]["p50"] > rows[0]["finish"]["p50"]
    assert rows[1]["cost_usd"]["p50"] > 5 * rows[0]["cost_usd"]["p50"]


def test_an_infeasible_cell_is_a_row_with_its_problem(context: AppContext) -> None:
    """And the others are answered."""
    base = {name: section for name, section in RUN.items() if name != "efficiency"}
    found = result_of(context, given("sweep", base, axes={"model.params": ["1B", "1T"], "hardware.count": [8]}))
    fits, does_not = found["rows"]
    assert fits["feasible"]
    assert not does_not["feasible"]
    assert "fit" in does_not["problem"]
    assert (found["cells"], found["infeasible"]) == (2, 1)


def test_a_layout_that_does_not_fit_is_infeasible_with_its_figures(context: AppContext) -> None:
    """As the estimate answers it."""
    (row,) = swept(context, axes={"training.parallelism": [{"tensor": 1, "pipeline": 1}], "model.params": ["300B"]})
    assert not row["feasible"]
    assert "memory" in row["problem"]
    assert row["cost_usd"]["p50"] > 0


def test_programs_are_swept_too(context: AppContext) -> None:
    """By paths through lists and into what runs have in common."""
    axes = {"defaults.hardware.count": [64, 128], "tiers.0.runs.0.estimate.data.tokens": ["1T", "2T"], "overhead.evaluation": [0.1]}
    rows = swept(context, PROGRAM, axes=axes)
    costs = [row["cost_usd"]["p50"] for row in rows]
    assert costs[1] > 1.5 * costs[0]
    assert rows[2]["finish"]["p50"] < rows[0]["finish"]["p50"]
    assert all(row["accelerator_hours"]["p50"] > 0 for row in rows)


def test_a_value_is_read_in_its_own_run(context: AppContext) -> None:
    """Of several runs and tiers; and refused with the whole path where there is no such run or field."""
    (tier,) = PROGRAM["tiers"]
    (main,) = tier["runs"]
    ablations = {"tier": "prototype", "runs": [{**main, "name": "first"}, {**main, "name": "second"}]}
    base = {**PROGRAM, "tiers": [ablations, tier]}
    path = "tiers.0.runs.1.estimate.data.tokens"
    rows = swept(context, base, axes={path: ["1B", "1T"], "tiers.1.runs.0.estimate.hardware.count": [64, 128]})
    assert [row["inputs"][path] for row in rows] == [10**9, 10**9, 10**12, 10**12]
    assert rows[0]["cost_usd"]["p50"] < rows[2]["cost_usd"]["p50"]
    for nowhere in ("tiers.0.runs.2.estimate.data.tokens", "tiers.2.runs.0.estimate.data.tokens", "tiers.0.runs.1.estimate.data.tokenz"):
        assert refused(context, base, axes={nowhere: ["1B"]}) == f"/axes/{nowhere}"


def test_too_many_cells_are_refused_before_any_is_made(context: AppContext) -> None:
    """A thousand million, of steps or of lists; the message says what the limit is."""
    axes = {path: {"from": 0.1, "to": 0.9, "steps": 1000} for path in ("efficiency.mfu", "failures.spare_share", "overhead.evaluation")}
    with pytest.raises(Exception, match=r"1,000,000,000 cells are more than the 20,000"):
        load_kind("sweep").prepare(context, given("sweep", RUN, axes=axes))
    assert refused(context, axes={"efficiency.mfu": {"from": 0.1, "to": 0.9, "steps": 1e9}}) == "/axes"
    assert refused(context, PROGRAM, changes=[{}] * 2001) == "/changes"
    with pytest.raises(Exception, match=r"^1e\+300 cells"):
        load_kind("sweep").prepare(context, given("sweep", RUN, axes={"efficiency.mfu": {"from": 0.1, "to": 0.9, "steps": 1e300}}))


@pytest.mark.parametrize(
    ("axes", "pointer"),
    [
        ({"hardware.counts": [1]}, "/axes/hardware.counts"),
        ({"hardware.count": [1.5, 2]}, "/axes/hardware.count"),
        ({"hardware.count": [64, 10**12]}, "/axes/hardware.count"),
        ({"efficiency.mfu": [0.4, 1.4]}, "/axes/efficiency.mfu"),
        ({"training.precision": ["bf16", "bf17"]}, "/axes/training.precision"),
        ({"hardware.count.more": [1]}, "/axes/hardware.count.more"),
        ({"hardware..count": [1]}, "/axes/hardware..count"),
        ({"hardware.count": []}, "/axes/hardware.count"),
        ({"hardware.count": 8}, "/axes/hardware.count"),
        ({"hardware.count": {"from": 1, "to": 8}}, "/axes/hardware.count"),
        ({"hardware.count": {"from": 1, "to": 8, "steps": 2, "by": 1}}, "/axes/hardware.count"),
        ({"hardware.count": {"from": 1.5, "to": 8, "steps": 3}}, "/axes/hardware.count"),
        ({"failures.spare_share": {"from": 0, "to": 1, "steps": 3, "log": True}}, "/axes/failures.spare_share"),
        ({"training.precision": ["bf16"] * 101}, "/axes"),
        ({f"field{index}": [1] for index in range(13)}, "/axes"),
        ({}, "/axes"),
    ],
)
def test_an_axis_that_cannot_be_is_refused_with_its_place(context: AppContext, axes: dict[str, Any], pointer: str) -> None:
    """Before anything is evaluated."""
    assert refused(context, axes=axes) == pointer


def test_axes_and_changes_exclude_one_another(context: AppContext) -> None:
    """One of them."""
    assert refused(context, axes={"hardware.count": [1]}, changes=[{"hardware.count": 2}]) == "/axes"


def test_the_price_book_and_the_day_are_those_of_the_request(context: AppContext) -> None:
    """What a worker evaluates names the book of the moment it was asked for, unless the caller names one."""
    told = prepared(context, given("sweep", RUN, axes={"hardware.count": [8]}))
    assert told.snapshot == told.request["base"]["price"]["snapshot"] == context.catalog.book().name
    assert told.request["now"] == context.clock()


def test_chunks_hold_so_many_cells_and_the_last_the_rest(context: AppContext) -> None:
    """In order, whatever the chunk."""
    asked = given("sweep", RUN, axes={"hardware.count": list(range(1, 121))})
    told = prepared(context, asked)
    assert (told.chunks, told.units, told.units_per_chunk) == (3, 120, 50)
    assert [row["inputs"]["hardware.count"] for row in result_of(context, asked)["rows"]] == list(range(1, 121))
