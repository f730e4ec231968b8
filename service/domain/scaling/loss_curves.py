"""A run's loss so far, its learning-rate schedule, and forecasts of its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from service.domain.answer_fields import Doc
from service.domain.quantities import Range

Floats = NDArray[np.float64]
Decay = Literal["constant", "cosine", "linear", "exponential"]
State = Literal["falling", "flat", "diverging"]
Action = Literal["stop", "shrink", "continue", "extend"]


@dataclass(frozen=True, slots=True)
class LearningRateSchedule:
    """Learning rate over a plan, linear between counts of tokens.

    Attributes
    ----------
    tokens : (points,) float array
        Rising counts of training tokens, from 0 to the plan's end.
    rate : (points,) float array
        Learning rate over its peak [1].
    warmup_tokens : float
        Tokens until the rate has risen to its peak.
    """

    tokens: Floats
    rate: Floats
    warmup_tokens: float

    @property
    def end(self) -> float:
        """Training tokens at the plan's end."""
        return float(self.tokens[-1])


@dataclass(frozen=True, slots=True)
class CurvePrior:
    """Normal prior of a loss curve's parameters, from measured curves.

    Columns of `centre` and `deviation`: logs of the power term, alpha, log of the level, log of the annealing; all but alpha relative to
    the last loss. `relaxation_share` of the plan's tokens pass until a fall of the rate counts in full. `level_error` of the loss and
    `fall_error` of the remaining fall are standard deviations of the law's own error.
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
    """Loss [nats/token] at counts of training tokens; a count measured twice, as after a rollback, has its last value."""

    tokens: Floats
    loss: Floats


@dataclass(frozen=True, slots=True)
class EndForecast:
    """Forecast of the loss at an end of the run, and relative to the plan's end."""

    tokens: float
    loss: Range
    above_plan: Range
    probability_of_target: float | None


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """Forecasts of a run's loss at its planned end and at other ends.

    The run is at `tokens`, a share `done_share` of its plan [1], with a recent loss of `recent_loss` [nats/token]. `scatter` is the typical
    relative distance of the measured loss from the fitted law, `alpha` the fitted exponent, `annealing` the loss that decaying the rate to
    0 takes off.
    """

    tokens: float
    done_share: float
    recent_loss: float
    state: State
    planned: EndForecast
    other_ends: tuple[EndForecast, ...]
    alpha: Range
    annealing: Range
    scatter: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with the run: where to end it, and why."""

    action: Annotated[Action, Doc("What to do with the run")]
    tokens: Annotated[float, Doc("Training tokens to end the run at", "tokens", minimum=-1e308, maximum=1e308)]
    why: Annotated[str, Doc("Why, in figures", max_length=1000)]
