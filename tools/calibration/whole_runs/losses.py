"""What published runs took beyond their steps and failures: a small regression, shrunk towards no loss and robust to single runs.

The logarithm of a run's hours over those of its modelled steps and failures is explained by four terms (`LossTerms`): the share of its
peers on other nodes, the doublings of the machine beyond 512 accelerators, the years of its software before 2024, and whether it is a
mixture of experts. Goodput is modelled as the software of the run's year recovers, so what is fitted here is what it leaves.

Forms were compared by their error on runs of publications and families of models that were left out. Of the years, 2024 and 2025 do not
differ, nor do those before 2021. The size of the run in hours or FLOPs explains as much as that of the machine, but would make the cost of
a token depend on their number. Machines below 512 accelerators do not differ either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from service.domain.training.utilisation import LossTerms
from service.engine.training.run_time import log_loss, loss_terms
from service.presets.training.throughput_parameters import FittedParameters
from tools.calibration.folds import Folds
from tools.calibration.priors import loss_priors
from tools.calibration.table import Floats
from tools.calibration.whole_runs.runs import PublishedRun, hours_of_steps_and_failures

# No slope of the loss where it is cut off at 0: the fit starts a little above.
START = 0.01


@dataclass(frozen=True)
class RunLosses:
    """Runs with the hours of each over those of its steps and failures, modelled without its publication."""

    runs: tuple[PublishedRun, ...]
    ratio: Floats


@dataclass(frozen=True)
class FittedLosses:
    """Coefficients, and the standard error of each from leaving out one publication or family of models after the other.

    `log_ratio_quantiles`: of actual over planned hours, each run planned without its kin.
    """

    runs: int
    coefficients: LossTerms
    errors: LossTerms
    log_ratio_quantiles: dict[str, float]


def run_losses(runs: Sequence[PublishedRun], parameters: FittedParameters, folds: Folds) -> RunLosses:
    """Hours of runs over those of their steps and failures, with parameters fitted without their publication."""
    planned = [hours_of_steps_and_failures(run, folds.publications.get(run.publication, parameters)) for run in runs]
    return RunLosses(tuple(runs), np.array([run.hours for run in runs]) / np.array(planned))


def terms_of(run: PublishedRun) -> LossTerms:
    """The terms that a run's loss depends on."""
    return loss_terms(run.model, run.cluster, run.training.software_year, loss_priors().measured)


def slowdown(run: PublishedRun, coefficients: LossTerms) -> float:
    """A whole run's hours over those of its steps and failures: `engine.training.run_time.run_over_step_speed` is its inverse."""
    return math.exp(log_loss(coefficients, terms_of(run)))


def fit_coefficients(losses: RunLosses) -> LossTerms:
    """Coefficients that explain the runs' losses best, each with a prior about 0; soft-L1 loss."""
    from scipy.optimize import least_squares

    known = loss_priors()
    terms = [terms_of(run) for run in losses.runs]
    measured, width = np.log(losses.ratio), np.array(astuple(known.width))

    def misses(vector: Floats) -> Floats:
        explained = np.array([log_loss(LossTerms(*vector), one) for one in terms])
        rows = (measured - explained) / known.scatter
        soft = np.sign(rows) * np.sqrt(2 * (np.sqrt(1 + rows**2) - 1))
        return np.concatenate([soft, vector / width])

    return LossTerms(*(round(float(value), 4) for value in least_squares(misses, np.full(len(width), START)).x))


def fit_losses(losses: RunLosses) -> FittedLosses:
    """Coefficients of all runs with their standard errors (the jackknife over publications and families of models)."""
    left_out = np.array([astuple(one) for one in coefficients_left_out(losses).values()])
    errors = np.sqrt((len(left_out) - 1) * left_out.var(axis=0))
    missed = np.log(losses.ratio / slowdowns_left_out(losses))
    quantiles = {name: float(np.quantile(missed, share)) for name, share in {"p10": 0.1, "median": 0.5, "p90": 0.9}.items()}
    return FittedLosses(len(losses.runs), fit_coefficients(losses), LossTerms(*(round(float(one), 4) for one in errors)), quantiles)


def slowdowns_left_out(losses: RunLosses) -> Floats:
    """By run, hours over those of steps and failures as the runs of other publications and families of models have it."""
    coefficients = coefficients_left_out(losses)
    return np.array([slowdown(run, coefficients[run.kin]) for run in losses.runs])


def coefficients_left_out(losses: RunLosses) -> dict[str, LossTerms]:
    """By publication or family of models, the coefficients of the runs of all others."""
    return {kin: fit_coefficients(without(losses, kin)) for kin in sorted({run.kin for run in losses.runs})}


def without(losses: RunLosses, kin: str) -> RunLosses:
    """The runs but for those of a publication or family of models."""
    return _only(losses, lambda run: run.kin != kin)


def _only(losses: RunLosses, chosen: Callable[[PublishedRun], bool]) -> RunLosses:
    mask = np.array([chosen(run) for run in losses.runs])
    return RunLosses(tuple(run for run, is_chosen in zip(losses.runs, mask, strict=True) if is_chosen), losses.ratio[mask])
