"""Accelerator name and count from a vendor's instance type and label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from providers.catalog_files.model import ParseLog, Quote, parse_count, read_catalog_table
from providers.row_parsing import BadRow

Canonical = Callable[[str, float | None], str | None]
"""Vendor label and memory of one device in GB -> canonical name, or None where there is none."""

MEMORY_STEP_GB = 8  # device memories are multiples of 8 GB; drivers report a little less


@dataclass(frozen=True, slots=True)
class InstanceShape:
    """Accelerator (name or template) and count of an instance type, or the reason why it is skipped."""

    provider: str
    instance_type: re.Pattern[str]
    label: str
    accelerator: str
    count: str
    reason: str

    def matches(self, provider: str, instance_type: str, label: str) -> bool:
        """Whether the row of the table fits."""
        right_provider = self.provider in ("*", provider)
        return right_provider and self.label in ("", label) and self.instance_type.fullmatch(instance_type) is not None


@cache
def _shapes() -> tuple[InstanceShape, ...]:
    return tuple(InstanceShape(**{**row, "instance_type": re.compile(row["instance_type"])}) for row in read_catalog_table("shapes.csv"))  # type: ignore[arg-type]


@cache
def shape_of(provider: str, instance_type: str, label: str = "") -> InstanceShape | None:
    """First matching row of `shapes.csv`, or None."""
    return next((shape for shape in _shapes() if shape.matches(provider, instance_type, label)), None)


@dataclass(frozen=True, slots=True)
class MachineRow:
    """A row's description of the machine; `label` and `count` are empty where a table names instance types only."""

    provider: str
    instance_type: str
    label: str = ""
    count: str = ""
    memory_gb: float | None = None


def accelerator_of(machine: MachineRow, log: ParseLog) -> tuple[str, int] | None:
    """Accelerator name (or vendor's label) and count of a row; None where it has none or is skipped.

    Returns
    -------
    tuple of str and int, or None
        Name and count.

    Raises
    ------
    BadRow
        The count is not a whole number.
    """
    shape = shape_of(machine.provider, machine.instance_type, machine.label)
    if shape is None:
        return (machine.label, parse_count(machine.count)) if machine.label else None
    if shape.reason:
        log.skipped[f"{machine.provider}: {shape.reason}"] += 1
        return None
    return _filled(shape.accelerator, machine), parse_count(shape.count or machine.count)


def _filled(template: str, machine: MachineRow) -> str:
    if "{memory}" not in template:
        return template
    if machine.memory_gb is None:
        raise BadRow(f"{machine.label} without its memory")
    return template.replace("{memory}", str(round(machine.memory_gb / MEMORY_STEP_GB) * MEMORY_STEP_GB))


def with_canonical_names(quotes: Iterator[Quote], canonical: Canonical, log: ParseLog) -> Iterator[Quote]:
    """Quotes under canonical accelerator names; those without one are counted in `log.skipped`."""
    known: dict[tuple[str, float | None], str | None] = {}
    for quote in quotes:
        label = (quote.accelerator, quote.memory_gb)
        if label not in known:
            known[label] = canonical(*label)
        name = known[label]
        if name is None:
            log.skipped[f"no canonical name: {quote.accelerator}"] += 1
        else:
            yield quote if name == quote.accelerator else replace(quote, accelerator=name)
