"""Why two plans differ: each cause alone by hand, and any two plans to the cent."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.programs.plan import CAUSES, CostVariance
from service.domain.programs.program import OtherLine, Program, ProgramOverhead, Reserves, Tier
from service.domain.programs.runs import RunRepetition
from service.domain.quantities import Range
from service.engine.programs.budget import plan_budget
from service.engine.programs.cost_variance import explain_difference, logarithmic_mean, round_causes
from tests.unit.engine.program_builders import planned, program, programs, three_tiers


def production(hours: float = 10_000, price: float = 2.0, **changes: object) -> Program:
    """One run of 1e22 FLOPs, however long it takes."""
    return program(Tier("production", (planned(hours=hours, price=price, flops=1e22, **changes),)))


def causes(before: Program, after: Program) -> dict[str, Decimal]:
    return {cause.cause: cause.usd for cause in explain_difference(plan_budget(before), plan_budget(after)).causes}


@given(programs(), programs())
def test_causes_add_up_to_the_difference_to_the_cent(one: Program, other: Program) -> None:
    """Whatever the two plans are."""
    before, after = plan_budget(one), plan_budget(other)
    found = explain_difference(before, after)
    assert found.usd == sum(line.usd for line in after.lines) - sum(line.usd for line in before.lines)
    assert sum(cause.usd for cause in found.causes) == found.usd
    assert {cause.cause for cause in found.causes} <= set(CAUSES)
    sizes = [abs(cause.usd) for cause in found.causes]
    assert sizes == sorted(sizes, reverse=True)


@given(programs(), programs())
def test_the_way_back_has_the_same_causes(one: Program, other: Program) -> None:
    """From the other side every cause counts as much with the other sign, to the rounding of cents."""
    there, back = causes(one, other), causes(other, one)
    whole = float(sum(abs(usd) for usd in there.values()))
    for cause in CAUSES:
        here, other_way = there.get(cause, Decimal(0)), back.get(cause, Decimal(0))
        assert float(here) == pytest.approx(-float(other_way), abs=0.02 + 1e-9 * whole)


@given(programs())
def test_a_plan_does_not_differ_from_itself(asked: Program) -> None:
    """Nothing is caused by nothing."""
    assert explain_difference(plan_budget(asked), plan_budget(asked)) == CostVariance(Decimal("0.00"), (), "no difference")


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        (production(price=3.0), "price"),
        (production(hours=12_000), "utilisation"),
        (production(goodput=0.8, hours=11_250), "failures"),
        (replace(production(), overheads=(ProgramOverhead("sweeps", "x", share=0.1),)), "overheads"),
        (replace(production(), other_lines=(OtherLine("personnel", Decimal(900), "x"),)), "other lines"),
        (production(storage=500.0), "other lines"),
        (replace(production(), reserves=Reserves(0.05, 0.8, 0.0)), "reserves"),
        (production(repetition=RunRepetition(2)), "scope"),
        (program(Tier("validation", (planned(),)), *production().tiers), "scope"),
        (production(accelerator="NVIDIA-B200-180GB-SXM", hours=4000, price=4.0), "hardware"),
    ],
)
def test_one_change_has_one_cause(after: Program, cause: str) -> None:
    """A plan that differs in one thing differs by that alone."""
    found = causes(production(), after)
    assert list(found) == [cause]
    budgets = [sum(line.usd for line in plan_budget(asked).lines) for asked in (production(), after)]
    assert found[cause] == budgets[1] - budgets[0]


def test_changes_at_once_are_told_apart() -> None:
    """A tenth more hours at half the price again: ln 1.1 and ln 1.5 share what both add."""
    found = causes(production(), production(hours=11_000, price=3.0))
    assert sum(found.values()) == 13_000
    assert float(found["price"] / found["utilisation"]) == pytest.approx(0.405465 / 0.0953102, rel=1e-4)


def test_a_run_that_is_left_out_saves_its_cost() -> None:
    """A second run of 6,000 USD is gone, while the first costs half as much again: neither hides in the other."""
    both = program(Tier("production", (*production().tiers[0].runs, planned("second", hours=3000))))
    assert causes(both, production(price=3.0)) == {"price": 10_000, "scope": -6000}
    assert causes(production(price=3.0), both) == {"price": -10_000, "scope": 6000}


def test_a_share_that_moves_with_the_runs_is_told_apart_from_them() -> None:
    """From 10 % of 20,000 USD to 20 % of 30,000: half of both shares follows the price, 10 % of the mean of both are overheads."""
    plans = ((2.0, 0.1), (3.0, 0.2))
    before, after = (replace(production(price=price), overheads=(ProgramOverhead("sweeps", "x", share=share),)) for price, share in plans)
    assert causes(before, after) == {"price": 11_500, "overheads": 2500}


def test_overheads_that_follow_the_runs_belong_to_what_moved_the_runs() -> None:
    """With a tenth of overheads, a price that adds 10,000 USD to the runs adds 11,000 in all."""
    around = (ProgramOverhead("sweeps", "x", share=0.1),)
    assert causes(replace(production(), overheads=around), replace(production(price=3.0), overheads=around)) == {"price": 11_000}
    both = causes(replace(production(), overheads=around), replace(production(hours=11_000, price=3.0), overheads=around))
    assert float(both["utilisation"]) == pytest.approx(1.1 * 13_000 * 0.0953102 / (0.0953102 + 0.405465), rel=1e-4)


@given(st.floats(1.01, 3), st.floats(1.01, 3))
def test_a_cause_that_costs_more_adds(slower: float, dearer: float) -> None:
    """Worse utilisation and higher prices both count as more."""
    found = causes(production(), production(hours=10_000 * slower, price=2.0 * dearer))
    assert found["utilisation"] > 0
    assert found["price"] > 0


def test_the_headline_says_it_in_a_line() -> None:
    """The whole, then the causes, the largest first, with three figures."""
    assert (
        explain_difference(plan_budget(production()), plan_budget(production(hours=11_000, price=3.0))).headline
        == "+$13,000: $10,500 price, $2,470 utilisation"
    )
    huge = three_tiers(other_lines=(OtherLine("data", Decimal(2_500_000), "x"),))
    assert explain_difference(plan_budget(huge), plan_budget(three_tiers())).headline == "-$2.50M: -$2.50M other lines"
    few = three_tiers(other_lines=(OtherLine("data", Decimal(25), "x"),))
    assert explain_difference(plan_budget(three_tiers()), plan_budget(few)).headline == "+$25: $25 other lines"
    assert round_causes(Decimal("2.01"), {"price": 2.0, "scope": 0.4, "failures": -0.39}).headline == "+$2: $2 price"


def test_ranges_do_not_matter_to_the_difference() -> None:
    """Budgets differ, not their percentiles."""
    wide = production(usd=Range(1.0, 20_000.0, 90_000.0))
    assert causes(production(), wide) == {}


@pytest.mark.parametrize(("one", "other", "mean"), [(4.0, 1.0, 3 / math.log(4)), (1.0, 4.0, 3 / math.log(4)), (5.0, 5.0, 5.0)])
def test_the_logarithmic_mean_by_hand(one: float, other: float, mean: float) -> None:
    """(a - b) / ln(a / b), between both; of equals the one."""
    assert logarithmic_mean(one, other) == pytest.approx(mean)


def test_all_factors_at_once_by_hand() -> None:
    """Work x 1.2, hours a FLOP x 1.1, goodput 0.9 to 0.6 and price x 1.5: each by its logarithm of the whole, 2.97."""
    found = causes(
        production(), program(Tier("production", (planned(hours=10_000 * 1.2 * 1.1 * 1.5, price=3.0, flops=1.2e22, goodput=0.6),)))
    )
    whole = 20_000 * (1.2 * 1.1 * 1.5 * 1.5 - 1)
    logarithms = {"scope": math.log(1.2), "utilisation": math.log(1.1), "failures": math.log(1.5), "price": math.log(1.5)}
    assert sum(found.values()) == Decimal(whole).quantize(Decimal("0.01"))
    for cause, logarithm in logarithms.items():
        assert float(found[cause]) == pytest.approx(whole * logarithm / math.log(1.2 * 1.1 * 1.5 * 1.5), abs=0.01)


def test_another_machine_takes_speed_and_price_together() -> None:
    """Half the hours at three times the price on another machine, and a better goodput: hardware is all but the failures."""
    after = production(accelerator="NVIDIA-B200-180GB-SXM", hours=5000, price=6.0, goodput=0.99)
    found = causes(production(), after)
    assert set(found) == {"hardware", "failures"}
    assert float(found["failures"]) == pytest.approx(10_000 / math.log(1.5) * math.log(0.9 / 0.99), abs=0.01)


def test_what_costs_nothing_on_one_side_is_scope() -> None:
    """A run for nothing that is paid for later has no factors to compare; its other lines stay its other lines."""
    free, paid = production(price=0.0, storage=100.0), production(price=2.0, storage=350.0)
    assert causes(free, paid) == {"scope": 20_000, "other lines": 250}
    assert causes(paid, free) == {"scope": -20_000, "other lines": -250}


def test_other_lines_of_runs_and_programs_and_reserves_change_apart_from_compute() -> None:
    """250 USD more of storage and 900 of people, 5 % less of reserves, while the price adds 10,000."""
    before = replace(production(storage=100.0), reserves=Reserves(0.1, 0.8, 0.0), other_lines=(OtherLine("personnel", Decimal(100), "x"),))
    after = replace(production(storage=350.0, price=3.0), other_lines=(OtherLine("personnel", Decimal(1000), "x"),))
    found = causes(before, after)
    envelope = plan_budget(before).envelope
    assert found == {"price": 10_000, "other lines": 1150, "reserves": -envelope.reserve_usd}
    assert envelope.reserve_usd > 0


def test_overheads_of_runs_that_cost_nothing_are_overheads() -> None:
    """An amount of 500 USD beside free runs becomes 800: nothing of it follows the runs."""
    around = [(ProgramOverhead("sweeps", "x", None, Decimal(usd)),) for usd in (500, 800)]
    before, after = (replace(production(price=0.0), overheads=overheads) for overheads in around)
    assert causes(before, after) == {"overheads": 300}
    assert causes(after, before) == {"overheads": -300}


def test_overheads_of_free_runs_are_told_apart_from_a_larger_change() -> None:
    """The same 300 USD beside 4,900 more for people: what the overheads miss would be added there, to the largest cause."""
    before, after = (
        replace(
            production(price=0.0),
            overheads=(ProgramOverhead("sweeps", "x", None, Decimal(sweeps)),),
            other_lines=(OtherLine("personnel", Decimal(people), "x"),),
        )
        for sweeps, people in ((500, 100), (800, 5000))
    )
    assert causes(before, after) == {"other lines": 4900, "overheads": 300}


def test_the_largest_cause_takes_the_rounding() -> None:
    """Parts that miss the whole by a cent; a fall is as large as a rise."""
    found = round_causes(Decimal("-9.99"), {"price": -20.0, "scope": 10.0})
    assert {cause.cause: cause.usd for cause in found.causes} == {"price": Decimal("-19.99"), "scope": Decimal("10.00")}
    assert round_causes(Decimal("0.00"), {"price": 5.0, "scope": -5.0}).headline == "$0: -$5 scope, $5 price"
