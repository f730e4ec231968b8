"""The base of a scenario is looked at when it is asked for: what no worker could answer is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, NoOffer, UnknownName
from service.usecases.scenarios.base_check import MOST_ESTIMATED
from service.usecases.scenarios.registry import PreparedScenario, load_kind
from tests.unit.usecases.comparison.comparing import selling
from tests.unit.usecases.requests import pointer_of
from tests.unit.usecases.scenarios.scenario_requests import PROGRAM, RUN, given

Body = dict[str, Any]
PRICE = "price.usd_per_accelerator_hour"
SEARCHED: Body = {name: section for name, section in RUN.items() if name != "efficiency"}
TOO_LARGE: Body = SEARCHED | {"model": {"params": "10T"}}
NOBODYS: Body = {"hardware": {"accelerator": "H1000", "count": 8}}
ACCELERATOR = "/base/hardware/accelerator"
COMPLETE: Body = {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"accelerator": "H100", "count": 8}}
ASKED: dict[str, Body] = {
    "monte_carlo": {},
    "sensitivity": {"inputs": {PRICE: {"uniform": [1, 2]}}, "points": 0},
    "sweep": {"axes": {"data.tokens": ["10B", "20B"]}},
}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings))


def taken(context: AppContext, kind: str, base: Body, **options: Any) -> PreparedScenario:
    shape = "program" if "tiers" in base else "estimate"
    return load_kind(kind).prepare(context, given(kind, base, shape, **(options or ASKED[kind])))


def program(*estimates: Body, **changes: Any) -> Body:
    """A program of one tier with these runs."""
    runs = [{"name": f"run {at}", "estimate": each} for at, each in enumerate(estimates)]
    return PROGRAM | {"tiers": [{"tier": "production", "runs": runs}]} | changes


def own(**sections: Any) -> Body:
    return {"model": {"params": "1B"}, "data": {"tokens": "20B"}} | sections


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize(
    ("change", "problem", "pointer"),
    [
        (NOBODYS, UnknownName, ACCELERATOR),
        ({"model": {"preset": "llama-2-7c"}}, UnknownName, "/base/model/preset"),
        ({"energy": {"region": "gcp:us-centrl1"}}, UnknownName, "/base/energy/region"),
        ({"price": {"provider": "nobody"}}, NoOffer, "/base/price"),
    ],
)
def test_a_name_nobody_knows_is_refused_at_once(
    context: AppContext, kind: str, change: Body, problem: type[DomainError], pointer: str
) -> None:
    """Of whichever kind the scenario is, as the estimate itself refuses it."""
    assert pointer_of(lambda: taken(context, kind, RUN | change), problem) == pointer


def test_names_like_an_unknown_one_are_told(context: AppContext) -> None:
    """As the estimate tells them."""
    with pytest.raises(UnknownName) as refused:
        taken(context, "monte_carlo", RUN | {"model": {"preset": "llama-2-7c"}})
    assert "llama-2-7b" in refused.value.near


@pytest.mark.parametrize("kind", ["monte_carlo", "sensitivity"])
def test_a_base_that_fits_nowhere_is_refused_with_what_would(context: AppContext, kind: str) -> None:
    """A sweep of it is a table whose rows say so."""
    with pytest.raises(DoesNotFit) as refused:
        taken(context, kind, TOO_LARGE)
    assert refused.value.pointer.startswith("/base")
    assert taken(context, "sweep", TOO_LARGE).units == 2


class TestPrograms:
    def test_a_runs_own_name_is_told_where_it_stands(self, context: AppContext) -> None:
        """Of the second run, whatever its tier has."""
        base = program(own(), own(**NOBODYS))
        for kind in ASKED:
            options = {"axes": {"defaults.data.epochs": [1, 2]}} if kind == "sweep" else {"swing": 0.1} if kind == "sensitivity" else {}
            pointer = pointer_of(lambda kind=kind, options=options: taken(context, kind, base, **options), UnknownName)  # type: ignore[misc]
            assert pointer == "/base/tiers/0/runs/1/estimate/hardware/accelerator"

    def test_many_runs_have_their_names_looked_up(self, context: AppContext) -> None:
        """Too many different ones to be estimated; what all of them share is told of the defaults."""
        sizes = [own(model={"params": 10**9 + at}) for at in range(MOST_ESTIMATED + 1)]
        assert taken(context, "monte_carlo", program(*sizes)).chunks
        wrong = program(*sizes, own(model={"preset": "llama-2-7c"}))
        place = f"/base/tiers/0/runs/{len(sizes)}/estimate/model/preset"
        assert pointer_of(lambda: taken(context, "monte_carlo", wrong), UnknownName) == place
        shared = program(*sizes, defaults=PROGRAM["defaults"] | NOBODYS)
        assert pointer_of(lambda: taken(context, "monte_carlo", shared), UnknownName) == "/base/defaults/hardware/accelerator"

    def test_many_runs_alike_are_estimated(self, context: AppContext) -> None:
        """One for all that differ in their data alone."""
        alike = [own(data={"tokens": 10**10 + at}) for at in range(50)]
        with pytest.raises(DoesNotFit) as refused:
            taken(context, "monte_carlo", program(*alike, own(model={"params": "10T"})))
        assert refused.value.pointer.startswith("/base/tiers/0/runs/50/estimate")

    def test_what_cannot_be_planned_is_refused(self, context: AppContext) -> None:
        """A risk of a tier that the program has not."""
        risks = [{"name": "spike", "probability": 0.3, "cost_usd": 1000, "tier": "prototype"}]
        with pytest.raises(DomainError) as refused:
            taken(context, "monte_carlo", program(own(), risks=risks))
        assert refused.value.pointer.startswith("/base/risks/0")


class TestOtherValues:
    def test_a_base_is_taken_where_its_fields_medians_have_an_answer(self, context: AppContext) -> None:
        """Nothing is evaluated at what the base itself says of them."""
        assert taken(context, "monte_carlo", TOO_LARGE, distributions={"model.params": {"uniform": [1e9, 2e9]}}).chunks

    def test_fields_whose_medians_have_none_are_refused(self, context: AppContext) -> None:
        """What is planned is the base with each of them in its middle."""
        with pytest.raises(InvalidRequest, match="fit") as refused:
            taken(context, "monte_carlo", SEARCHED, distributions={"model.params": {"choice": [10**9, 10**13, 10**13]}})
        assert refused.value.pointer == "/distributions"

    def test_a_sweep_may_give_the_names(self, context: AppContext) -> None:
        """Of the machine or the model; an accelerator nobody knows is then a row, and so is the base's own."""
        base = RUN | NOBODYS
        assert taken(context, "sweep", base, axes={"hardware.accelerator": ["H100", "H1000"]}).units == 2
        assert pointer_of(lambda: taken(context, "sweep", base, axes={"hardware.count": [8, 16]}), UnknownName) == ACCELERATOR
        named = program(own(model={"preset": "llama-2-7c"}))
        assert taken(context, "sweep", named, changes=[{"tiers.0.runs.0.estimate.model.preset": "llama-2-7b"}]).units == 1

    @pytest.mark.parametrize(
        ("lacks", "options"),
        [
            ("count", {"axes": {"defaults.hardware.count": [8, 16]}}),
            ("count", {"axes": {"tiers.0.runs.0.estimate.hardware.count": [8, 16]}}),
            ("count", {"changes": [{"defaults": COMPLETE}]}),
            ("count", {"changes": [{"tiers": [{"tier": "production", "runs": [{"name": "r", "estimate": COMPLETE}]}]}]}),
            ("count", {"changes": [{"tiers.0.runs.0.estimate": COMPLETE}]}),
            ("model", {"axes": {"defaults.model": [{"params": "1B"}]}}),
            ("model", {"axes": {"defaults.model.params": [10**9]}}),
        ],
    )
    def test_a_sweep_may_give_what_a_run_lacks(self, context: AppContext, lacks: str, options: Body) -> None:
        """The base need not be a whole request; what no path supplies is still missing."""
        parts = {**COMPLETE, "hardware": {"accelerator": "H100"}} if lacks == "count" else {**COMPLETE, "model": None}
        base = program({}, defaults={name: part for name, part in parts.items() if part is not None})
        assert taken(context, "sweep", base, **options).units
        missing = "hardware/count" if lacks == "count" else "model"
        place = pointer_of(lambda: taken(context, "sweep", base, axes={"defaults.data.epochs": [1, 2]}))
        assert place == f"/base/tiers/0/runs/0/estimate/{missing}"

    def test_an_optimisation_leaves_the_machine_aside(self, context: AppContext) -> None:
        """And refuses a model that nobody knows, unless its size is searched, and steps that were measured on one of many machines."""
        candidates = {"candidates": {"accelerators": ["H100"]}}
        assert taken(context, "optimize", RUN | NOBODYS, **candidates).chunks == 1
        unknown = RUN | {"model": {"preset": "llama-2-7c"}}
        assert pointer_of(lambda: taken(context, "optimize", unknown, **candidates), UnknownName) == "/base/model/preset"
        measured = RUN | {"efficiency": {"mfu": 0.4, "measured_on": {"count": 8}}}
        assert taken(context, "optimize", measured, **candidates).chunks == 1
        assert pointer_of(lambda: taken(context, "optimize", measured, candidates={})) == "/base/efficiency/measured_on"
        sized = {"model_size": {"min_params": 10**9, "max_params": 10**10}, "constraints": {"max_loss": 2.2}}
        assert taken(context, "optimize", unknown, **candidates, **sized).chunks >= 1
