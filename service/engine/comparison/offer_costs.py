"""Cost of one run at many prices at once, in floats and without lines: used to compare thousands of offers.

`price_offers` of one price is the sum of the lines of `service.engine.training.cost.cost_lines`, to the rounding of each line to cents; a
test compares them.
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
    """Offers of one accelerator.

    Attributes
    ----------
    usd_per_accelerator_hour : (offers,) float array
        Price [USD/h].
    accelerators_per_instance : (offers,) int array
        Accelerators of an instance.
    term_hours : (offers,) float array
        Length of a reservation's term [h]; 0 without one.
    network : (offers,) int array
        Position of the offer's network among those that the run is timed in.
    """

    usd_per_accelerator_hour: FloatArray
    accelerators_per_instance: IntArray
    term_hours: FloatArray
    network: IntArray


@dataclass(frozen=True, slots=True)
class OfferCosts:
    """Cost of a whole run at the 10th, 50th and 90th percentile of its hours.

    Attributes
    ----------
    p10, p50, p90 : (counts, offers) float array
        Cost [USD].
    """

    p10: FloatArray
    p50: FloatArray
    p90: FloatArray


def price_offers(
    runs: Sequence[Run], wall_clock_hours: FloatArray, energy_mwh: FloatArray, checkpoint_tb: float, prices: OfferPrices
) -> OfferCosts:
    """Cost of one run on several numbers of accelerators at each price.

    Parameters
    ----------
    runs : sequence of Run
        One for each number of accelerators; they differ in cluster size and batch alone. Their own prices,
        instances and terms are not read.
    wall_clock_hours : (3, counts, networks) float array
        10th, 50th and 90th percentile of the wall clock [h]; NaN where the run is infeasible.
    energy_mwh : (counts, offers) float array
        Energy at the median [MWh].
    checkpoint_tb : float
        Size of one checkpoint [TB].
    prices : OfferPrices
        Offers of one accelerator.

    Returns
    -------
    OfferCosts
    """
    run, counts = runs[0], np.array([[run.cluster.count] for run in runs])
    billed = _whole(counts, prices.accelerators_per_instance) + np.array([[spare_accelerators(run)] for run in runs])
    usd = _machine_usd(overhead_share(run), counts, billed, wall_clock_hours, prices)
    usd += _held_usd(runs, wall_clock_hours, checkpoint_tb).take(prices.network, axis=-1)
    if run.energy.usd_per_kwh:
        usd += energy_mwh * (1000 * run.energy.usd_per_kwh) * (wall_clock_hours / wall_clock_hours[1]).take(prices.network, axis=-1)
    return OfferCosts(*usd)


def _whole(counts: IntArray, accelerators_per_instance: IntArray) -> IntArray:
    """Accelerators rounded up to whole instances."""
    return -(-counts // accelerators_per_instance) * accelerators_per_instance


def _machine_usd(overhead: float, counts: IntArray, billed: IntArray, hours: FloatArray, prices: OfferPrices) -> FloatArray:
    """Accelerators at work and idle, `overhead` as a share of the run, and the unused part of a reservation's last term [USD]."""
    usd: FloatArray = hours.take(prices.network, axis=-1)
    usd *= prices.usd_per_accelerator_hour * (billed + counts * overhead)
    reserved = np.flatnonzero(prices.term_hours)
    if len(reserved):
        term, used_hours = prices.term_hours[reserved], hours.take(prices.network[reserved], axis=-1) * (1 + overhead)
        usd[..., reserved] = np.ceil(used_hours / term) * (term * billed[:, reserved] * prices.usd_per_accelerator_hour[reserved])
    return usd


def _held_usd(runs: Sequence[Run], hours: FloatArray, checkpoint_tb: float) -> FloatArray:
    """Storage, network and personnel, the same at every price [USD]."""
    run, intervals = runs[0], np.array([[checkpoint_interval_hours(run_of_count)] for run_of_count in runs])
    storage, people = run.storage, run.personnel
    checkpoints = np.minimum(storage.checkpoints_kept, checkpoints_written(hours, intervals))
    held_tb = storage.dataset_tb + storage.logs_tb + checkpoints * checkpoint_tb
    months = storage.retention_months + hours / HOURS_PER_MONTH
    staff_hours = people.evaluation_hours + people.analysis_hours + people.oncall_hours
    usd: FloatArray = held_tb * months * storage.usd_per_tb_month
    return usd + run.network.egress_tb * run.network.usd_per_tb + staff_hours * people.usd_per_hour
