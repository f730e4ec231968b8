"""Streams of payments: an amount times a pattern over the months. Cash flows and present values are made of the same streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]

TAX = "tax"


@dataclass(frozen=True, slots=True)
class Stream:
    """Payments of one line.

    Attributes
    ----------
    line : str
        Name of the line.
    usd : float or (scenarios,) float array
        Amount [USD]; below 0 it is received.
    pattern : (scenarios, months + 1) or (months + 1,) float array
        Parts of the amount paid at the start and at the end of each month [1].
    """

    line: str
    usd: Amount
    pattern: FloatArray


def at_end_of_month(by_month: FloatArray) -> FloatArray:
    """Pattern of what is used in each month and paid at its end: nothing at the start, then one element for each month."""
    return np.concatenate([np.zeros((*by_month.shape[:-1], 1)), by_month], axis=-1)


def at_month(month: int) -> FloatArray:
    """Pattern of one payment at the end of a month; 0 is the start."""
    pattern = np.zeros(month + 1)
    pattern[month] = 1.0
    return pattern


def tax_on(streams: Iterable[Stream], tax_rate: float) -> list[Stream]:
    """Tax saved on deductible payments, when they are paid.

    Parameters
    ----------
    streams : iterable of Stream
        Deductible payments.
    tax_rate : float
        Rate on profits [1]. Profits are taken to be there to deduct from.

    Returns
    -------
    list of Stream
        Empty without tax.
    """
    if not tax_rate:
        return []
    return [replace(stream, line=TAX, usd=-tax_rate * np.asarray(stream.usd)) for stream in streams]


def streams_npv(streams: Iterable[Stream], discount: FloatArray) -> FloatArray:
    """Present value of streams at the start.

    Parameters
    ----------
    streams : iterable of Stream
        Over at most as many months as are discounted.
    discount : (scenarios, months + 1) or (months + 1,) float array
        Value of a dollar at the start and at the end of each month [1].

    Returns
    -------
    (scenarios,) float array, or a figure
        Present value [USD].
    """
    known: dict[int, FloatArray] = {}
    total: FloatArray = np.zeros(())
    for stream in streams:
        key = id(stream.pattern)
        if key not in known:
            known[key] = np.einsum("...m,...m->...", stream.pattern, discount[..., : stream.pattern.shape[-1]])
        total = total + stream.usd * known[key]
    return total


def cumulative_usd(streams: Iterable[Stream], discount: FloatArray) -> FloatArray:
    """Discounted payments by the start and by the end of each month.

    Parameters
    ----------
    streams : iterable of Stream
        Over at most as many months as are discounted.
    discount : (scenarios, months + 1) or (months + 1,) float array
        Value of a dollar at the start and at the end of each month [1].

    Returns
    -------
    (scenarios, months + 1) or (months + 1,) float array
        Sums [USD], the last of each scenario the present value.
    """
    patterns: dict[int, tuple[Amount, FloatArray]] = {}
    for stream in streams:
        usd, _ = patterns.get(id(stream.pattern), (0.0, stream.pattern))
        patterns[id(stream.pattern)] = usd + stream.usd, stream.pattern
    shapes = [np.broadcast_shapes(np.shape(usd), pattern.shape[:-1]) for usd, pattern in patterns.values()]
    total = np.zeros((*np.broadcast_shapes(*shapes, discount.shape[:-1]), discount.shape[-1]))
    for usd, pattern in patterns.values():
        total[..., : pattern.shape[-1]] += np.asarray(usd)[..., np.newaxis] * pattern
    total *= discount
    return np.cumsum(total, axis=-1, out=total)


def line_flows(streams: Iterable[Stream], months: int) -> dict[str, FloatArray]:
    """Flows of one scenario by line.

    Parameters
    ----------
    streams : iterable of Stream
        Amounts are figures, patterns have no scenarios.
    months : int
        Last month of any stream.

    Returns
    -------
    dict of line to (months + 1,) float array
        Flows at the start and at the end of each month [USD].
    """
    flows: dict[str, FloatArray] = {}
    for stream in streams:
        flow = flows.setdefault(stream.line, np.zeros(months + 1))
        flow[: stream.pattern.shape[-1]] += np.asarray(stream.usd, dtype=np.float64) * stream.pattern
    return flows
