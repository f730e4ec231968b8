"""The gate tree with tiers that are repeated where their gate is failed: by hand, and against its closed form."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.programs.program import Program, TierGate
from service.engine.numerics.money import sum_usd
from service.engine.programs.budget import plan_budget
from service.engine.programs.gates import repeat_probabilities
from tests.unit.engine.program_builders import programs, three_tiers

probabilities = st.floats(0.01, 1.0)


def repeating(times: int, index: int = 1, **changes: Any) -> Program:
    """Three tiers, of which one is repeated where its gate is failed."""
    asked = three_tiers(**changes)
    tiers = list(asked.tiers)
    gate = tiers[index].gate
    assert gate is not None
    tiers[index] = replace(tiers[index], gate=replace(gate, repeat_on_fail=times))
    return replace(asked, tiers=tuple(tiers))


def test_a_failed_gate_repeats_its_tier_by_hand() -> None:
    """5,000 USD of validation passed with 0.7: once more with 0.3, of which 0.7 pass; passed in the end, 0.3 / 1.3 were repeated."""
    found = plan_budget(repeating(1))
    line = next(line for line in found.lines if line.line == "repeats: validation")
    assert line.usd == (Decimal(5000) * 3 / 13).quantize(Decimal("0.01"))
    assert found.total_usd.p50 == pytest.approx(26_000 + 5000 * 3 / 13, abs=0.01)
    assert found.completion_probability == pytest.approx(0.6 * (1 - 0.3**2) * 0.8)
    failed = next(ending for ending in found.endings if ending.stopped_at == "validation")
    assert (failed.probability, failed.usd) == (pytest.approx(0.6 * 0.09), Decimal("11000.00"))


def test_what_is_expected_is_the_mean_over_attempts() -> None:
    """A second validation is paid for whenever the first fails, whatever comes of it."""
    once, twice = plan_budget(repeating(0)), plan_budget(repeating(1))
    more = 0.6 * 0.3 * 5000 + 0.6 * (0.91 - 0.7) * 20_000
    assert float(twice.expected_usd - once.expected_usd) == pytest.approx(more, abs=0.02)


@given(probabilities, st.integers(0, 5))
def test_repeats_are_those_of_a_gate_that_is_passed_in_the_end(passed: float, times: int) -> None:
    """Of the attempts 0 to n the share that needs i or more, given that one of them passes."""
    found = repeat_probabilities(TierGate("anything", passed, repeat_on_fail=times))
    failed = 1 - passed
    ever = 1 - failed ** (times + 1)
    expected = [(failed**number - failed ** (times + 1)) / ever for number in range(1, times + 1)] if passed < 1 else []
    assert found == pytest.approx(tuple(expected), abs=1e-9)
    assert list(found) == sorted(found, reverse=True)


@given(programs(), st.integers(1, 5))
def test_repeats_only_add(asked: Program, times: int) -> None:
    """To budget, expected cost and chance; lines and endings still add up, and everything else stays to the cent."""
    gates = [None if tier.gate is None else replace(tier.gate, repeat_on_fail=times) for tier in asked.tiers]
    again = replace(asked, reserves=replace(asked.reserves, contingency=0.0))
    before = plan_budget(again)
    found = plan_budget(replace(again, tiers=tuple(replace(tier, gate=gate) for tier, gate in zip(asked.tiers, gates, strict=True))))
    assert found.completion_probability >= before.completion_probability - 1e-12
    assert found.expected_usd >= before.expected_usd - Decimal("0.02")
    assert found.total_usd.p50 == float(sum_usd(line.usd for line in found.lines))
    assert sum(ending.probability for ending in found.endings) == pytest.approx(1)
    assert [line for line in found.lines if not line.line.startswith("repeats")] == list(before.lines)
    envelope = found.envelope
    assert envelope.exploration_usd + envelope.committed_usd + envelope.reserve_usd == sum_usd(line.usd for line in found.lines)
    assert found.total_usd.p10 <= found.total_usd.p50 <= found.total_usd.p90


def test_repeats_widen_the_range() -> None:
    """Whether a tier is repeated is not known beforehand."""
    before, found = plan_budget(repeating(0)).total_usd, plan_budget(repeating(2)).total_usd
    assert found.p90 - found.p50 > before.p90 - before.p50


def test_a_gate_that_is_certain_repeats_nothing() -> None:
    """Whatever is stated."""
    asked = three_tiers()
    certain = replace(asked, tiers=tuple(replace(tier, gate=TierGate("x", 1.0, repeat_on_fail=3)) for tier in asked.tiers))
    without = replace(asked, tiers=tuple(replace(tier, gate=None) for tier in asked.tiers))
    assert plan_budget(certain).lines == plan_budget(without).lines
