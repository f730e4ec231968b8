"""Checks of rows by the hundred, each done in a millisecond: as parameters, every test process would collect and report each of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

Check = Callable[..., None]


def for_each(
    names: str | tuple[str, ...],
    rows: Iterable[Any],
    ids: Callable[[Any], object] = str,
    *,
    usual: Callable[[list[Any]], Iterable[Any]] | None = None,
) -> Callable[[Check], Check]:
    """Let one test go over all rows, as `pytest.mark.parametrize` makes one test of each; it fails with those that fail, each by its name.

    For what leaves nothing behind: fixtures are made once, and are the same for every row. `usual`: which of them `make test` goes over,
    where all are for `make soak`.
    """
    cases = list(rows)
    taken = (names,) if isinstance(names, str) else names

    def decorate(check: Check) -> Check:
        left = [parameter for name, parameter in inspect.signature(check).parameters.items() if name not in taken]

        @functools.wraps(check)
        def check_each(*instance: Any, among: Sequence[Any] = cases, **fixtures: Any) -> None:
            assert among
            failed = []
            for case in among:
                values = dict(zip(taken, (case,) if isinstance(names, str) else case, strict=True))
                failed += failure_of(functools.partial(check, *instance), fixtures | values, str(ids(case)))
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(among)} rows", failed)

        if usual is not None:
            left.append(inspect.Parameter("among", inspect.Parameter.KEYWORD_ONLY))
        check_each.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        if usual is None:
            return check_each
        choices = [pytest.param([*usual(cases)], id="usual"), pytest.param(cases, id="all", marks=pytest.mark.soak)]
        return pytest.mark.parametrize("among", choices)(check_each)

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
