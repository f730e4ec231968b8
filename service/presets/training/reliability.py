"""How often accelerators of a family interrupt a job, from published systems, and default times of recovery.

The data and their arithmetic are in `data/reliability.toml`.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator
from service.presets.documents import load_document

_ENOUGH_SYSTEMS = 5


@dataclass(frozen=True, slots=True)
class FailureSystem:
    """One published system: accelerator-hours for each interruption, with the arithmetic that gave them."""

    name: str
    family: str
    accelerator_hours: float
    basis: str
    source: str
    verified: bool


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Mean time to failure of one accelerator [h]. `borrowed` is true where the family has no published system of its own."""

    mttf_hours: Range
    source: str
    borrowed: bool


@dataclass(frozen=True, slots=True)
class RecoveryDefault:
    """Default of a field of the request, in the unit at the end of its name."""

    value: float
    source: str


def find_failure_rate(accelerator: Accelerator) -> FailureRate:
    """MTTF of the accelerator's family, or the spread of all published systems where it has none."""
    systems = load_failure_systems()
    own = [system for system in systems if system.family == accelerator.family]
    spread = _spread([system.accelerator_hours for system in own or systems])
    if own:
        return FailureRate(spread, "; ".join(_shown(system) for system in own), borrowed=False)
    names = ", ".join(system.name for system in systems)
    return FailureRate(spread, f"no published figure for {accelerator.family}: spread of all systems known ({names})", borrowed=True)


@functools.cache
def load_failure_systems() -> tuple[FailureSystem, ...]:
    """Every published system that states accelerator-hours per interruption."""
    return tuple(FailureSystem(**row) for row in load_document("reliability")["system"])


@functools.cache
def recovery_defaults(software_year: int) -> Mapping[str, RecoveryDefault]:
    """How jobs recover on the software of a year, by field of the request's `failures`, each with its source."""
    found: dict[str, RecoveryDefault] = {}
    for row in load_document("reliability")["recovery"]:
        if row["from_year"] <= software_year:
            found |= {name: RecoveryDefault(**entry) for name, entry in row.items() if name != "from_year"}
    return MappingProxyType(found)


def _shown(system: FailureSystem) -> str:
    return f"{system.name}: {system.basis} = {system.accelerator_hours:,.0f} accelerator-hours ({system.source})"


def _spread(hours: Sequence[float]) -> Range:
    """10th, 50th and 90th percentile of a sample; lowest, median and highest of a small one."""
    if len(hours) < _ENOUGH_SYSTEMS:
        return Range(min(hours), statistics.median(hours), max(hours))
    deciles = statistics.quantiles(hours, n=10, method="inclusive")
    return Range(deciles[0], statistics.median(hours), deciles[-1])
