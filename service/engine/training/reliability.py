"""Failures, checkpoints and goodput.

Interruptions are a Poisson process in accelerator-hours. The checkpoint interval is Daly's (Daly 2006, A higher order estimate of the
optimum checkpoint interval for restart dumps, equation 37, after Young 1974), the lost time that of his complete cost function for
exponential failures, which also strike during recovery.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.training.run import Cluster, Failures, Run

Floats = NDArray[np.float64]
HOURS_PER_WEEK = 168.0
# Larger exponents overflow a float; goodput is then practically zero.
LARGEST_EXPONENT = 700.0
# Lower limit of the interval, for checkpoint writes that take no time.
SHORTEST_INTERVAL_HOURS = 1 / 60


@dataclass(frozen=True, slots=True)
class Reliability:
    """How a job fails and what that costs it.

    Attributes
    ----------
    mttf_hours : float
        Mean time to failure of the job, preemptions included [h].
    checkpoint_interval_minutes : float
        Time between checkpoints [min].
    goodput : float
        Useful time over wall-clock time [1].
    lost_hours_per_interruption : float
        Recovery and repeated work of one interruption [h].
    """

    mttf_hours: float
    checkpoint_interval_minutes: float
    goodput: float
    lost_hours_per_interruption: float


def job_failures_per_hour(failures: Failures, cluster: Cluster, mttf_hours_per_accelerator: float) -> float:
    """Interruptions of the whole job: failures of accelerators, and preemptions of nodes.

    Parameters
    ----------
    failures : Failures
        Preemptions per node-hour.
    cluster : Cluster
        Accelerators and nodes.
    mttf_hours_per_accelerator : float
        Mean time to failure of one accelerator [h].

    Returns
    -------
    float
        Rate [1/h].
    """
    return cluster.count / mttf_hours_per_accelerator + cluster.nodes * failures.preemptions_per_node_hour


def daly_interval_hours(write_hours: float, mttf_hours: float) -> float:
    """Time between checkpoints that loses least.

    For writes of more than twice the mean time to failure it is that mean time itself.

    Parameters
    ----------
    write_hours : float
        Time of a checkpoint write that training waits for [h].
    mttf_hours : float
        Mean time to failure of the job [h].

    Returns
    -------
    float
        [h].

    References
    ----------
    Daly 2006, equation 37.
    """
    if write_hours >= 2 * mttf_hours:
        return mttf_hours
    ratio = math.sqrt(write_hours / (2 * mttf_hours))
    return math.sqrt(2 * write_hours * mttf_hours) * (1 + ratio / 3 + ratio**2 / 9) - write_hours


def goodput(failures_per_hour: float, interval_hours: float, write_hours: float, recovery_hours: float) -> float:
    """Useful share of wall-clock time: an interval of work over the mean time that it takes to complete it.

    A segment of work and its checkpoint write is repeated until it passes without failure; each failure adds a recovery, itself repeated
    until it passes. Mean time exp(rate * recovery) * (exp(rate * (interval + write)) - 1) / rate.

    Parameters
    ----------
    failures_per_hour : float
        Rate of interruptions of the job [1/h].
    interval_hours, write_hours, recovery_hours : float
        Work between checkpoints, checkpoint write, recovery [h].

    Returns
    -------
    float
        From 0 to 1 [1].

    References
    ----------
    Daly 2006.
    """
    segment = interval_hours + write_hours
    expected, recovering = failures_per_hour * segment, failures_per_hour * recovery_hours
    if expected + recovering > LARGEST_EXPONENT:
        return 0.0
    if expected < 1e-12:
        return interval_hours / segment * math.exp(-recovering)
    return failures_per_hour * interval_hours / (math.exp(recovering) * math.expm1(expected))


def reliability(failures: Failures, cluster: Cluster, maintenance_hours_per_week: float, mttf_hours_per_accelerator: float) -> Reliability:
    """How often a job stops and how much of its time is useful, maintenance windows included.

    Parameters
    ----------
    failures : Failures
        Times of detection, restart and checkpoint writes; preemptions.
    cluster : Cluster
        Accelerators and nodes.
    maintenance_hours_per_week : float
        Planned downtime [h per week].
    mttf_hours_per_accelerator : float
        Mean time to failure of one accelerator [h].

    Returns
    -------
    Reliability
        Of the whole job.
    """
    rate = job_failures_per_hour(failures, cluster, mttf_hours_per_accelerator)
    mttf = 1 / rate
    write = failures.checkpoint_write_minutes / 60 * failures.checkpoint_blocking_share
    recovery = (failures.detection_minutes + failures.restart_minutes) / 60
    interval = _interval_hours(failures, write, mttf)
    useful = goodput(rate, interval, write, recovery)
    return Reliability(
        mttf_hours=mttf,
        checkpoint_interval_minutes=interval * 60,
        goodput=useful * (1 - maintenance_hours_per_week / HOURS_PER_WEEK),
        lost_hours_per_interruption=recovery + (interval + write) / 2,
    )


def checkpoint_interval_hours(run: Run) -> float:
    """Time between the run's checkpoints: stated, or by Daly's rule at the median of its time to failure.

    Returns
    -------
    float
        [h].
    """
    failures = run.failures
    weekly, mttf_hours = run.schedule.maintenance_hours_per_week, failures.mttf_hours_per_accelerator.p50
    return reliability(failures, run.cluster, weekly, mttf_hours).checkpoint_interval_minutes / 60


def checkpoints_written(hours: Floats | float, interval_hours: Floats | float) -> Floats:
    """Checkpoints of a run: one at the end of each interval, the last at the run's end.

    Parameters
    ----------
    hours : float or (n,) float array
        Wall-clock hours of the run [h].
    interval_hours : float or (n,) float array
        Time between checkpoints [h].

    Returns
    -------
    float array of the broadcast shape
        At least 1 [1].
    """
    written: Floats = np.maximum(1.0, np.ceil(hours / interval_hours))
    return written


def _interval_hours(failures: Failures, write_hours: float, mttf_hours: float) -> float:
    if failures.checkpoint_interval_minutes is not None:
        return failures.checkpoint_interval_minutes / 60
    # A write that blocks nothing still takes its time: the next one cannot start before it has ended.
    return max(daly_interval_hours(write_hours, mttf_hours), failures.checkpoint_write_minutes / 60, SHORTEST_INTERVAL_HOURS)
