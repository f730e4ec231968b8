"""Whether what is drawn is valid Vega-Lite: the service itself does not check it, because that takes longer than to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import altair as alt
import pytest

from service.formats.documents import charts

ROWS = ("values", "datasets")


def fields(value: Any) -> Iterator[str]:
    """The path of each field of a specification, alike for all parts of a list; rows aside."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            yield from (f"{name}.{path}" for path in fields(below) if name not in ROWS)
    elif isinstance(value, list):
        for below in value:
            yield from fields(below)


def without_rows(value: Any) -> Any:
    """A specification that draws nothing."""
    if isinstance(value, dict):
        return {name: type(below)() if name in ROWS else without_rows(below) for name, below in value.items()}
    return [without_rows(below) for below in value] if isinstance(value, list) else value


@contextmanager
def charts_checked() -> Iterator[None]:
    """Let the first chart with each combination of fields be checked against the schema of Vega-Lite."""
    seen: set[frozenset[str]] = set()
    draw = charts.specification

    def checked(chart: alt.TopLevelMixin) -> dict[str, Any]:
        found = draw(chart)
        form = frozenset(fields(found))
        if form not in seen:
            seen.add(form)
            type(chart).validate(without_rows(found))  # type: ignore[attr-defined]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "specification", checked)
        yield
