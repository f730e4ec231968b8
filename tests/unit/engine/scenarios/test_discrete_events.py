"""Random programs against a discrete-event simulation that shares no code with the engine: finish and cost at p10, p50 and p90.

The simulation draws every failure in its turn, lets activities request accelerators from a real pool, and adds up what each trial pays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
import simpy

from service.domain.quantities import Range
from service.domain.scenarios import ProgramModel, RepeatModel, RiskModel, RunModel, TierModel
from service.domain.schedule import AcceleratorPool, Activity, ActivityNetwork, PoolShare
from service.engine.scenarios.program import draw_inputs, order_program, random_spec, simulate_program
from service.engine.scheduling.repetition import Repetition, repeat_activities, repeat_name
from service.engine.scheduling.resource_levelling import level_resources
from tests.unit.engine.builders import failures, run
from tests.unit.engine.scenario_builders import run_model

POOL = 64
ACCELERATORS, USD_PER_HOUR = 8, 2.0
Z90 = 1.2815515655446004
TRIALS = 400
QUANTILES = (0.1, 0.5, 0.9)
INTERVAL_HOURS, RECOVERY_HOURS = 8.0, 0.5


def random_program(rng: np.random.Generator) -> ProgramModel:
    """One to three tiers of one to four runs, most of them side by side on a pool too small for all, overheads, risks and gates."""
    tiers: list[TierModel] = []
    activities: list[Activity] = []
    repeats: list[RepeatModel] = []
    risks: list[RiskModel] = []
    before: tuple[str, ...] = ()
    for place in range(rng.integers(1, 4)):
        first = len(activities)
        names = [f"t{place}r{number}" for number in range(rng.integers(1, 5))]
        runs = [_random_run(name, rng) for name in names]
        sweep = rng.random() * 0.5 if rng.random() < 0.5 else 0.0
        if sweep:
            activities.append(_overhead(f"t{place} sweep", names, sweep, before))
            before = (f"t{place} sweep",)
        for at, name in enumerate(names):
            after = (names[at - 1],) if at and rng.random() < 0.3 else before
            demand = int(rng.choice([16, 32, 48, 64]))
            queue = runs[at].queue_hours
            activities.append(
                Activity(name, Range.exactly(runs[at].useful_hours), "hours", after, queue_hours=queue, pool="p", accelerators=demand)
            )
        before = tuple(names)
        if rng.random() < 0.6:
            name = f"t{place} lost"
            share = float(rng.random())
            risks.append(RiskModel(float(rng.random()), share, 100.0, place, activity=name))
            activities.append(replace(_overhead(name, names, share, before), probability=risks[-1].probability))
            before = (name,)
        if rng.random() < 0.6:
            name, low = f"t{place} delay", float(rng.uniform(5, 50))
            risks.append(RiskModel(float(rng.random()), 0.0, 500.0, place, activity=name))
            activities.append(Activity(name, Range(low, low * 1.6, low * 4), "hours", before, probability=risks[-1].probability))
            before = (name,)
        passed = float(rng.uniform(0.4, 1.0)) if rng.random() < 0.7 else 1.0
        times = int(rng.integers(0, 3)) if passed < 1 else 0
        tiers.append(
            TierModel(
                tuple(runs), tuple(names), sweep, 10.0, 100.0, accruing_share=0.0, pass_probability=passed, repeats=times, repeat_usd=40.0
            )
        )
        if times:
            activities.append(Activity(f"t{place} gate", Range.exactly(0.0), "hours", before))
            once = {risk.activity or "" for risk in risks}
            attempt = activities[first:]
            for number in range(1, times + 1):
                again = repeat_activities(
                    attempt, once, Repetition(number, repeat_name(f"t{place} gate", number - 1), 0.4, f"t{place} gate")
                )
                repeats += [RepeatModel(activity.name, activity.repeats, place, number) for activity in again]
                activities += again
            before = (repeat_name(f"t{place} gate", times),)
    tiers[0] = replace(tiers[0], accruing_share=1.0)
    network = level_resources(ActivityNetwork(date(2027, 1, 4), tuple(activities)), (AcceleratorPool("p", (PoolShare(POOL),), 8),)).network
    return ProgramModel(tuple(tiers), network, 0.0, 0.05, 1000.0, 73.0, tuple(risks), repeats=tuple(repeats))


def _random_run(name: str, rng: np.random.Generator) -> RunModel:
    hours, low = float(rng.uniform(20, 120)), float(rng.uniform(0.6, 0.95))
    waits = float(rng.uniform(1, 20))
    whole = run(failures=failures(mttf_hours_per_accelerator=Range.exactly(float(rng.uniform(200, 4000))), checkpoint_write_minutes=0))
    policy = replace(whole.failures, detection_minutes=0.0, restart_minutes=RECOVERY_HOURS * 60)
    repeats = int(rng.integers(1, 4))
    return run_model(
        replace(whole, failures=policy),
        name,
        hours,
        interval_hours=INTERVAL_HOURS,
        slowdown=Range(low, 1.0, float(rng.uniform(1.05, 1.8))),
        queue_hours=Range(waits / 3, waits, waits * 4),
        run_equivalents=float(repeats),
        concurrency=1.0,
    )


def _overhead(name: str, of: list[str], share: float, after: tuple[str, ...]) -> Activity:
    return Activity(name, Range.exactly(1.0), "hours", after, proportional_to=tuple((run, share) for run in of))


class Simulation:
    """One trial after the other, with the standard library's arithmetic and SimPy's clock."""

    def __init__(self, model: ProgramModel, rng: np.random.Generator) -> None:
        self._model, self._rng = model, rng
        self._runs = {name: run for tier in model.tiers for name, run in zip(tier.activities, tier.runs, strict=True)}
        self._risks = {risk.activity: risk for risk in model.risks}
        self._repeats = {again.activity: again for again in model.repeats}

    def trial(self) -> tuple[float, float, float]:
        """Hours, cost with all gates passed, and cost until a gate fails [h, USD, USD]."""
        durations = {name: self._run_hours(run) for name, run in self._runs.items()}
        happens = {name: self._rng.random() < risk.probability for name, risk in self._risks.items()}
        gates = [self._gate(tier) for tier in self._model.tiers]
        hours = self._all_hours(durations, happens, gates)
        clock = simpy.Environment()
        pool = simpy.Container(clock, POOL, init=POOL)
        done = {activity.name: clock.event() for activity in self._model.network.activities}
        for activity in self._model.network.activities:
            clock.process(self._activity(clock, pool, activity, hours[activity.name], done))
        clock.run()
        reached, whole, spent = True, 0.0, 0.0
        for (usd, again), (passed, made, if_passed) in zip(self._costs(durations, happens, clock.now), gates, strict=True):
            whole += usd + if_passed * again
            spent += usd + made * again if reached else 0.0
            reached = reached and passed
        return clock.now, whole, spent

    def _gate(self, tier: TierModel) -> tuple[bool, int, int]:
        """Whether a gate is passed in the end, repeats made, and repeats of an attempt that is passed in the end."""
        failed = self._failed(tier)
        if failed <= tier.repeats:
            return True, failed, failed
        while (other := self._failed(tier)) > tier.repeats:
            pass
        return False, tier.repeats, other

    def _failed(self, tier: TierModel) -> int:
        """Decisions that fail before one is passed, at most one more than there are repeats."""
        failed = 0
        while failed <= tier.repeats and self._rng.random() >= tier.pass_probability:
            failed += 1
        return failed

    def _all_hours(
        self, durations: dict[str, float], happens: dict[str | None, bool], gates: list[tuple[bool, int, int]]
    ) -> dict[str, float]:
        """Time of every activity with its queue; a repeat takes as long as what it repeats."""
        first = [activity for activity in self._model.network.activities if activity.name not in self._repeats]
        hours = {activity.name: self._hours(activity, durations, happens) + self._spread(activity.queue_hours) for activity in first}
        for name, again in self._repeats.items():
            hours[name] = hours[again.source] if gates[again.tier][2] >= again.number else 0.0
        return hours

    def _activity(self, clock: Any, pool: Any, activity: Activity, hours: float, done: dict[str, Any]) -> Iterator[Any]:
        yield clock.all_of([done[name] for name in activity.predecessors])
        if activity.pool:
            assert pool.level >= activity.accelerators, f"{activity.name} was to start without its accelerators"
            yield pool.get(activity.accelerators)
        yield clock.timeout(hours)
        if activity.pool:
            yield pool.put(activity.accelerators)
        done[activity.name].succeed()

    def _hours(self, activity: Activity, durations: dict[str, float], happens: dict[str | None, bool]) -> float:
        if activity.name in durations:
            return durations[activity.name]
        if activity.proportional_to:
            hours = sum(factor * durations[name] for name, factor in activity.proportional_to)
        else:
            hours = self._spread(activity.duration)
        return hours if happens.get(activity.name, True) else 0.0

    def _run_hours(self, model: RunModel) -> float:
        """All repeats, segment by segment: a failure loses the segment so far and adds a recovery that may fail too."""
        useful = model.useful_hours * model.run_equivalents * self._spread(model.slowdown)
        to_failure = model.run.failures.mttf_hours_per_accelerator.p50 / ACCELERATORS
        elapsed, left = 0.0, useful
        next_failure = self._rng.exponential(to_failure)
        while left > 0:
            segment = min(INTERVAL_HOURS, left)
            for length in self._until_passed(segment):
                if next_failure >= length:
                    elapsed, next_failure = elapsed + length, next_failure - length
                    break
                elapsed += next_failure
                next_failure = self._rng.exponential(to_failure)
                while next_failure < RECOVERY_HOURS:
                    elapsed += next_failure
                    next_failure = self._rng.exponential(to_failure)
                elapsed, next_failure = elapsed + RECOVERY_HOURS, next_failure - RECOVERY_HOURS
            left -= segment
        return elapsed

    @staticmethod
    def _until_passed(segment: float) -> Iterator[float]:
        while True:
            yield segment

    def _costs(self, durations: dict[str, float], happens: dict[str | None, bool], end_hours: float) -> Iterator[tuple[float, float]]:
        """Cost of each tier, and of a repeat of it."""
        accruing = self._model.accruing_usd + self._model.accruing_usd_per_month * end_hours / 730.0
        for place, tier in enumerate(self._model.tiers):
            runs = sum(durations[name] for name in tier.activities) * ACCELERATORS * USD_PER_HOUR
            losses = sum(risk.cost_share * runs + risk.usd for name, risk in self._risks.items() if risk.tier == place and happens[name])
            fixed = tier.overhead_usd + tier.other_lines_usd + accruing * tier.accruing_share
            usd = runs * (1 + self._model.reserve_share + tier.overhead_share) + fixed + losses
            yield usd, runs * (1 + tier.overhead_share) + tier.overhead_usd + tier.repeat_usd

    def _spread(self, spread: Range) -> float:
        """Log-normal on either side of the median."""
        if spread.p10 == spread.p90:
            return spread.p50
        z = self._rng.standard_normal()
        side = math.log(spread.p90 / spread.p50) if z > 0 else math.log(spread.p50 / spread.p10)
        return spread.p50 * math.exp(side * z / Z90)


def standard_errors(seed: int) -> list[float]:
    """How far the engine's percentiles of one program are from the simulation's, in standard errors of the simulation."""
    rng = np.random.default_rng(seed)
    model = random_program(rng)
    simulation = Simulation(model, rng)
    simulated = np.array([simulation.trial() for _ in range(TRIALS)])
    ordered = order_program(model)
    drawn = simulate_program(ordered, draw_inputs(random_spec(ordered), 40_000, rng), {}, rng, causes=False)
    found = []
    for column, figures in enumerate((drawn.hours, drawn.completed_usd, drawn.usd)):
        for share in QUANTILES:
            value = np.quantile(figures, share)
            below, at_most = np.mean(simulated[:, column] < value * (1 - 1e-9)), np.mean(simulated[:, column] <= value * (1 + 1e-9))
            # Where many trials have the same value the percentile lies anywhere between the two.
            off = max(below - share, share - at_most, 0.0)
            found.append(off / math.sqrt(share * (1 - share) / TRIALS))
    return found


@pytest.mark.parametrize("programs", [range(4), pytest.param(range(100, 200), marks=pytest.mark.soak)], ids=["four", "a hundred"])
def test_finish_and_cost_are_those_of_a_discrete_event_simulation(programs: range) -> None:
    """Two standard errors hold for 95 % of percentiles that are right, and four for all."""
    found = [error for seed in programs for error in standard_errors(seed)]
    assert np.mean(np.array(found) > 2) < 0.08
    assert max(found) < 4
