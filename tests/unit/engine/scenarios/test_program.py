"""A program in a few trials whose random numbers are given, against arithmetic by hand: cost of tiers, risks, gates, calendar, causes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from service.domain.quantities import Range
from service.domain.scenarios import Floats, ProgramModel, Regimes, RiskModel, RunModel, TierModel, Trials
from service.domain.schedule import Activity, ActivityNetwork
from service.engine.programs.risk_register import mixing_matrix
from service.engine.scenarios.program import RandomInputs, common_random_spec, draw_inputs, order_program, random_spec, simulate_program
from tests.unit.engine.scenario_builders import certain_run

ONCE = Range.exactly(1.0)
SPREAD = Range(0.5, 1.0, 2.0)
Z90 = 1.2815515655
# Four trials: the first two pass the first gate (0.7), the first risk (0.3) comes in trials 0 and 2, the other (0.5) in 0 and 3.
GATES = np.array([[0.1, 0.1, 0.9, 0.9], [0.5, 0.5, 0.5, 0.5]], dtype=np.float32)
RISKS = np.array([[0.1, 0.9, 0.1, 0.9], [0.1, 0.9, 0.9, 0.1]], dtype=np.float32)
ON_TIERS = np.array([True, True, False, False])
FIRST, SECOND = np.array([True, False, True, False]), np.array([True, False, False, True])


def program(*runs: RunModel, review: Range | None = None, **changes: Any) -> ProgramModel:
    """Two runs side by side in the first tier, of 1,600 and 800 USD, then one of 3,200 USD in the second, 300 hours in all."""
    first, beside, last = runs or (certain_run("a", 100.0), certain_run("b", 50.0), certain_run("c", 200.0))
    tiers = (
        TierModel((first, beside), ("a", "b"), 0.1, 10.0, 100.0, accruing_share=0.25, pass_probability=0.7),
        TierModel((last,), ("c",), 0.2, 20.0, 200.0, accruing_share=0.75, pass_probability=1.0),
    )
    before = ("a", "b")
    activities = [Activity("a", ONCE), Activity("b", ONCE), Activity("c", ONCE, predecessors=before if review is None else ("review",))]
    if review is not None:
        activities.append(Activity("review", review, predecessors=before))
    fields: dict[str, Any] = {
        "tiers": tiers,
        "network": ActivityNetwork(date(2027, 1, 4), tuple(activities)),
        "correlation": 0.0,
        "reserve_share": 0.05,
        "accruing_usd": 1000.0,
        "accruing_usd_per_month": 730.0,
        "risks": (RiskModel(0.3, 0.2, 1000.0, 0), RiskModel(0.5, 0.1, 500.0, None)),
    }
    return ProgramModel(**{**fields, **changes})


def simulated(
    model: ProgramModel,
    own: Mapping[str, Any] | None = None,
    shared: Mapping[str, Any] | None = None,
    reviews: Mapping[str, Any] | None = None,
    values: Mapping[str, Floats] | None = None,
    *,
    causes: bool = False,
) -> Trials:
    scores = {"failures": np.zeros((3, 4)), **(own or {})}
    inputs = RandomInputs(shared or {}, scores, reviews or {}, GATES, RISKS[: len(model.risks)])
    return simulate_program(order_program(model), inputs, values or {}, np.random.default_rng(1), causes=causes)


# Cost


def test_tiers_cost_their_runs_with_overheads_reserves_and_shares_of_what_accrues() -> None:
    """What accrues is 1,000 USD and one a hour for 300 hours; the second tier is paid for where the first gate is passed."""
    found = simulated(program(risks=()))
    first = 2400 * 1.15 + 10 + 100 + 1300 * 0.25
    second = 3200 * 1.25 + 20 + 200 + 1300 * 0.75
    assert found.usd == pytest.approx(first + second * ON_TIERS, rel=1e-6)
    assert found.completed_usd == pytest.approx(np.full(4, first + second), rel=1e-6)
    assert found.accelerator_hours == pytest.approx(150 * 8 + 200 * 8 * ON_TIERS, rel=1e-6)
    assert (found.completed == ON_TIERS).all()


def test_what_accrues_without_time_is_divided_as_it_is() -> None:
    """Nothing a month: 1,000 USD."""
    found = simulated(program(risks=(), accruing_usd_per_month=0.0))
    assert found.completed_usd == pytest.approx(np.full(4, 2400 * 1.15 + 3200 * 1.25 + 330 + 1000), rel=1e-6)


def test_risks_cost_a_share_of_their_tiers_runs_and_an_amount() -> None:
    """One of the first tier alone; one of the program, whose amount is divided as what accrues."""
    plain, found = simulated(program(risks=())), simulated(program())
    first = FIRST * (0.2 * 2400 + 1000) + SECOND * (0.1 * 2400 + 500 * 0.25)
    second = SECOND * (0.1 * 3200 + 500 * 0.75)
    assert found.usd - plain.usd == pytest.approx(first + second * ON_TIERS, abs=0.01)
    assert found.completed_usd - plain.completed_usd == pytest.approx(first + second, abs=0.01)


def test_correlated_risks_happen_together_as_the_register_says() -> None:
    """Two risks of 0.5 with correlation 0.5 both happen in a third of the trials, each still in half of them."""
    model = program(risks=(RiskModel(0.5, 0.0, 1.0, 0), RiskModel(0.5, 0.0, 100.0, 0)))
    mixing = mixing_matrix(np.array([[1.0, 0.5], [0.5, 1.0]]))
    together = replace(model, risk_mixing=tuple(map(tuple, mixing.tolist())))
    inputs = draw_inputs(random_spec(order_program(model)), 40_000, np.random.default_rng(3))
    rng = np.random.default_rng(1)
    cases = (replace(model, risks=()), replace(inputs, risks=inputs.risks[:0])), (together, inputs)
    none, both = (simulate_program(order_program(one), drawn, {}, rng, causes=False) for one, drawn in cases)
    lost = np.round(both.completed_usd - none.completed_usd)
    assert np.mean(lost == 101) == pytest.approx(1 / 3, abs=0.01)
    assert np.mean(lost >= 100) == pytest.approx(0.5, abs=0.01)


def test_fields_of_tiers_gates_and_risks_are_drawn() -> None:
    """Overheads on top, a chance of the second gate, and one of the second risk, each by its path."""
    model = program()
    first, second = model.tiers
    drawn = replace(
        model,
        tiers=(replace(first, overhead_field_paths=("o", "p")), replace(second, gate_field_path="g")),
        risks=(model.risks[0], replace(model.risks[1], field_path="r")),
    )
    values = {"o": np.full(4, 0.1), "p": np.array([0.0, 0.2, 0.0, 0.0]), "g": np.array([0.6, 0.4, 0.6, 0.6]), "r": np.full(4, 0.05)}
    plain = simulated(replace(model, risks=model.risks[:1]))
    found = simulated(drawn, values=values)
    assert found.usd - plain.usd == pytest.approx(2400 * (values["o"] + values["p"]), abs=0.01)
    assert found.completed.tolist() == [True, False, False, False]


# Calendar


def test_runs_side_by_side_end_with_the_longer_one() -> None:
    """100 and 200 hours one after the other; a wait in the queue comes on top."""
    assert simulated(program()).hours == pytest.approx(np.full(4, 300.0), rel=1e-6)
    waiting = (certain_run("a", 100.0), certain_run("b", 50.0, queue_hours=Range.exactly(80.0)), certain_run("c", 200.0))
    assert simulated(program(*waiting)).hours == pytest.approx(np.full(4, 330.0), rel=1e-6)


def test_a_review_takes_its_hours_between_the_tiers() -> None:
    """A day at the median, half of it and three at its percentiles; its score is what it takes beyond the median."""
    model = program(review=Range(12.0, 24.0, 72.0))
    found = simulated(model, reviews={"review": np.array([0.0, -Z90, Z90, 0.0])}, causes=True)
    assert found.hours == pytest.approx([324.0, 312.0, 372.0, 324.0], rel=1e-6)
    assert found.time_scores["reviews"] == pytest.approx([0.0, -12.0, 48.0, 0.0], abs=1e-5)


# Chances


def test_correlated_runs_share_a_part_of_their_scores() -> None:
    """A correlation of 0.36: 0.6 of the shared score and 0.8 of the run's own."""
    runs = tuple(certain_run(name, 100.0, slowdown=SPREAD) for name in "abc")
    own = np.array([[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    shared = np.array([0.0, 1.0, 1.0, 0.0])
    found = simulated(program(*runs, correlation=0.36, risks=()), {"throughput": own}, {"throughput": shared})
    slower = 2 ** ((0.6 * shared + 0.8 * own) / Z90)
    assert found.hours == pytest.approx(100 * (np.maximum(slower[0], slower[1]) + slower[2]), rel=1e-5)


def test_a_programs_random_numbers_are_those_of_its_chances() -> None:
    """Shared scores where runs are correlated and more than one; reviews by name; one a gate and one a risk."""
    runs = tuple(certain_run(name, 100.0, slowdown=SPREAD) for name in "abc")

    def spec_of(model: ProgramModel) -> Any:
        return random_spec(order_program(model))

    plain, correlated = spec_of(program(*runs)), spec_of(program(*runs, correlation=0.5, review=Range(1.0, 2.0, 3.0)))
    assert (plain.runs, plain.gates, plain.risks, plain.reviews, plain.shared) == (3, 2, 2, (), frozenset())
    assert plain.own == {"failures", "throughput"}
    assert correlated.shared == {"throughput"}
    assert correlated.reviews == ("review",)
    alone = program(*runs, correlation=0.5)
    alone = replace(
        alone,
        tiers=(replace(alone.tiers[1], pass_probability=0.5),),
        network=ActivityNetwork(date(2027, 1, 4), (Activity("c", ONCE),)),
        risks=(),
    )
    single = spec_of(alone)
    assert (single.runs, single.gates, single.risks, single.shared) == (1, 1, 0, frozenset())
    both = common_random_spec([order_program(alone), order_program(program(*runs, correlation=0.5, review=Range(1.0, 2.0, 3.0)))])
    assert (both.runs, both.gates, both.risks, both.reviews, both.shared) == (3, 2, 2, ("review",), {"throughput"})


# Causes


def test_scores_of_risks_gates_and_prices_are_shares_of_the_median_cost() -> None:
    """Of 5,600 USD: the first risk takes 480 + 1,000, the other 560 + 500; passing the gate adds 3,200; one run's price moves 1,600."""
    regimes = Regimes(1.5, 1.5, 30.0, 10.0)
    priced = program(certain_run("a", 100.0, regimes=regimes), certain_run("b", 50.0), certain_run("c", 200.0))
    found = simulated(priced, causes=True).cost_scores
    assert found["risks"] == pytest.approx((1480 * FIRST + 1060 * SECOND) / 5600, rel=1e-6)
    assert found["gates"] == pytest.approx((2400 + 3200 * ON_TIERS) / 5600, rel=1e-6)
    assert found["price"] == pytest.approx(np.full(4, 1.5 * 1600 / 5600), rel=1e-6)
    both = program(certain_run("a", 100.0, regimes=regimes), certain_run("b", 50.0), certain_run("c", 200.0, regimes=regimes))
    assert simulated(both, causes=True).cost_scores["price"] == pytest.approx(np.full(4, 1.5 * 4800 / 5600), rel=1e-6)


def test_a_cause_of_several_runs_counts_by_what_it_adds_to_each() -> None:
    """To the time by hours over lanes, to the cost by hours at 16 USD, in weights of unit length."""
    runs = (certain_run("a", 100.0, slowdown=SPREAD), certain_run("b", 50.0), certain_run("c", 300.0, slowdown=SPREAD, concurrency=2.0))
    own = np.array([[Z90, 0.0, Z90, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, Z90, Z90, -Z90]])
    found = simulated(program(*runs), {"throughput": own}, causes=True)
    # Twice the hours or half of them: e^z - 1 is 1 or -1/2; the run of certain speed has no part.
    first, last = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, -0.5])
    middle = 50.0
    time_length, cost_length = math.hypot(100, middle, 150), math.hypot(100, middle, 300)
    assert found.time_scores["throughput"] == pytest.approx((100 * first + 150 * last) / time_length, rel=1e-5)
    assert found.cost_scores["throughput"] == pytest.approx((100 * first + 300 * last) / cost_length, rel=1e-5)


def test_waits_of_uncertain_queues_are_one_cause() -> None:
    """Those of two runs added up; a certain wait is none."""
    queue = Range(5.0, 10.0, 40.0)
    runs = (
        certain_run("a", 100.0, queue_hours=queue),
        certain_run("b", 50.0, queue_hours=Range.exactly(7.0)),
        certain_run("c", 200.0, queue_hours=queue),
    )
    own = np.array([[0.0, Z90, 0.0, 0.0], [0.0] * 4, [0.0, 0.0, -Z90, Z90]])
    found = simulated(program(*runs), {"queue": own}, causes=True).time_scores
    assert found["queue"] == pytest.approx([20.0, 50.0, 15.0, 50.0], rel=1e-5)
    assert "queue" not in simulated(program(), {"queue": own}, causes=True).time_scores
