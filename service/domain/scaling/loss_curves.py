"""A run's loss so far against its planned end: the learning-rate schedule it follows, and what is foretold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range

Floats = NDArray[np.float64]
Decay = Literal["constant", "cosine", "linear", "exponential"]
State = Literal["falling", "flat", "diverging"]
Action = Literal["stop", "shrink", "continue", "extend"]


@dataclass(frozen=True, slots=True)
class LearningRateSchedule:
    """The learning rate as a share of its peak, `rate`, at rising counts of training `tokens`, straight between them.

    The first count is 0, the last is the plan's end. Until `warmup_tokens` the rate rises.
    """

    tokens: Floats
    rate: Floats
    warmup_tokens: float

    @property
    def end(self) -> float:
        return float(self.tokens[-1])


@dataclass(frozen=True, slots=True)
class CurvePrior:
    """What measured curves have, for what a run's own leaves open: `centre` and standard `deviation` of a normal prior.

    Columns: log of the power term, alpha, log of the level, log of what annealing takes off; all but alpha over the last loss.
    `relaxation_share` of the plan's tokens is how long a fall of the rate takes to count in full. The law itself errs by `level_error` of
    the loss, and by `fall_error` of the fall still to come, standard deviations both.
    """

    centre: Floats
    deviation: Floats
    relaxation_share: float
    level_error: float
    fall_error: float
    source: str
    relaxation_source: str


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Loss [nats a token] measured at counts of training tokens; a count met twice, as after a rollback, counts as measured last."""

    tokens: Floats
    loss: Floats


@dataclass(frozen=True, slots=True)
class EndForecast:
    """What a run's loss comes to at an end: its interval of 80 %, and what it is above the plan's end (below 0: better).

    `probability_of_target` is that of ending at or under the target, None where none was set.
    """

    tokens: float
    loss: Range
    above_plan: Range
    probability_of_target: float | None


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """A run's loss at its planned end, and at other ends. It is at `tokens`, `done` of its plan.

    `scatter` is the typical relative distance of the measured loss from the fitted law. `alpha` is the exponent found, `annealing` the
    loss that decaying the rate to 0 takes off.
    """

    tokens: float
    done: float
    now: float
    state: State
    planned: EndForecast
    others: tuple[EndForecast, ...]
    alpha: Range
    annealing: Range
    scatter: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with the run: to end it at so many tokens, and why."""

    action: Action
    tokens: float
    why: str
