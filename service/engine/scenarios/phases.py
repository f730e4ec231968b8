"""A run's outcomes in many trials, and those of a run in phases from its phases'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.scenarios import Floats, RunModel
from service.engine.scenarios.costs import unused_term_hours


@dataclass(frozen=True, slots=True)
class CauseScore:
    """A cause's score in each trial, distributed alike however long the run is, and the hours that a unit of it adds at the medians [h]."""

    score: Floats
    hours: float


@dataclass(frozen=True, slots=True)
class RunTrials:
    """A run in each trial, shape (trials,).

    `hours`: all repeats one after another; `accelerator_hours`: in these; `elapsed_hours`: with their concurrency, the wait for
    capacity and the work around the run; `queue_hours`: before them. `usd`: all repeats.
    `causes`: what adds hours to all repeats, for the attribution.
    """

    hours: Floats
    accelerator_hours: Floats
    elapsed_hours: Floats
    queue_hours: Floats
    usd: Floats
    price_factor: Floats | None
    causes: Mapping[str, CauseScore]


def join_phases(
    model: RunModel, phases: Sequence[RunTrials], usd_per_accelerator_hour: Floats | float, overhead: Floats | float
) -> RunTrials:
    """Outcomes of a run whose phases follow each other: sums, and its evaluation after them.

    Parameters
    ----------
    model : RunModel
        The run.
    phases : sequence of RunTrials
        Outcomes of each phase, in their order.
    usd_per_accelerator_hour : float or (trials,) float array
        Price of the run's machine, on which it is evaluated [USD/h].
    overhead : float or (trials,) float array
        Evaluation, debugging and reruns, as a share of the run's compute [1].

    Returns
    -------
    RunTrials
        Without a wait in the queue.
    """
    hours, elapsed = _total([phase.hours for phase in phases]), _total([phase.elapsed_hours for phase in phases])
    usd, evaluation = _total([phase.usd for phase in phases]), model.evaluation
    usd += (evaluation.accelerator_hours * usd_per_accelerator_hour + evaluation.other_usd) * model.run_equivalents
    for term in model.shared_terms:
        held = _total([phases[place].hours for place in term.phases]) / model.run_equivalents
        usd += unused_term_hours(term.run, held, overhead) * term.run.billing.counted_usd_per_hour * model.run_equivalents
    return RunTrials(
        hours=hours,
        accelerator_hours=_total([phase.accelerator_hours for phase in phases]),
        elapsed_hours=elapsed + evaluation.elapsed_hours * model.run_equivalents / model.concurrency,
        queue_hours=np.zeros(hours.shape),
        usd=usd,
        price_factor=_price_factor(phases),
        causes=_causes(phases),
    )


def _price_factor(phases: Sequence[RunTrials]) -> Floats | None:
    """Mean of the phases' factors, by their hours; None where no price moves."""
    if all(phase.price_factor is None for phase in phases):
        return None
    factors = [phase.hours * (1.0 if phase.price_factor is None else phase.price_factor) for phase in phases]
    return _total(factors) / _total([phase.hours for phase in phases])


def _causes(phases: Sequence[RunTrials]) -> dict[str, CauseScore]:
    """Each cause in all phases: its hours add, whichever phase they come from."""
    causes = {}
    for name in dict.fromkeys(name for phase in phases for name in phase.causes):
        parts = [phase.causes[name] for phase in phases if name in phase.causes]
        hours = sum(part.hours for part in parts)
        causes[name] = CauseScore(_total([part.score * (part.hours / hours) for part in parts]) if hours else parts[0].score, hours)
    return causes


def _total(rows: Sequence[Floats]) -> Floats:
    """Sum of rows, in a new array."""
    return np.asarray(np.sum(rows, axis=0))
