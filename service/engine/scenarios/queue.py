"""Waiting time in the M/M/c queue, first come first served (Erlang 1917; Kleinrock 1975, volume I, 3.5)."""

from __future__ import annotations

import numpy as np

from service.domain.scenarios import Floats, QueueWait


def waiting_probability(queue: QueueWait) -> float:
    """Probability that all servers are busy (Erlang C), by the recursion of Erlang B, which does not overflow.

    Parameters
    ----------
    queue : QueueWait
        Slots, arrivals [1/h] and mean job time [h]; the load is below 1.

    Returns
    -------
    float
        Probability that a job waits [1].

    References
    ----------
    Erlang 1917; Kleinrock 1975, volume I, section 3.5.
    """
    offered = queue.arrivals_per_hour * queue.mean_hours
    blocked = 1.0
    for servers in range(1, queue.slots + 1):
        blocked = offered * blocked / (servers + offered * blocked)
    load = offered / queue.slots
    return blocked / (1 - load * (1 - blocked))


def spare_capacity_per_hour(queue: QueueWait) -> float:
    """Rate of the exponential wait of jobs that wait: service capacity less arrivals [1/h]."""
    return queue.slots / queue.mean_hours - queue.arrivals_per_hour


def wait_quantile(queue: QueueWait, shares: Floats) -> Floats:
    """Quantiles of the waiting time.

    Parameters
    ----------
    queue : QueueWait
        Slots, arrivals [1/h] and mean job time [h]; the load is below 1.
    shares : float array, any shape
        Probabilities [1].

    Returns
    -------
    float array, shape of shares
        Waiting time [h].

    References
    ----------
    Kleinrock 1975, volume I, section 3.5.
    """
    waits = waiting_probability(queue)
    remaining = np.clip((1 - shares) / waits, 1e-300, 1.0)
    return np.asarray(-np.log(remaining) / spare_capacity_per_hour(queue))
