"""Gates of a program in many trials: which are passed, and how often tiers are repeated before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.scenarios import Floats, Ints, Singles, TierModel
from service.engine.scenarios.run import Values

Flags = NDArray[np.bool_]
# A score of 0 or 1 has no finite normal one.
LEAST_UNIFORM = 1e-9


@dataclass(frozen=True, slots=True)
class GateTrials:
    """A tier's gate in each trial, shape (trials,): whether it is passed, None for always, and repeats of the tier before that.

    `repeats`: those that are made, also where it is failed for good; `repeats_if_passed`: those of a trial in which it is passed.
    """

    passed: Flags | None
    repeats: Ints | None = None
    repeats_if_passed: Ints | None = None


def decide_gate(tier: TierModel, uniform: Singles, values: Values) -> GateTrials:
    """Whether a tier's gate is passed, and how often the tier is repeated before.

    The number is that of failed decisions by the inverse of its distribution. Where the gate is failed for good the number of a trial that
    passes it follows from what is left of the same uniform number.
    """
    if tier.gate_field_path is None and tier.pass_probability >= 1:
        return GateTrials(None)
    drawn = tier.pass_probability if tier.gate_field_path is None else values[tier.gate_field_path]
    if not tier.repeats:
        return GateTrials(uniform < drawn)
    probability = np.clip(np.asarray(drawn, dtype=np.float64), LEAST_UNIFORM, 1.0)
    ever = 1 - (1 - probability) ** (tier.repeats + 1)
    passed = uniform < ever
    left = np.divide(uniform - ever, 1 - ever, out=np.zeros(uniform.shape), where=np.broadcast_to(ever < 1, uniform.shape))
    inside = np.where(passed, uniform, left * ever)
    failed = [inside >= 1 - (1 - probability) ** number for number in range(1, tier.repeats + 1)]
    if_passed = np.asarray(np.sum(failed, axis=0, dtype=np.int64))
    return GateTrials(passed, np.where(passed, if_passed, tier.repeats), if_passed)


def tiers_reached(passed: list[Flags | None], trials: int) -> list[Flags]:
    """Trials that reach each tier, and last those that pass all gates."""
    reached = [np.ones(trials, dtype=bool)]
    for gate in passed:
        reached.append(reached[-1] if gate is None else reached[-1] & gate)
    return reached


def add_repeats(once: Floats, again: Floats, repeats: Ints | None) -> Floats:
    """An amount with that of each repeat, in the unit of both."""
    return once if repeats is None else once + repeats * again
