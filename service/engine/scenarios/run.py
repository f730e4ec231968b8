"""One run in many trials at once: speed, failures and the time they take, queue wait, cost, and the contribution of each cause."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from service.domain.scenarios import Floats, RunModel, Singles, Trials
from service.engine.numerics.quantiles import log_ratio_to_median, range_quantiles
from service.engine.numerics.ranges import inverse
from service.engine.scenarios.costs import draw_price_factor, run_usd, usd_per_hour
from service.engine.scenarios.failures import CheckpointPolicy, SegmentCumulants, draw_lost_hours, segment_cumulants
from service.engine.scenarios.phases import CauseScore, RunTrials, join_phases
from service.engine.training.cost import overhead_share
from service.engine.training.reliability import HOURS_PER_WEEK

# Fields of an estimate's request that can have a value of their own in each trial.
DIRECT_FIELDS = (
    "data.tokens",
    "price.usd_per_accelerator_hour",
    "failures.mttf_hours_per_accelerator",
    "failures.detection_minutes",
    "failures.restart_minutes",
    "failures.preemptions_per_node_hour",
    "schedule.queue_hours",
    "overhead.evaluation",
    "overhead.debugging",
    "overhead.reruns",
)
RUN_SCORES = ("throughput", "failure_rate", "failures", "queue")
"""Standard normal scores of a run, one of each a trial."""
SHARED_SCORES = ("throughput", "failure_rate")
"""Scores with a part that all runs of a program share."""

Scores = Mapping[str, Singles]
Values = Mapping[str, Floats]


def uncertain_scores(model: RunModel) -> frozenset[str]:
    """Names of the scores that this run's outcome depends on."""
    uncertain = {"failures"} | ({"queue"} if model.queue_hours.p10 < model.queue_hours.p90 else set())
    for part in model.phases or (model,):
        uncertain |= {"throughput"} if part.slowdown.p10 < part.slowdown.p90 else set()
        uncertain |= {"failure_rate"} if _rate_is_uncertain(part) else set()
    return frozenset(uncertain)


def _rate_is_uncertain(model: RunModel) -> bool:
    failures = model.run.failures
    spreads = (failures.mttf_hours_per_accelerator, failures.preemption_spread)
    return any(spread.p10 < spread.p90 for spread in spreads)


def simulate_run(model: RunModel, scores: Scores, values: Values, rng: np.random.Generator, *, causes: bool) -> RunTrials:
    """Outcomes of a run. Its phases share speed and failure rate, which are the machine's and the software's; each has failures of its own.

    Parameters
    ----------
    model : RunModel
        The run.
    scores : mapping of (trials,) float arrays
        Standard normal scores by name in RUN_SCORES [1].
    values : mapping of (trials,) float arrays
        Values of uncertain fields by path [the fields' units].
    rng : Generator
        Source of single failures and price regimes.
    causes : bool
        Whether to return the causes' scores.

    Returns
    -------
    RunTrials
        Hours [h] and cost [USD] of each trial.
    """
    if not model.phases:
        return _simulate_whole(model, scores, values, rng, causes=causes)
    own = {field: values[path] for field, path in model.field_paths.items()}
    parts = []
    for place, phase in enumerate(model.phases):
        drawn = scores if place == 0 else {**scores, "failures": rng.standard_normal(scores["failures"].shape, dtype=np.float32)}
        parts.append(_simulate_whole(phase, drawn, values, rng, causes=causes))
    price = own.get("price.usd_per_accelerator_hour", model.run.billing.counted_usd_per_hour)
    whole = join_phases(model, parts, price, _overhead(model, own))
    return replace(whole, queue_hours=_queue_hours(model, scores, own, whole.hours.shape))


