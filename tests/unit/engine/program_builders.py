"""Programs that tests are made of: runs by hand, and any program at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from service.domain.programs.program import OtherLine, Program, ProgramOverhead, Reserves, Risk, Tier, TierGate
from service.domain.programs.runs import PlannedRun, ResourceUse, RunCostLine, Rung, RunReliability, RunRepetition
from service.domain.programs.tiers import TIERS
from service.domain.quantities import Range
from service.engine.numerics.money import cents


def planned(name: str = "main", hours: float = 1000.0, price: float = 2.0, storage: float = 0.0, **changes: Any) -> PlannedRun:
    """A run on eight accelerators: so many accelerator-hours at a price, a tenth of them lost."""
    lines = (RunCostLine("compute", cents(hours * price)), RunCostLine("storage", cents(storage)))
    usd = float(sum(line.usd for line in lines))
    use: dict[str, Any] = {
        "usd": Range(usd * 0.8, usd, usd * 1.5),
        "accelerator_hours": Range(hours * 0.8, hours, hours * 1.5),
        "wall_clock_hours": Range(hours * 0.1, hours / 8, hours * 0.2),
        "flops": hours * 1e18,
        "tokens": hours * 1e6,
        "tco2e": hours / 1000,
    }
    reliability = {"interruptions": hours / 500, "lost_hours": hours / 80, "goodput": 0.9, "checkpoint_interval_minutes": 30.0}
    for part in (use, reliability):
        part.update((field, changes.pop(field)) for field in part.keys() & changes.keys())
    fields: dict[str, Any] = {"name": name, "accelerator": "NVIDIA-H100-80GB-SXM", "lines": lines}
    return PlannedRun(**{**fields, "use": ResourceUse(**use), "reliability": RunReliability(**reliability), **changes})


def program(*tiers: Tier, **changes: Any) -> Program:
    """A program with no reserves, and errors of estimates that have nothing in common, but for `changes`."""
    fields: dict[str, Any] = {
        "name": "any",
        "tiers": tiers,
        "reserves": Reserves(0.0, 0.8, 0.0),
        "correlation": 0.0,
        "rollback_share": 0.01,
    }
    return Program(**{**fields, **changes})


def three_tiers(**changes: Any) -> Program:
    """1,000 USD of prototypes, 5,000 of validation and 20,000 of production, passed with 0.6, 0.7 and 0.8."""
    return program(
        Tier("prototype", (planned("ablations", 50, repetition=RunRepetition(repeat=10)),), TierGate("data mixture", 0.6)),
        Tier("validation", (planned("scale check", 1250, repetition=RunRepetition(repeat=2)),), TierGate("go to production", 0.7)),
        Tier("production", (planned("main", 10_000),), TierGate("release", 0.8)),
        **changes,
    )


shares = st.floats(0, 1)
amounts = st.integers(0, 10**9).map(lambda found: Decimal(found) / 100)
rungs = st.lists(st.builds(Rung, st.floats(0.01, 0.99), st.floats(0.01, 1)), max_size=4, unique_by=lambda rung: rung.at).map(
    lambda found: tuple(sorted(found, key=lambda rung: rung.at))
)
repetitions = st.builds(
    RunRepetition,
    repeat=st.integers(1, 20),
    grid=st.lists(st.integers(1, 6), max_size=3).map(tuple),
    seeds=st.integers(1, 4),
    rungs=rungs,
    concurrency=st.integers(1, 10),
)
gates = st.none() | st.builds(TierGate, st.just("anything"), shares)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any program that does not contradict itself."""
    names = sorted(draw(st.sets(st.sampled_from(TIERS), min_size=1)), key=TIERS.index)
    tiers = tuple(Tier(name, draw(_runs_of_a_tier()), draw(gates)) for name in names)
    of_tier = st.none() | st.sampled_from(names)
    names_of_work = st.sampled_from(["sweeps", "evaluation", "reruns"])
    overhead = st.builds(ProgramOverhead, names_of_work, st.just("x"), st.none() | shares, st.none() | amounts, of_tier)
    risk = st.builds(Risk, st.just("spike"), shares, of_tier, shares, amounts)
    other = st.builds(OtherLine, st.sampled_from(["storage", "personnel", "labelling"]), amounts, st.just("x"), of_tier)
    return program(
        *tiers,
        overheads=tuple(draw(st.lists(overhead, max_size=4))),
        other_lines=tuple(draw(st.lists(other, max_size=4))),
        risks=tuple(draw(st.lists(risk, max_size=4))),
        reserves=Reserves(draw(shares), draw(st.floats(0.5, 0.99)), draw(st.none() | shares)),
        correlation=draw(shares),
    )


@st.composite
def _runs_of_a_tier(draw: st.DrawFn) -> tuple[PlannedRun, ...]:
    hours = draw(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=4))
    return tuple(draw(_run(f"run {at}", one)) for at, one in enumerate(hours))


@st.composite
def _run(draw: st.DrawFn, name: str, hours: float) -> PlannedRun:
    work = hours * draw(st.floats(1e15, 1e19))
    return planned(name, hours, draw(st.floats(0.1, 20)), draw(st.floats(0, 1e5)), repetition=draw(repetitions), flops=work)
