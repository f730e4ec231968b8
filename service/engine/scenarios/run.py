"""A run in many trials at once: how slow it is, how often it fails and what that takes, how long it waits, what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.domain.scenarios import Floats, RunModel, Singles, Trials
from service.engine.numerics.quantiles import log_ratio_to_median, range_quantiles
from service.engine.scenarios.costs import run_usd, usd_per_hour
from service.engine.scenarios.failures import CheckpointPolicy, LostTime, SegmentCumulants, draw_lost_hours, segment_cumulants
from service.engine.scenarios.prices import draw_price_factor
from service.engine.training.cost import overhead_share
from service.engine.training.reliability import HOURS_PER_WEEK

# What trials may have values of their own for, by the field of an estimate's request.
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
"""A run's own chances, each a standard normal score a trial."""
SHARED_SCORES = ("throughput", "failure_rate")
"""Those whose errors different runs have in common."""

Scores = Mapping[str, Singles]
Values = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class CauseScore:
    """How hard something struck a run, alike distributed however long the run is, and the hours that a unit of it adds at the medians."""

    score: Floats
    hours: float


@dataclass(frozen=True, slots=True)
class RunTrials:
    """A run in each trial. `hours` are those of all its repeats one after another, `elapsed_hours` side by side; `queue_hours` before them.

    `causes`: what adds hours to all repeats, for telling causes apart.
    """

    hours: Floats
    elapsed_hours: Floats
    queue_hours: Floats
    usd: Floats
    price_factor: Floats | None
    causes: Mapping[str, CauseScore]


def uncertain_scores(model: RunModel) -> frozenset[str]:
    """Which of the scores decide anything of this run."""
    mttf = model.run.failures.mttf_hours_per_accelerator
    spreads = {"throughput": model.slowdown, "failure_rate": mttf, "queue": model.queue_hours}
    return frozenset({name for name, spread in spreads.items() if spread.p10 < spread.p90} | {"failures"})


def simulate_run(model: RunModel, scores: Scores, values: Values, rng: np.random.Generator, *, causes: bool) -> RunTrials:
    """A run in as many trials as there are scores. `values`: of fields of the request, by name; `causes`: whether they are asked for."""
    own = {field: values[path] for field, path in model.fields.items()}
    useful = useful_hours(model, scores)
    if "data.tokens" in own:
        useful = useful * (own["data.tokens"] / model.run.data.effective_tokens)
    lost = draw_lost_hours(useful, failures_per_hour(model, scores, own), checkpoint_policy(model, own), scores["failures"], rng)
    open_share = 1 - model.run.schedule.maintenance_hours_per_week / HOURS_PER_WEEK
    hours = (useful + lost.hours) / open_share
    queue = own.get("schedule.queue_hours")
    factor = None if model.regimes is None else draw_price_factor(model.regimes, hours / model.concurrency, rng)
    return RunTrials(
        hours=hours,
        elapsed_hours=hours / model.concurrency,
        queue_hours=range_quantiles(model.queue_hours, scores["queue"])
        if queue is None and "queue" in scores
        else _queue(model, queue, hours),
        usd=_usd(model, hours, own, factor),
        price_factor=factor,
        causes=_causes(model, scores, useful, lost) if causes else {},
    )


def useful_hours(model: RunModel, scores: Scores) -> Floats:
    """Hours of training alone, all repeats, which share the error of their estimate."""
    median = model.useful_hours * model.run_equivalents
    if "throughput" not in scores:
        return np.full(scores["failures"].shape, median)
    return median * np.exp(log_ratio_to_median(model.slowdown, scores["throughput"])).astype(np.float64)


def failures_per_hour(model: RunModel, scores: Scores, own: Values) -> Floats:
    """Interruptions of the whole job: accelerators that fail, nodes that are preempted."""
    run, mttf = model.run, model.run.failures.mttf_hours_per_accelerator
    preempted = run.cluster.nodes * own.get("failures.preemptions_per_node_hour", run.failures.preemptions_per_node_hour)
    stated = own.get("failures.mttf_hours_per_accelerator")
    if stated is not None:
        return np.asarray(run.cluster.count / stated + preempted)
    rate = np.full(scores["failures"].shape, run.cluster.count / mttf.p50)
    if "failure_rate" in scores and mttf.p10 < mttf.p90:
        rate *= np.exp(-log_ratio_to_median(mttf, scores["failure_rate"]))
    rate += preempted
    return rate


