"""Checks of rows by the hundred, each done in a millisecond: as parameters, every test process would collect and report each of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

Check = Callable[..., None]


def for_each(names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], object] = str) -> Callable[[Check], Check]:
    """Let one test go over all rows, as `pytest.mark.parametrize` makes one test of each; it fails with those that fail, each by its name.

    For what leaves nothing behind: fixtures are made once, and are the same for every row.
    """
    cases = list(rows)

    taken = (names,) if isinstance(names, str) else names

    def decorate(check: Check) -> Check:
        left = [parameter for name, parameter in inspect.signature(check).parameters.items() if name not in taken]

        @functools.wraps(check)
        def check_each(*instance: Any, **fixtures: Any) -> None:
            assert cases
            failed = []
            for case in cases:
                values = dict(zip(taken, (case,) if isinstance(names, str) else case, strict=True))
                failed += failure_of(functools.partial(check, *instance), fixtures | values, str(ids(case)))
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(cases)} rows", failed)

        check_each.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        return check_each

    return decorate


def failure_of(check: Check, values: Mapping[str, Any], name: str) -> list[AssertionError]:
    """What a check of a row fails with, said to be of that row; an error that is no failure ends the test."""
    try:
        check(**values)
    except AssertionError as error:
        error.add_note(f"Row: {name}")
        return [error]
    except pytest.fail.Exception as error:
        return [AssertionError(f"Row: {name}: {error}")]
    except BaseException as error:
        error.add_note(f"Row: {name}")
        raise
    return []
