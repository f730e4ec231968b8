"""Lists of numbers of accelerators without a noun of their own: 8 16 32 H100, `h100 a100 | 8 16 32`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from service.formats.ask.grammar.quantities import Pieces, accelerators, figures
from service.formats.ask.grammar.slots import Slot

MOST_STEP = 8
"""Numbers of one list are not further apart, each from the one before it."""
MOST_SCALE = 1000


def rising(pieces: Pieces) -> Iterator[Slot]:
    """Numbers that rise step by step, and the accelerators beside them."""
    numbers = figures(pieces)
    stepwise = all(low.value < high.value <= MOST_STEP * low.value for low, high in pairwise(numbers))
    if stepwise and all(figure.scale <= MOST_SCALE and figure.value.denominator == 1 for figure in numbers):
        yield from accelerators(pieces)
