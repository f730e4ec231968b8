"""Training runs simulated hour by hour, many at once: failures, repairs, rollbacks, stragglers, noise with a memory, plans that err.

The engine knows nothing of how they are made. Failures are a Poisson process in elapsed time, with repeats soon after; repairs are
log-normal; an interruption loses the work since the last checkpoint, a rollback more. While it runs a job's throughput is its true mean
times an autoregressive noise with heavy-tailed innovations, times a slow wander, times what a straggling node leaves of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TOKENS_PER_HOUR = 1e9
USD_PER_ACCELERATOR_HOUR, ACCELERATORS = 2.5, 512
# Simulated runs that would take longer than this many times their plan are cut off.
LONGEST = 4.0
# A failure whose cause is still there comes back within hours of work.
REPEATED_PER_HOUR = 0.3


@dataclass(frozen=True, slots=True)
class Regime:
    """How runs behave; regimes.toml says what each figure is."""

    days: tuple[float, float]
    mttf_hours: float
    repair_hours: float
    repair_spread: float
    repeat_share: float
    checkpoint_hours: float
    rollback_every_hours: float
    rollback_hours: tuple[float, float]
    noise: float
    noise_memory_hours: float
    straggler_every_hours: float
    straggler_hours: float
    straggler_loss: tuple[float, float]
    wander_a_month: float
    plan_error: float
    price_change_share: float


def read_regime(name: str) -> Regime:
    """A regime of regimes.toml."""
    rows = tomllib.loads((Path(__file__).parent / "regimes.toml").read_text(encoding="utf-8"))
    return Regime(**{field: tuple(value) if isinstance(value, list) else value for field, value in rows[name].items()})


CALM, ROUGH = read_regime("calm"), read_regime("rough")
REGIMES: Mapping[str, Regime] = {
    "short calm": replace(CALM, days=(8, 20)),
    "short rough": replace(ROUGH, days=(8, 20)),
    "long calm": CALM,
    "long rough": ROUGH,
}


@dataclass(frozen=True, slots=True)
class Runs:
    """Simulated runs, one a row, one column an hour's end; column 0 is the start. All totals run on to the last column.

    `tokens` is the position, `trained` counts also what was lost. `finish` is the column after the last token; `interruptions_per_hour`
    what a plan would allow for.
    """

    goal: Floats
    planned: Floats
    tokens: Floats
    trained: Floats
    productive: Floats
    usd: Floats
    accelerator_hours: Floats
    interruptions: Floats
    finish: NDArray[np.int64]
    interruptions_per_hour: float


@dataclass(slots=True)
class _State:
    """Where every run is."""

    position: Floats
    kept: Floats
    since_kept: Floats
    down: Floats
    noise: Floats
    wander: Floats
    slow: Floats
    slow_share: Floats
    fragile: NDArray[np.bool_]


def simulate(regime: Regime, count: int, seed: int) -> Runs:
    """`count` runs of a regime, all until the last is done."""
    rng = np.random.default_rng(seed)
    planned_hours = rng.uniform(*regime.days, count) * 24
    planned = np.full(count, TOKENS_PER_HOUR)
    goal = planned * planned_hours
    pace = planned * np.exp(rng.normal(0, regime.plan_error, count)) / typical_share(regime)
    steps = int(LONGEST * planned_hours.max())
    price = _prices(regime, planned_hours, steps, rng)
    billed_down = rng.integers(0, 2, count)
    state = _start(count, regime, rng)
    rows: list[tuple[Floats, ...]] = [(np.zeros(count),) * 4]
    for _ in range(steps):
        rows.append(_hour(state, regime, pace, rng))
        if (state.position >= goal).all():
            break
    position, trained, productive, interruptions = (np.array(part).T for part in zip(*rows, strict=True))
    hours = np.where(billed_down[:, None] == 1, 1.0, productive) * ACCELERATORS
    hours[:, 0] = 0
    reached = np.maximum.accumulate(position, axis=1) >= goal[:, None]
    return Runs(
        goal, planned, position, trained.cumsum(axis=1), productive.cumsum(axis=1), (hours * price[:, : hours.shape[1]]).cumsum(axis=1),
        hours.cumsum(axis=1), interruptions.cumsum(axis=1), np.where(reached.any(axis=1), reached.argmax(axis=1), position.shape[1] - 1),
        interruptions_per_hour(regime),
    )  # fmt: skip


def interruptions_per_hour(regime: Regime) -> float:
    """Interruptions of an elapsed hour that a plan would allow for."""
    running = 1 / (1 - regime.repeat_share) / regime.mttf_hours
    return running / (1 + running * _mean_repair(regime))


def typical_share(regime: Regime) -> float:
    """The share of its pace that a run of the regime keeps on average, to first order: plans know about failures."""
    failures = 1 / (1 - regime.repeat_share) / regime.mttf_hours
    lost = failures * (_mean_repair(regime) + regime.checkpoint_hours / 2) + np.mean(regime.rollback_hours) / regime.rollback_every_hours
    slow = regime.straggler_hours / (regime.straggler_every_hours + regime.straggler_hours) * np.mean(regime.straggler_loss)
    return float((1 - slow) / (1 + lost))


def _mean_repair(regime: Regime) -> float:
    return float(regime.repair_hours * np.exp(regime.repair_spread**2 / 2))


def _prices(regime: Regime, planned_hours: Floats, steps: int, rng: np.random.Generator) -> Floats:
    """USD per accelerator-hour by the hour: constant, or changed once somewhere in the run."""
    count = len(planned_hours)
    at = rng.uniform(0, 1, count) * planned_hours
    factor = np.where(rng.random(count) < regime.price_change_share, np.exp(rng.normal(0, 0.15, count)), 1.0)
    return USD_PER_ACCELERATOR_HOUR * np.where(np.arange(steps + 1)[None] > at[:, None], factor[:, None], 1.0)


def _start(count: int, regime: Regime, rng: np.random.Generator) -> _State:
    zero = np.zeros(count)
    noise = rng.normal(0, regime.noise, count)
    return _State(zero, zero, zero, zero, noise, zero, zero, zero, np.zeros(count, dtype=bool))


def _hour(state: _State, regime: Regime, pace: Floats, rng: np.random.Generator) -> tuple[Floats, ...]:
    """One hour of every run: position at its end, tokens trained in it, hours productive, interruptions."""
    count = len(pace)
    _wander(state, regime, rng)
    up = np.clip(1 - state.down, 0, 1)
    state.down = np.maximum(state.down - 1, 0)
    failed = rng.random(count) < up * (1 / regime.mttf_hours + state.fragile * REPEATED_PER_HOUR)
    up = np.where(failed, up * rng.random(count), up)
    gained = pace * up * np.exp(state.noise + state.wander) * (1 - np.where(state.slow > 0, state.slow_share, 0))
    state.position = state.position + gained
    _keep(state, regime, up)
    _lose(state, regime, failed, pace, rng)
    return state.position.copy(), gained, up, failed.astype(float)


def _wander(state: _State, regime: Regime, rng: np.random.Generator) -> None:
    """The noise of an hour: autoregressive, with Student innovations of 5 degrees of freedom; the slow wander; stragglers."""
    count = len(state.noise)
    memory = np.exp(-1 / regime.noise_memory_hours)
    shock = rng.standard_t(5, count) / np.sqrt(5 / 3)
    state.noise = memory * state.noise + regime.noise * np.sqrt(1 - memory**2) * shock
    state.wander = state.wander + rng.normal(0, regime.wander_a_month / np.sqrt(720), count)
    begins = (state.slow <= 0) & (rng.random(count) < 1 / regime.straggler_every_hours)
    state.slow = np.where(begins, rng.exponential(regime.straggler_hours, count), np.maximum(state.slow - 1, 0))
    state.slow_share = np.where(begins, rng.uniform(*regime.straggler_loss, count), state.slow_share)


def _keep(state: _State, regime: Regime, up: Floats) -> None:
    """Checkpoints at intervals of productive hours."""
    state.since_kept = state.since_kept + up
    due = state.since_kept >= regime.checkpoint_hours
    state.kept = np.where(due, state.position, state.kept)
    state.since_kept = np.where(due, 0, state.since_kept)


def _lose(state: _State, regime: Regime, failed: NDArray[np.bool_], pace: Floats, rng: np.random.Generator) -> None:
    """Failures take the work since the last checkpoint and a repair, and some come back soon; rollbacks take hours of work."""
    count = len(pace)
    repair = regime.repair_hours * np.exp(regime.repair_spread * rng.normal(size=count))
    state.fragile = np.where(failed, rng.random(count) < regime.repeat_share, state.fragile)
    state.position = np.where(failed, state.kept, state.position)
    state.down = np.where(failed, repair, state.down)
    back = rng.random(count) < 1 / regime.rollback_every_hours
    undone = np.maximum(state.position - pace * rng.uniform(*regime.rollback_hours, count), 0)
    state.position = np.where(back, undone, state.position)
    state.kept = np.minimum(state.kept, state.position)
