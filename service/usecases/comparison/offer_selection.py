"""Which offers a comparison looks at, and what of an offer alone can rule it out."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.errors import InvalidRequest, UnknownName
from service.presets.comparison.defaults import countries_of, default_counts
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.networks import find_network
from service.presets.hardware.regions import Region, region_of_offer
from service.prices.book import BUILT_IN_PROVIDER, PriceBook
from service.prices.offer_table import CodedColumn, Flags, Floats, Ints, OfferColumns, highest_of
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import ambiguity_text, data_sheet_inter_node_gbps
from service.usecases.resolution.price import OLD_AFTER

Given = Mapping[str, Any]
STOCKED = ("offered", "live")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the book's offers stand: PUE and grid [gCO2e/kWh], by code of `OfferColumns.place`."""

    pue: Floats
    grid_gco2_per_kwh: Floats


def resolve_accelerators(given: Given, columns: OfferColumns, notes: AssumptionLog) -> tuple[str, ...]:
    """Canonical names of the accelerators asked for, or all that have an offer, in order. Raises UnknownName with its pointer."""
    asked = given.get("accelerators")
    if asked is None:
        return tuple(sorted(columns.accelerator.names))
    meant = []
    for index, name in enumerate(asked):
        try:
            meant.append(find_accelerator(name))
        except UnknownName as problem:
            problem.pointer = f"/candidates/accelerators/{index}"
            raise
    names = sorted({found.accelerator.name for found in meant})
    doubts = [ambiguity_text(found) for found in meant if found.ambiguous_with]
    if doubts:
        notes.assume("candidates.accelerators", names, "; ".join(doubts))
    return tuple(names)


def resolve_counts(given: Given, accelerators: int, most: int, notes: AssumptionLog) -> tuple[int, ...]:
    """Numbers of accelerators asked for, in order, or the usual ones: fewer where many accelerators are compared, `most` if possible."""
    asked = given.get("counts")
    if asked is not None:
        return tuple(sorted(set(asked)))
    usual = default_counts(accelerators, most)
    return tuple(notes.assume("candidates.counts", usual.value, usual.source))


def matching_rows(given: Given, accelerators: Sequence[str], book: PriceBook) -> Ints:
    """Rows of the book that answer the filters: list prices that hold today, or are the newest of their place and not outdated.

    Of a provider that is named its marketplace is taken too, and of a place that is named its prices whatever their age. Auction floors
    never are: nobody is sold capacity at them. Which rows are taken does not depend on the other candidates.
    """
    columns = book.columns
    live = columns.source.among(source for (_, source, _), policy in book.policies.items() if policy.provider != BUILT_IN_PROVIDER)
    by_provider, by_place = given.get("providers") is not None, given.get("regions") is not None
    chosen = (live | columns.newest) & columns.accelerator.among(accelerators)
    chosen &= columns.market.among(("list", "marketplace") if by_provider else ("list",))
    for name, column in filter_columns(columns).items():
        if given.get(name) is not None:
            chosen &= column.among(given[name])
    if not (by_provider or by_place):
        chosen &= live | ~_outdated(book)
    return np.flatnonzero(chosen)


def _outdated(book: PriceBook) -> Flags:
    """Rows a year older than the book's newest price, where somebody's price of the same accelerator and pricing is not."""
    columns = book.columns
    recent = book.newest.timestamp() - columns.observed_s <= OLD_AFTER.total_seconds()
    kind = columns.accelerator.codes * len(columns.pricing.names) + columns.pricing.codes
    found: Flags = ~recent & (highest_of((recent & columns.market.among(("list",))).astype(np.float64), kind) > 0)
    return found


