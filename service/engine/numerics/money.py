"""Amounts divided into whole cents that add up exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

CENT, ZERO = Decimal("0.01"), Decimal("0.00")


def cents(usd: float) -> Decimal:
    """The amount in whole cents, halves to even."""
    return Decimal(repr(usd)).quantize(CENT, rounding=ROUND_HALF_EVEN) if usd else ZERO


def sum_usd(amounts: Iterable[Decimal]) -> Decimal:
    """The sum, exact."""
    return sum(amounts, ZERO)


def share_usd(share: float, usd: Decimal) -> Decimal:
    """A share, or a multiple, of an amount in whole cents, halves to even."""
    return (Decimal(repr(share)) * usd).quantize(CENT, rounding=ROUND_HALF_EVEN)


def allocate(amount: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """An amount divided by weights of 0 or more, evenly where all are 0, in whole cents that add up to it."""
    whole = sum_usd(weights)
    return round_to_total([amount * weight / whole if whole else amount / len(weights) for weight in weights], amount)


def round_to_total(parts: Sequence[Decimal], amount: Decimal) -> list[Decimal]:
    """Parts that add up to an amount, but for rounding, in whole cents that do so exactly: the largest remainders are rounded up."""
    down = [one.quantize(CENT, rounding=ROUND_FLOOR) for one in parts]
    missing = int((amount - sum_usd(down)) / CENT)
    rest = sorted(range(len(parts)), key=lambda at: parts[at] - down[at], reverse=True)
    up = set(rest[:missing])
    return [one + CENT if at in up else one for at, one in enumerate(down)]
