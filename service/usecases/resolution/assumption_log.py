"""Assumptions and warnings collected while a request is resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain.quantities import Assumption
from service.presets.defaults import default


class AssumptionLog:
    """Assumptions and warnings of one answer, in order of entry."""

    def __init__(self) -> None:
        self._by_field: dict[str, Assumption] = {}
        self.warnings: list[str] = []

    def assume(self, field: str, value: Any, source: str) -> Any:
        """Record that `field` is taken as `value`; returns `value`. A later entry replaces the value and appends its source."""
        before = self._by_field.get(field)
        self._by_field[field] = Assumption(field, value, f"{before.source}; {source}" if before else source)
        return value

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """All assumptions."""
        return tuple(self._by_field.values())

    def add(self, said: AssumptionLog) -> None:
        """Append all entries of another log."""
        for field, assumption in said._by_field.items():
            if field in self._by_field:
                self.assume(field, assumption.value, assumption.source)
            else:
                self._by_field[field] = assumption
        self.warnings.extend(said.warnings)

    def take(self, given: Mapping[str, Any], path: str, value: Any, source: str) -> Any:
        """The caller's value of the last part of `path` in their section `given`, else `value`, recorded as an assumption."""
        stated = given.get(path.rpartition(".")[2])
        return self.assume(path, value, source) if stated is None else stated

    def choose(self, given: Mapping[str, Any], path: str) -> Any:
        """The caller's value of the last part of `path`, else its default, recorded as an assumption."""
        fallback = default(path)
        return self.take(given, path, fallback.value, fallback.source)

    def warn(self, *warnings: str) -> None:
        self.warnings.extend(warnings)
