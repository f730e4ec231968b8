"""What a team's finished runs change in later estimates: factors of throughput, failures and overheads, shrunk towards the model."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import fmean

from service.domain.tracking.feedback import FeedbackFactors, FeedbackRules, Lessons, RunOutcome
from service.domain.training.utilisation import Utilisation

RATES = ("matmul_share", "attention_share", "link_share", "network_share")
TIMES = (
    *("tile_s", "hop_s", "activation_passes", "layer_overhead_s"),
    *("routing_overhead_s", "expert_overhead_s", "call_overhead_s"),
)

VERSION_DIGITS = 16


def make_lessons(outcomes: Sequence[RunOutcome]) -> Lessons | None:
    """The outcomes with their version, the SHA-256 of their content in any order; None where there are none.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        Finished runs of one team.
    """
    if not outcomes:
        return None
    ordered = tuple(sorted(outcomes, key=lambda outcome: outcome.run))
    text = json.dumps([asdict(outcome) for outcome in ordered], sort_keys=True, separators=(",", ":"))
    return Lessons(f"lessons-{hashlib.sha256(text.encode()).hexdigest()[:VERSION_DIGITS]}", ordered)


def feedback_factors(outcomes: Sequence[RunOutcome], accelerator: str, usual_mttf_hours: float, rules: FeedbackRules) -> FeedbackFactors:
    """Factors for an accelerator from finished runs on it.

    Throughput: the mean of log ratios, shrunk as if `prior_runs` runs had matched the model (normal prior and likelihood of equal
    variance). Failures: a gamma prior of one failure in the usual MTTF, and Poisson counts of the runs.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        Finished runs of the team.
    accelerator : str
        Canonical name of the accelerator.
    usual_mttf_hours : float
        Modelled mean time to failure [hours per accelerator].
    rules : FeedbackRules
        Weight of the model.

    Returns
    -------
    FeedbackFactors
        A factor is None where no run is informative.

    References
    ----------
    Gelman et al. 2013, Bayesian Data Analysis, sections 2.5 and 2.6.
    """
    here = [outcome for outcome in outcomes if outcome.accelerator == accelerator]
    ratios = [math.log(outcome.throughput_ratio) for outcome in here if outcome.throughput_ratio]
    hours, failures = math.fsum(outcome.accelerator_hours for outcome in here), sum(outcome.interruptions for outcome in here)
    return FeedbackFactors(
        throughput_ratio=math.exp(math.fsum(ratios) / (len(ratios) + rules.prior_runs)) if ratios else None,
        throughput_runs=len(ratios),
        mttf_hours_per_accelerator=(usual_mttf_hours + hours) / (1 + failures) if here else None,
        failure_runs=len(here),
    )


def mean_overhead(outcomes: Sequence[RunOutcome]) -> tuple[dict[str, float], int]:
    """Mean overheads of the runs that report some, as shares of compute [1], and the number of these runs; on any accelerator.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        Finished runs of the team.
    """
    overheads = [outcome.overhead for outcome in outcomes if outcome.overhead]
    names = sorted({name for overhead in overheads for name in overhead})
    return {name: fmean(overhead.get(name, 0.0) for overhead in overheads) for name in names}, len(overheads)


def scale_throughput(utilisation: Utilisation, ratio: float) -> Utilisation:
    """The utilisation with every part of a step slowed down to 1 / `ratio` of its speed; no share exceeds 1.

    Parameters
    ----------
    utilisation : Utilisation
        Modelled shares of peak rates [1] and overhead times [s].
    ratio : float
        Reached throughput over the modelled one [1].
    """
    most = min(ratio, *(1 / getattr(utilisation, name) for name in RATES))
    rates = {name: getattr(utilisation, name) * most for name in RATES}
    return replace(utilisation, **rates, **{name: getattr(utilisation, name) / most for name in TIMES})
