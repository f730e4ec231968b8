"""Figures as a sentence has them: money with three figures, durations in the largest sensible unit, ranges as p50 (p10–p90)."""

from __future__ import annotations

import re
from datetime import date

from service.domain.quantities import Range

COUNT_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))
SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
HOURS_PER_DAY = 24.0
HOURS_PER_YEAR = 8760.0
# Units of a duration with the hours from which they are used: two of them at least.
UNITS = ((2 * HOURS_PER_YEAR, HOURS_PER_YEAR, "years"), (2 * HOURS_PER_DAY, HOURS_PER_DAY, "days"), (2.0, 1.0, "h"), (0.0, 1 / 60, "min"))

_VENDOR = re.compile(r"^[^-]+-")
_FORM = re.compile(r"-SXM\d*$")


def money(usd: float) -> str:
    """An amount of dollars with three figures: $21.6M, $14,100, $2.10."""
    sign, amount = "-" if usd < 0 else "", three_figures(abs(usd))
    for scale, suffix in SCALES:
        if amount >= scale:
            return f"{sign}${_padded(amount / scale)}{suffix}"
    return f"{sign}${_cents(amount)}"


def money_range(usd: Range) -> str:
    """A range of dollars: $22M (likely $13M–$29M)."""
    low, middle, high = money(usd.p10), money(usd.p50), money(usd.p90)
    return middle if low == high else f"{middle} (likely {low}–{high})"


def short_count(count: float) -> str:
    """A count with three figures and a suffix: 13.9B, 1.4T."""
    for scale, suffix in SCALES:
        if three_figures(count) >= scale:
            return f"{_plain(three_figures(count) / scale)}{suffix}"
    return _plain(count)


def duration(hours: float) -> str:
    """A duration in the largest unit of which it has at least two: 146 days, 5.2 h."""
    size, unit = _unit(hours)
    return f"{_plain(hours / size)} {unit}"


def duration_range(hours: Range) -> str:
    """A range of durations in the unit of its median: 146 days (118–171)."""
    size, unit = _unit(hours.p50)
    low, middle, high = (_plain(value / size) for value in (hours.p10, hours.p50, hours.p90))
    return f"{middle} {unit}" if low == high else f"{middle} {unit} ({low}–{high})"


def count(value: float) -> str:
    """A count with three figures and a suffix: 70B, 15T."""
    for scale, suffix in COUNT_SCALES:
        if three_figures(value) >= scale:
            return f"{_plain(value / scale)}{suffix}"
    return _plain(value)


def counted(number: int, noun: str) -> str:
    """A number of things: 1 offer, 1,200 offers."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def day(moment: date) -> str:
    """A date as text: 21 Nov 2026."""
    return f"{moment.day} {moment:%b %Y}"


def short_name(accelerator: str) -> str:
    """Canonical name of an accelerator without vendor and form factor: H100-80GB."""
    return _FORM.sub("", _VENDOR.sub("", accelerator, count=1))


def three_figures(value: float) -> float:
    """The value rounded to three significant figures."""
    return float(f"{value:.3g}")


def _cents(amount: float) -> str:
    """Dollars from 100 on, cents below, three figures below ten cents."""
    if amount >= 100 or amount == 0:
        return f"{amount:,.0f}"
    return f"{amount:.2f}" if amount >= 0.1 else f"{amount:.3g}"


def _padded(value: float) -> str:
    """Three figures with their zeros: 17.0."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _plain(value: float) -> str:
    """Three figures without an exponent."""
    rounded = three_figures(value)
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def _unit(hours: float) -> tuple[float, str]:
    return next((size, unit) for least, size, unit in UNITS if hours >= least)
