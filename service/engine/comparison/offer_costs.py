"""The totals of `cost` for one run at many prices at once: what comparing thousands of offers needs. Without lines, in floats.

`price_offers` of one price is the sum of the lines of `cost.cost_lines`, to the rounding of each line to cents: a test holds them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.training.run import Run
from service.engine.training.cost import HOURS_PER_MONTH, overhead_share, spare_accelerators
from service.engine.training.reliability import checkpoint_interval_hours, checkpoints_written

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OfferPrices:
    """Offers of one accelerator, one position each: USD an accelerator-hour, accelerators an instance, hours of a term (0: none), and
    the position of the network between instances among those that a run is timed in.
    """

    usd_per_accelerator_hour: FloatArray
    accelerators_per_instance: IntArray
    term_hours: FloatArray
    network: IntArray


@dataclass(frozen=True, slots=True)
class OfferCosts:
    """USD of a whole run by percentile of its hours: a row for each number of accelerators, a column for each offer."""

    p10: FloatArray
    p50: FloatArray
    p90: FloatArray


def price_offers(
    runs: Sequence[Run], wall_clock_hours: FloatArray, energy_mwh: FloatArray, checkpoint_tb: float, prices: OfferPrices
) -> OfferCosts:
    """What one run on several numbers of accelerators (or one) costs at each price: `runs` differ in their cluster and hours alone.

    `wall_clock_hours` by percentile (p10, p50, p90), run and network, NaN where it cannot run. The runs' own prices, instances and terms
    are left aside; `energy_mwh` is that of the p50, by run and offer.
    """
    run, counts = runs[0], np.array([[run.cluster.count] for run in runs])
    billed = _whole(counts, prices.accelerators_per_instance) + np.array([[spare_accelerators(run)] for run in runs])
    usd = _machine_usd(overhead_share(run), counts, billed, wall_clock_hours, prices)
    usd += _held_usd(runs, wall_clock_hours, checkpoint_tb).take(prices.network, axis=-1)
    if run.energy.usd_per_kwh:
        usd += energy_mwh * (1000 * run.energy.usd_per_kwh) * (wall_clock_hours / wall_clock_hours[1]).take(prices.network, axis=-1)
    return OfferCosts(*usd)


def _whole(counts: IntArray, accelerators_per_instance: IntArray) -> IntArray:
    """Accelerators in whole instances."""
    return -(-counts // accelerators_per_instance) * accelerators_per_instance


def _machine_usd(around: float, counts: IntArray, billed: IntArray, hours: FloatArray, prices: OfferPrices) -> FloatArray:
    """Accelerators at work and idle, work `around` the run as a share of it, and what a reservation's last term holds unused."""
    usd: FloatArray = hours.take(prices.network, axis=-1)
    usd *= prices.usd_per_accelerator_hour * (billed + counts * around)
    termed = np.flatnonzero(prices.term_hours)
    if len(termed):
        term, used = prices.term_hours[termed], hours.take(prices.network[termed], axis=-1) * (1 + around)
        usd[..., termed] = np.ceil(used / term) * (term * billed[:, termed] * prices.usd_per_accelerator_hour[termed])
    return usd


def _held_usd(runs: Sequence[Run], hours: FloatArray, checkpoint_tb: float) -> FloatArray:
    """Storage, network and people, the same at every price."""
    run, intervals = runs[0], np.array([[checkpoint_interval_hours(each)] for each in runs])
    storage, people = run.storage, run.personnel
    kept = np.minimum(storage.checkpoints_kept, checkpoints_written(hours, intervals))
    held_tb = storage.dataset_tb + storage.logs_tb + kept * checkpoint_tb
    months = storage.retention_months + hours / HOURS_PER_MONTH
    staff_hours = people.evaluation_hours + people.analysis_hours + people.oncall_hours
    usd: FloatArray = held_tb * months * storage.usd_per_tb_month
    return usd + run.network.egress_tb * run.network.usd_per_tb + staff_hours * people.usd_per_hour
