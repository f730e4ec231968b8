"""Waiting for a place in a pool of equal ones: the M/M/c queue, first come first served (Erlang 1917; Kleinrock 1975, volume I, 3.5)."""

from __future__ import annotations

import numpy as np

from service.domain.scenarios import Floats, QueueWait


def waiting_probability(queue: QueueWait) -> float:
    """Probability that all places are taken (Erlang's C), by the recursion of his B, which does not overflow. The load is below 1."""
    offered = queue.arrivals_per_hour * queue.mean_hours
    blocked = 1.0
    for places in range(1, queue.slots + 1):
        blocked = offered * blocked / (places + offered * blocked)
    load = offered / queue.slots
    return blocked / (1 - load * (1 - blocked))


def freed_per_hour(queue: QueueWait) -> float:
    """The rate of the exponential wait of those who wait: how much faster places are freed than jobs come [1/h]."""
    return queue.slots / queue.mean_hours - queue.arrivals_per_hour


def wait_quantile(queue: QueueWait, shares: Floats) -> Floats:
    """Hours that these shares of jobs do not wait longer than."""
    waits = waiting_probability(queue)
    remaining = np.clip((1 - shares) / waits, 1e-300, 1.0)
    return np.asarray(-np.log(remaining) / freed_per_hour(queue))