def _simulate_whole(model: RunModel, scores: Scores, values: Values, rng: np.random.Generator, *, causes: bool) -> RunTrials:
    """Outcomes of a run in one layout, or of one phase."""
    own = {field: values[path] for field, path in model.field_paths.items()}
    useful = useful_hours(model, scores)
    if "data.tokens" in own:
        useful = useful * (own["data.tokens"] / (model.planned_tokens or model.run.data.effective_tokens))
    rate, policy = failures_per_hour(model, scores, own), checkpoint_policy(model, own)
    lost, expected_lost = draw_lost_hours(useful, rate, policy, scores["failures"], rng)
    open_share = 1 - model.run.schedule.maintenance_hours_per_week / HOURS_PER_WEEK
    hours = (useful + lost) / open_share
    elapsed = hours * (1 + _overhead(model, own)) / model.concurrency / model.run.failures.capacity_share
    elapsed += model.evaluation.elapsed_hours * model.run_equivalents / model.concurrency
    factor = None if model.regimes is None else draw_price_factor(model.regimes, elapsed, rng)
    return RunTrials(
        hours=hours,
        accelerator_hours=hours * model.run.cluster.count,
        elapsed_hours=elapsed,
        queue_hours=_queue_hours(model, scores, own, hours.shape),
        usd=_usd(model, hours, own, factor),
        price_factor=factor,
        causes=_causes(model, scores, expected_lost / useful) if causes else {},
    )


def useful_hours(model: RunModel, scores: Scores) -> Floats:
    """Hours of training alone, all repeats; they share the error of their speed estimate.

    Parameters
    ----------
    model : RunModel
        The run.
    scores : mapping of (trials,) float arrays
        Standard normal scores by name [1].

    Returns
    -------
    (trials,) float array
        Hours [h].
    """
    median = model.useful_hours * model.run_equivalents
    if "throughput" not in scores:
        return np.full(scores["failures"].shape, median)
    return median * np.exp(log_ratio_to_median(model.slowdown, scores["throughput"])).astype(np.float64)


def failures_per_hour(model: RunModel, scores: Scores, own: Values) -> Floats:
    """Interruption rate of the whole job: accelerator failures and node preemptions.

    Parameters
    ----------
    model : RunModel
        The run.
    scores : mapping of (trials,) float arrays
        Standard normal scores by name [1].
    own : mapping of (trials,) float arrays
        Values of uncertain fields by estimate field [the fields' units].

    Returns
    -------
    (trials,) float array
        Rate [1/h].
    """
    run, mttf = model.run, model.run.failures.mttf_hours_per_accelerator
    preempted = run.cluster.nodes * own.get("failures.preemptions_per_node_hour", _preemptions(model, scores))
    stated = own.get("failures.mttf_hours_per_accelerator")
    if stated is not None:
        return np.asarray(run.cluster.count / stated + preempted)
    rate = np.full(scores["failures"].shape, run.cluster.count / mttf.p50)
    if "failure_rate" in scores and mttf.p10 < mttf.p90:
        rate *= np.exp(-log_ratio_to_median(mttf, scores["failure_rate"]))
    rate += preempted
    return rate


def _preemptions(model: RunModel, scores: Scores) -> Floats | float:
    """Preemptions of a node [1/h]: more of them where accelerators fail more often, since one score stands for both."""
    failures = model.run.failures
    spread = failures.preemption_spread
    if "failure_rate" not in scores or spread.p10 == spread.p90:
        return failures.preemptions_per_node_hour
    more = np.exp(-log_ratio_to_median(inverse(spread), scores["failure_rate"])).astype(np.float64)
    return failures.preemptions_per_node_hour * more


def checkpoint_policy(model: RunModel, own: Values) -> CheckpointPolicy:
    """Checkpoint interval and recovery times; the interval stays as planned at the median failure rate.

    Parameters
    ----------
    model : RunModel
        The run.
    own : mapping of (trials,) float arrays
        Values of uncertain fields by estimate field [the fields' units].

    Returns
    -------
    CheckpointPolicy
        Times [h].
    """
    failures = model.run.failures
    minutes = own.get("failures.detection_minutes", failures.detection_minutes) + own.get(
        "failures.restart_minutes", failures.restart_minutes
    )
    return CheckpointPolicy(model.interval_hours, failures.checkpoint_write_minutes / 60 * failures.checkpoint_blocking_share, minutes / 60)


