"""Defaults of buying or renting a fleet, from `data/procurement.toml`, and the drift of list prices, from `data/list_prices.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

import numpy as np

from service.domain.quantities import Range
from service.presets.defaults import Default
from service.presets.documents import load_document

DAYS_PER_YEAR = 365.25


@dataclass(frozen=True, slots=True)
class ListPriceChange:
    """A seller's list price of one machine on two days [USD per accelerator-hour]."""

    seller: str
    accelerator: str
    before: date
    before_usd: float
    after: date
    after_usd: float

    @property
    def per_year(self) -> float:
        """Yearly rate of the change [1/year]."""
        years = (self.after - self.before).days / DAYS_PER_YEAR
        return float((self.after_usd / self.before_usd) ** (1 / years) - 1)


def procurement_default(name: str) -> Default:
    """The default of a field of the request."""
    return Default(**load_document("procurement")["default"][name])


def macrs_shares() -> tuple[float, ...]:
    """Share of capital deducted in each year of five-year property [1]."""
    return tuple(load_document("procurement")["macrs"]["shares_5_year"])


def plausible_bounds(name: str) -> tuple[float, float]:
    """Bounds of what a verdict is tested over, by the field's name."""
    low, high = load_document("procurement")["plausible"][name]
    return float(low), float(high)


def reference_run() -> tuple[Mapping[str, Any], int, str]:
    """The run that accelerators are compared on, its number of accelerators, and its description."""
    document = load_document("procurement")["reference_run"]
    return MappingProxyType(document["workload"]), document["count"], document["source"]


@functools.cache
def list_price_changes() -> tuple[ListPriceChange, ...]:
    """Known changes of list prices."""
    return tuple(
        ListPriceChange(
            row["seller"], row["accelerator"], row["before"]["date"], row["before"]["usd"], row["after"]["date"], row["after"]["usd"]
        )
        for row in load_document("list_prices")["change"]
    )


@functools.cache
def default_list_price_change() -> tuple[Range, str]:
    """Yearly change of list prices [1/year], from the 10th to the 90th percentile of the known changes, and its source."""
    changes = list_price_changes()
    low, middle, high = (round(float(each), 3) for each in np.quantile([change.per_year for change in changes], (0.1, 0.5, 0.9)))
    first, last = min(change.before for change in changes), max(change.after for change in changes)
    source = f"list prices of {len(changes)} machines of the same sellers, at least a year apart, {first:%B %Y} to {last:%B %Y}"
    return Range(low, middle, high), source
