"""Units of prices: for an accelerator or an instance; for an hour, a month, a year or the whole term."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from service.formats.imports.quotes.vocabulary import PERIOD_HOURS

PER = r"(?:\bper|/|\bje|\bpro|\bpar|\ban?|\bfor each)\s*(?:\d+\s*[x\u00d7-]?\s*)?"
EACH_ACCELERATOR = re.compile(
    PER + r"(?:gpus?|accelerators?|cards?|chips?)(?![A-Za-z])|\b(?:gpu|accelerator|chip)[ -/]?(?:hours?|hrs?|h)\b", re.IGNORECASE
)
EACH_INSTANCE = re.compile(
    PER + r"(?:[\w-]+ )?(?:nodes?|servers?|instances?|machines?|systems?|vms?|hosts?|knoten|chassis)\b"
    r"|\b(?:node|server|instance|machine|system|vm|host)[ -/]?(?:hours?|hrs?|h|month|price|rate)\b"
    r"|\b(?:hourly|monthly|annual|yearly) (?:node|server|instance|machine)\b",
    re.IGNORECASE,
)
PERIODS = {
    "term": re.compile(
        r"\b(?:whole|full|entire) term\b|\bcontract (?:value|total|price)\b|\btotal contract\b|\btcv\b|" + PER + r"term\b", re.IGNORECASE
    ),
    "hour": re.compile(
        PER + r"(?:hours?|hrs?|h|stunde|std|heure)\b|\bhourly\b|\b(?:gpu|node|instance|server)[ -/]?(?:hours?|hrs?|h|stunde|std)\b",
        re.IGNORECASE,
    ),
    "month": re.compile(PER + r"(?:months?|mo|mth|monat|mois)\b|\bmonthly\b|\bmrc\b|\bmonatlich\b|\bmensuel\b", re.IGNORECASE),
    "year": re.compile(PER + r"(?:years?|yr|annum|jahr|an)\b|\bannual(?:ly)?\b|\byearly\b|\bjährlich\b|\bp\.a\.", re.IGNORECASE),
}
BASES = ("accelerator", "instance")
CLOSE = 3.0
"""A unit is taken by its prices alone where their median is within this factor of usual ones ..."""
CLEAR = 2.0
"""... and every other unit's is farther from usual ones by this factor."""
IMPOSSIBLE = 30.0
"""A price this many times above or below the usual one is of another unit, as for the prices of providers."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What a price is for."""

    basis: str
    period: str

    def __str__(self) -> str:
        return f"per {self.basis} and {self.period}"


@dataclass(frozen=True, slots=True)
class UnitSample:
    """A price with an unknown unit: amount [USD], accelerators of the instance, hours of the term, and the usual price [USD per hour]."""

    usd: float
    count: int
    term_hours: float
    usual: float


def basis_of(text: str) -> str | None:
    """Whether a text says that a price is for an accelerator or for an instance."""
    accelerator, instance = EACH_ACCELERATOR.search(text), EACH_INSTANCE.search(text)
    if accelerator and instance:
        return "accelerator" if accelerator.end() > instance.end() else "instance"
    return "accelerator" if accelerator else "instance" if instance else None


def period_of(text: str) -> str | None:
    """The period that a text says a price is for."""
    return next((name for name, pattern in PERIODS.items() if pattern.search(text)), None)


def usd_per_instance_hour(usd: Decimal, unit: Unit, count: int, term_hours: float) -> Decimal:
    """A price of the whole instance [USD per hour], to nine decimal places.

    Parameters
    ----------
    usd : Decimal
        Price in its unit [USD].
    unit : Unit
        What it is for.
    count : int
        Accelerators of the instance.
    term_hours : float
        Hours of the term, for a price of the whole term [h].
    """
    hours = {"hour": 1.0, "month": PERIOD_HOURS["m"], "year": PERIOD_HOURS["y"], "term": term_hours}[unit.period]
    each = usd / Decimal(str(hours))
    return (each * count if unit.basis == "accelerator" else each).quantize(Decimal("1e-9"))


def guess_unit(samples: Sequence[UnitSample], bases: Iterable[str], periods: Iterable[str]) -> tuple[Unit | None, str]:
    """The unit in which the prices are usual ones, and the reason; None where none or several fit.

    The distance of a unit is the median of |ln(price / usual price)|.
    """
    if not samples:
        return None, "no usual price of its accelerators is known to tell by"
    periods = tuple(periods)
    units = [Unit(basis, period) for basis in bases for period in periods]
    fits = sorted((_distance(samples, unit), unit.basis, unit.period) for unit in units)
    best, *others = fits
    unit, factor = Unit(best[1], best[2]), math.exp(best[0])
    if best[0] > math.log(CLOSE):
        return None, f"in no unit are its prices near usual ones, in the nearest ({unit}) they are off by a factor of {factor:.0f}"
    same = all(sample.count == 1 for sample in samples)
    rivals = [other for other in others if other[0] < best[0] + math.log(CLEAR) and not (same and other[2] == best[2])]
    if rivals:
        return None, f"its prices may be {unit} or {Unit(rivals[0][1], rivals[0][2])}"
    return unit, f"only {unit} are its prices near usual ones, by a factor of {factor:.1f}"


def _distance(samples: Sequence[UnitSample], unit: Unit) -> float:
    return median(abs(math.log(_usd_per_accelerator_hour(sample, unit) / sample.usual)) for sample in samples)


def _usd_per_accelerator_hour(sample: UnitSample, unit: Unit) -> float:
    hours = {"hour": 1.0, "month": PERIOD_HOURS["m"], "year": PERIOD_HOURS["y"], "term": sample.term_hours or math.inf}[unit.period]
    return max(sample.usd / hours / (1 if unit.basis == "accelerator" else sample.count), 1e-30)