def simulate_single_run(model: RunModel, scores: Scores, values: Values, rng: np.random.Generator, *, causes: bool) -> Trials:
    """Outcomes of a scenario of one run; parameters as of `simulate_run`.

    Returns
    -------
    Trials
        Hours, queue wait included [h], and cost [USD] of each trial.
    """
    trials = simulate_run(model, scores, values, rng, causes=causes)
    queued = np.maximum(0.0, trials.queue_hours)
    hours = trials.elapsed_hours + queued
    cause_scores = {name: cause.score for name, cause in trials.causes.items()}
    uncertain_queue = model.queue_hours.p10 < model.queue_hours.p90
    return Trials(
        usd=trials.usd,
        completed_usd=trials.usd,
        hours=hours,
        accelerator_hours=trials.accelerator_hours,
        completed=np.ones(hours.shape, dtype=bool),
        time_scores=cause_scores | ({"queue": queued} if uncertain_queue else {}) if causes else {},
        cost_scores=cause_scores | ({} if trials.price_factor is None else {"price": trials.price_factor}) if causes else {},
    )


def median_usd(model: RunModel) -> float:
    """Cost of the run's useful hours at the medians, which weighs causes [USD]."""
    return usd_per_hour(model) * model.useful_hours * model.run_equivalents


def _queue_hours(model: RunModel, scores: Scores, own: Values, shape: tuple[int, ...]) -> Floats:
    stated = own.get("schedule.queue_hours")
    if stated is not None:
        return stated
    return range_quantiles(model.queue_hours, scores["queue"]) if "queue" in scores else np.full(shape, model.queue_hours.p50)


def _usd(model: RunModel, hours: Floats, own: Values, factor: Floats | None) -> Floats:
    """Cost of all repeats, each at their mean hours."""
    hours_per_repeat = hours / model.run_equivalents
    price = own.get("price.usd_per_accelerator_hour", model.run.billing.counted_usd_per_hour)
    if factor is not None:
        price = price * factor
    return run_usd(model, hours_per_repeat, price, _overhead(model, own)) * model.run_equivalents


def _overhead(model: RunModel, own: Values) -> Floats | float:
    """Evaluation, debugging and reruns as a share of the run's compute."""
    share: Floats | float = overhead_share(model.run)
    for name in ("evaluation", "debugging", "reruns"):
        if f"overhead.{name}" in own:
            share = share + (own[f"overhead.{name}"] - getattr(model.run.overhead, name))
    return share


def _causes(model: RunModel, scores: Scores, lost_share: Floats) -> dict[str, CauseScore]:
    """What each cause adds to the hours at the medians of all others: so causes are independent as their scores are.

    `lost_share`: expected lost hours over useful ones, shape (trials,) [1].
    """
    median_useful = model.useful_hours * model.run_equivalents
    segments, causes = median_useful / model.interval_hours, {}
    if "throughput" in scores:
        slower = log_ratio_to_median(model.slowdown, scores["throughput"]).astype(np.float64)
        causes["throughput"] = CauseScore(np.expm1(slower), median_useful)
    median = _median_segment(model)
    if _rate_is_uncertain(model) and "failure_rate" in scores and "failures.mttf_hours_per_accelerator" not in model.field_paths:
        lost_per_segment = lost_share * model.interval_hours - checkpoint_policy(model, {}).write_hours
        causes["failure_rate"] = CauseScore(lost_per_segment / float(median.mean[0]), float(median.mean[0]) * segments)
    # The score of the number of failures: the hours lost would mostly say how long the run was, above all where nothing failed.
    lost_sd_hours = math.sqrt(segments * float(median.variance[0]))
    return causes | {"failures": CauseScore(scores["failures"].astype(np.float64), lost_sd_hours)}


def _median_segment(model: RunModel) -> SegmentCumulants:
    """Time that failures add to a segment at the medians."""
    failures = model.run.failures
    preempted = model.run.cluster.nodes * failures.preemptions_per_node_hour
    rate = np.array([model.run.cluster.count / failures.mttf_hours_per_accelerator.p50 + preempted])
    return segment_cumulants(rate, checkpoint_policy(model, {}))
