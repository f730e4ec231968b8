"""Strict JSON of price sources: exact numbers, no NaN or infinity, bounded nesting."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

MAX_INTEGER_DIGITS = 30
MAX_NUMBER_LENGTH = 100
MAX_EXPONENT = 308  # what a double holds; beyond, other programs would read infinity or zero
MAX_DEPTH = 64


def loads(body: bytes) -> object:
    """Value of UTF-8 JSON; numbers with a fraction or exponent are Decimal.

    Returns
    -------
    object
        The parsed value.

    Raises
    ------
    ValueError
        Not JSON, NaN or infinity, an integer over 30 digits, or nesting beyond 64 levels.
    """
    try:
        value = _DECODER.decode(body.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [child for parent in level for child in _containers(parent.values() if isinstance(parent, dict) else parent)]
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")


def _containers(values: Any) -> list[dict[str, Any] | list[Any]]:
    return [value for value in values if isinstance(value, dict | list)]


def _integer(text: str) -> int:
    digits = len(text.lstrip("-"))
    if digits > MAX_INTEGER_DIGITS:
        raise ValueError(f"an integer of {digits} digits; at most {MAX_INTEGER_DIGITS} are taken")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(f"a number of {len(text)} characters; at most {MAX_NUMBER_LENGTH} are taken")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text} is no number that can be held") from None
    if abs(number.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"{text} is no number that can be held")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_decimal, parse_constant=_constant)