def checkpoint_policy(model: RunModel, own: Values) -> CheckpointPolicy:
    """How the run saves and recovers: as planned at the median rate of failures, whatever the rate turns out to be."""
    failures = model.run.failures
    minutes = own.get("failures.detection_minutes", failures.detection_minutes) + own.get(
        "failures.restart_minutes", failures.restart_minutes
    )
    return CheckpointPolicy(model.interval_hours, failures.checkpoint_write_minutes / 60 * failures.checkpoint_blocking_share, minutes / 60)


def simulate_single_run(model: RunModel, scores: Scores, values: Values, rng: np.random.Generator, *, causes: bool) -> Trials:
    """A run as the whole of what is looked at."""
    found = simulate_run(model, scores, values, rng, causes=causes)
    queued = np.maximum(0.0, found.queue_hours)
    hours = found.elapsed_hours + queued
    struck = {name: cause.score for name, cause in found.causes.items()}
    passed = np.ones(hours.shape, dtype=bool)
    return Trials(
        usd=found.usd,
        completed_usd=found.usd,
        hours=hours,
        accelerator_hours=found.hours * model.run.cluster.count,
        completed=passed,
        time_scores=struck | _queue_cause(model, queued) if causes else {},
        cost_scores=struck | ({} if found.price_factor is None else {"price": found.price_factor}) if causes else {},
    )


def median_usd(model: RunModel) -> float:
    """What the run's useful hours cost at the medians, to weigh causes with."""
    return usd_per_hour(model) * model.useful_hours * model.run_equivalents


def _queue(model: RunModel, stated: Floats | None, hours: Floats) -> Floats:
    return np.full(hours.shape, model.queue_hours.p50) if stated is None else stated


def _queue_cause(model: RunModel, queued: Floats) -> dict[str, Floats]:
    asked = model.queue_hours.p10 < model.queue_hours.p90
    return {"queue": queued} if asked else {}


def _usd(model: RunModel, hours: Floats, own: Values, factor: Floats | None) -> Floats:
    """All repeats, each at the mean of their hours."""
    once = hours / model.run_equivalents
    price = own.get("price.usd_per_accelerator_hour", model.run.usd_per_accelerator_hour)
    if factor is not None:
        price = price * factor
    return run_usd(model, once, price, _around(model, own)) * model.run_equivalents


def _around(model: RunModel, own: Values) -> Floats | float:
    """Work around the run, as a share of its compute."""
    stated: Floats | float = overhead_share(model.run)
    for name in ("evaluation", "debugging", "reruns"):
        if f"overhead.{name}" in own:
            stated = stated + (own[f"overhead.{name}"] - getattr(model.run.overhead, name))
    return stated


def _causes(model: RunModel, scores: Scores, useful: Floats, lost: LostTime) -> dict[str, CauseScore]:
    """What adds hours to those at the medians, whatever the others do: so causes are independent as their chances are."""
    usual, median_useful = model.run.failures.mttf_hours_per_accelerator, model.useful_hours * model.run_equivalents
    segments, found = median_useful / model.interval_hours, {}
    if "throughput" in scores:
        slower = log_ratio_to_median(model.slowdown, scores["throughput"]).astype(np.float64)
        found["throughput"] = CauseScore(np.expm1(slower), median_useful)
    once = _median_segment(model)
    if usual.p10 < usual.p90 and "failure_rate" in scores and "failures.mttf_hours_per_accelerator" not in model.fields:
        a_segment = lost.expected / useful * model.interval_hours - checkpoint_policy(model, {}).write_hours
        found["failure_rate"] = CauseScore(a_segment / float(once.mean[0]), float(once.mean[0]) * segments)
    # The score of their number: hours lost say how long the run was, most of all where nothing failed.
    lost_sd_hours = math.sqrt(segments * float(once.variance[0]))
    return found | {"failures": CauseScore(scores["failures"].astype(np.float64), lost_sd_hours)}


def _median_segment(model: RunModel) -> SegmentCumulants:
    """What failures add to a segment at the medians."""
    failures = model.run.failures
    preempted = model.run.cluster.nodes * failures.preemptions_per_node_hour
    rate = np.array([model.run.cluster.count / failures.mttf_hours_per_accelerator.p50 + preempted])
    return segment_cumulants(rate, checkpoint_policy(model, {}))