def note_candidates(given: Given, accelerators: Sequence[str], notes: AssumptionLog) -> None:
    """What is compared where the caller does not say."""
    if given.get("accelerators") is None:
        notes.assume("candidates.accelerators", list(accelerators), "not stated: all that have an offer")
    if given.get("providers") is None:
        rule = "none a year old where there are newer ones, " if given.get("regions") is None else ""
        notes.assume("candidates.providers", "all", f"not stated: list prices, the newest of each region, {rule}no marketplaces")
    for name in ("regions", "pricing"):
        if given.get(name) is None:
            notes.assume(f"candidates.{name}", "all", "not stated")


def filter_columns(columns: OfferColumns) -> dict[str, CodedColumn]:
    """The columns that candidates are filtered by, by the field's name."""
    return {"providers": columns.provider, "regions": columns.region, "pricing": columns.pricing}


@functools.lru_cache(maxsize=4)
def resolve_places(names: tuple[str, ...]) -> Places:
    """PUE and grid of every place in a column of them."""
    regions = [_region(name) for name in names]
    return Places(
        pue=np.array([region.pue for region in regions]),
        grid_gco2_per_kwh=np.array([region.grid_gco2_per_kwh for region in regions]),
    )


def offer_networks(columns: OfferColumns, rows: Ints, accelerator: str) -> Floats:
    """The network of a node of the accelerator in each of its rows [Gbit/s]: the instance's where it is known, else the data sheet's.

    So too of instances smaller than a node: they are compared alone, or ruled out as their links are not known.
    """
    part, counts = find_accelerator(accelerator).accelerator, columns.accelerator_count[rows]
    per_node = part.accelerators_per_node
    own = instance_networks(columns.instance.names)[columns.instance.codes[rows]] / counts * per_node
    found: Floats = np.where(np.isnan(own) | (counts < per_node), data_sheet_inter_node_gbps(part, per_node)[0], own)
    return found


@functools.lru_cache(maxsize=4)
def instance_networks(names: tuple[str, ...]) -> Floats:
    """The network of a whole instance [Gbit/s] of every name in a column `OfferColumns.instance`; NaN where it is not known."""
    found = (find_network(*name.split("\t")) for name in names)
    return np.array([np.nan if network is None else network.gbit_per_s_per_instance for network in found], dtype=np.float64)


def note_networks(columns: OfferColumns, rows: Ints, notes: AssumptionLog) -> None:
    """Which network is modelled between the nodes of each option."""
    sold = [columns.instance.names[code].split("\t") for code in columns.instance.met(rows)]
    networks = {(provider, kind): find_network(provider, kind, accelerator) for provider, kind, accelerator in sold}
    told = [f"{provider}: {network.source}" for (provider, _), network in networks.items() if network]
    told += [f"not known of {provider} {kind}" for (provider, kind), network in networks.items() if network is None]
    rule = "that of its instance type; of owned hardware, of instances smaller than a node and where none is known that of the data sheet"
    notes.assume("hardware.inter_node_gbps", "each option's own", "; ".join(dict.fromkeys((rule, *told))))


def check_unique_names(entries: Sequence[Given], pointer: str) -> None:
    """Raises InvalidRequest where two entries of a list have one name."""
    names = [entry["name"] for entry in entries]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidRequest(f"two are called {name!r}: the answer could not tell them apart", f"{pointer}/{index}/name")


def without_stock(columns: OfferColumns, rows: Ints) -> Flags:
    """Rows that nobody says can be ordered."""
    return ~columns.availability.among(STOCKED)[rows]


def resolve_countries(given: Given) -> frozenset[str] | None:
    """ISO alpha-3 codes of the jurisdictions asked for, None where all will do. Raises UnknownName with its pointer."""
    asked = given.get("jurisdictions")
    if asked is None:
        return None
    found: frozenset[str] = frozenset()
    for index, name in enumerate(asked):
        try:
            found |= countries_of(name)
        except UnknownName as problem:
            problem.pointer = f"/constraints/jurisdictions/{index}"
            raise
    return found


@functools.cache
def _region(place: str) -> Region:
    provider, _, region = place.partition("\t")
    return region_of_offer(provider, region)
