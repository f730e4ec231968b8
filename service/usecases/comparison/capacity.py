"""What can be had of an offer: the caller's quotas, and how many accelerators a provider lets without a contract."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.domain.comparison.options import Option
from service.domain.errors import UnknownName
from service.engine.training.cost import spare_accelerators
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.hardware.capacity import UNCONTRACTED, capacity_band
from service.prices.offer_table import Flags, Floats, OfferColumns
from service.usecases.comparison.option_table import OptionTable
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Quota:
    """Accelerators that the caller may rent of a provider; anywhere without a region, of any kind without an accelerator."""

    provider: str
    region: str | None
    accelerator: str | None
    count: int


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Accelerators of one job that can be had of each offer of a book, infinite where there is no limit.

    `quota` by the caller's quotas, `uncontracted` at list prices; a stated quota is taken to be granted, so that no contract is needed.
    """

    quota: Floats
    uncontracted: Floats


def resolve_quotas(candidates: Request) -> tuple[Quota, ...]:
    """The caller's quotas, with canonical names of accelerators. Raises UnknownName with its pointer."""
    return tuple(_resolve_quota(entry, index) for index, entry in enumerate(candidates.get("quotas") or ()))


def _resolve_quota(entry: Request, index: int) -> Quota:
    name = entry.get("accelerator")
    try:
        accelerator = None if name is None else find_accelerator(name).accelerator.name
    except UnknownName as problem:
        problem.pointer = f"/candidates/quotas/{index}/accelerator"
        raise
    return Quota(entry["provider"], entry.get("region"), accelerator, entry["count"])


def _rows_of(columns: OfferColumns, quota: Quota) -> Flags:
    rows = columns.provider.among([quota.provider])
    if quota.region is not None:
        rows &= columns.region.among([quota.region])
    if quota.accelerator is not None:
        rows &= columns.accelerator.among([quota.accelerator])
    return rows


def rented_accelerators(configuration: TimedConfiguration) -> int:
    """Accelerators at work and spare."""
    return configuration.count + (spare_accelerators(configuration.run) if configuration.run else 0)


def apply_capacity(
    table: OptionTable, configurations: Sequence[TimedConfiguration], limits: CapacityLimits, *, require_available: bool
) -> OptionTable:
    """The table with the options that are above a quota and, where they must be available, those that need a contract."""
    rented = [rented_accelerators(configuration) for configuration in configurations]
    ruled_out = {"over_quota": _exceeds(table, rented, limits.quota)}
    if require_available:
        ruled_out["needs_contract"] = needs_contract(table, configurations, limits)
    return replace(table, ruled_out={**table.ruled_out, **ruled_out})


def needs_contract(table: OptionTable, configurations: Sequence[TimedConfiguration], limits: CapacityLimits) -> Flags:
    """Flags of the rented options of more accelerators than their provider lets without a contract."""
    return _exceeds(table, [configuration.count for configuration in configurations], limits.uncontracted)


def _exceeds(table: OptionTable, accelerators: Sequence[int], most: Floats) -> Flags:
    """Flags of the rented options that take more accelerators than their offer has, by the accelerators of each configuration."""
    taken = np.array(accelerators, dtype=np.float64)
    return np.asarray(taken[table.configuration] > np.where(table.row < 0, np.inf, most[table.row]))


def capacity_limits(columns: OfferColumns, quotas: Sequence[Quota], discounts: Flags) -> CapacityLimits:
    """The limits of all offers of a book; `discounts` flags commitments that hold no capacity, so that they have those of on demand."""
    quota = np.full(len(columns.provider.codes), np.inf)
    for entry in quotas:
        at = _rows_of(columns, entry)
        quota[at] = np.minimum(quota[at], entry.count)
    free = (columns.pricing.among(UNCONTRACTED) | discounts) & np.isinf(quota)
    bands = _band_table(columns.provider.names, columns.accelerator.names)[columns.provider.codes, columns.accelerator.codes]
    return CapacityLimits(quota, np.where(free, bands, np.inf))


@functools.lru_cache(maxsize=4)
def _band_table(providers: tuple[str, ...], accelerators: tuple[str, ...]) -> Floats:
    """Accelerators that each provider lets without a contract, by accelerator."""
    parts = [load_accelerators()[name] for name in accelerators]
    most = [[capacity_band(provider, part).most for part in parts] for provider in providers]
    return np.array(most, dtype=np.float64).reshape(len(providers), len(parts))


def warn_unmatched_quotas(columns: OfferColumns, quotas: Sequence[Quota], notes: AssumptionLog) -> None:
    """Warns of quotas that hold for no offer."""
    for quota in quotas:
        if not _rows_of(columns, quota).any():
            where = " ".join(part for part in (quota.provider, quota.region, quota.accelerator) if part)
            notes.warn(f"the quota of {where} matches no offer: GET /v1/offers lists providers and regions")


def warn_contracts(options: Sequence[Option], notes: AssumptionLog) -> None:
    """Warns of the providers whose options take more accelerators than they let at list prices."""
    texts = sorted({option.needs_contract for option in options if option.needs_contract is not None})
    if texts:
        notes.warn(
            f"some list prices are for smaller orders: {'; '.join(texts)}."
            " If a provider has granted you a quota, state it in candidates.quotas"
        )
