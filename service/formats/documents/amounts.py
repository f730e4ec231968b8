"""Amounts of a plan as a workbook's formulas compute them: decimals of JSON numbers, rounded to cents."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from service.engine.numerics.money import CENT


def to_decimal(amount: float) -> Decimal:
    """The decimal that a JSON number shows."""
    return Decimal(str(amount))


def round_cents(amount: Decimal) -> Decimal:
    """Result of a workbook's ROUND(amount, 2): halves away from zero; the plan rounds them to even."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def rounding_difference(planned: float, computed: Decimal) -> float:
    """Rounding difference between the plan's amount and its formula's [USD]; nearly always 0."""
    return float(to_decimal(planned) - computed)


def shortest_share(usd: Decimal, base: Decimal) -> float:
    """The share with the fewest digits that gives the amount to the cent."""
    share = float(usd / base) if base else 0.0
    short = (round(share, digits) for digits in range(2, 12))
    return next((each for each in short if round_cents(to_decimal(each) * base) == usd), share)
