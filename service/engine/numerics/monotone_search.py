"""Search for the last whole number for which a condition holds that fails from some number on."""

from __future__ import annotations

from collections.abc import Callable


def last_true(holds: Callable[[int], bool], first: int, last: int) -> int | None:
    """The last number from `first` to `last` for which a condition holds.

    Parameters
    ----------
    holds : callable
        The condition; once it fails it fails for all larger numbers.
    first, last : int
        Bounds, both included.

    Returns
    -------
    int or None
        Where it is below `last` the condition was found to fail for the next number, monotone or not; None where it fails for `first`.

    References
    ----------
    Steps that double, then bisection: Bentley and Yao 1976.
    """
    if not holds(first):
        return None
    known, step = first, 1
    while known < last and holds(min(known + step, last)):
        known, step = min(known + step, last), 2 * step
    fails = min(known + step, last) if known < last else last + 1
    while fails - known > 1:
        middle = (known + fails) // 2
        if holds(middle):
            known = middle
        else:
            fails = middle
    return known
