"""Amounts in whole cents that add up exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

CENT, ZERO = Decimal("0.01"), Decimal("0.00")


def cents(usd: float) -> Decimal:
    """Amount in whole cents, halves to even.

    Parameters
    ----------
    usd : float
        Amount [USD].

    Returns
    -------
    Decimal
        Multiple of 0.01 [USD].
    """
    return Decimal(repr(usd)).quantize(CENT, rounding=ROUND_HALF_EVEN) if usd else ZERO


def sum_usd(amounts: Iterable[Decimal]) -> Decimal:
    """Exact sum of amounts [USD]; 0.00 of none."""
    return sum(amounts, ZERO)


def share_usd(share: float, usd: Decimal) -> Decimal:
    """Share, or multiple, of an amount in whole cents, halves to even.

    Parameters
    ----------
    share : float
        Factor [1].
    usd : Decimal
        Amount [USD].

    Returns
    -------
    Decimal
        Multiple of 0.01 [USD].
    """
    return (Decimal(repr(share)) * usd).quantize(CENT, rounding=ROUND_HALF_EVEN)


def allocate(amount: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """Division of an amount by weights, in whole cents that add up to it.

    Parameters
    ----------
    amount : Decimal
        In whole cents [USD].
    weights : sequence of (n,) Decimal
        Any unit, none below 0; all 0: even parts.

    Returns
    -------
    list of (n,) Decimal
        Multiples of 0.01 [USD]; their sum is `amount`.
    """
    total = sum_usd(weights)
    return round_to_total([amount * weight / total if total else amount / len(weights) for weight in weights], amount)


def round_to_total(parts: Sequence[Decimal], amount: Decimal) -> list[Decimal]:
    """Parts in whole cents that add up exactly to a total, by the largest remainder method.

    Parameters
    ----------
    parts : sequence of (n,) Decimal
        They add up to `amount` but for rounding [USD].
    amount : Decimal
        Total, in whole cents [USD].

    Returns
    -------
    list of (n,) Decimal
        Multiples of 0.01 [USD]; their sum is `amount`.
    """
    down = [part.quantize(CENT, rounding=ROUND_FLOOR) for part in parts]
    missing = int((amount - sum_usd(down)) / CENT)
    rest = sorted(range(len(parts)), key=lambda at: parts[at] - down[at], reverse=True)
    up = set(rest[:missing])
    return [part + CENT if at in up else part for at, part in enumerate(down)]
