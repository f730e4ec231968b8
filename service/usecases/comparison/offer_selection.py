"""Selection of the offers to compare, and the properties of an offer that rule it out."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from providers.offer import BY_THE_HOUR
from service.domain.errors import InvalidRequest, UnknownName
from service.presets.comparison.defaults import countries_of, default_counts
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.networks import find_network, node_gbit_per_s
from service.presets.hardware.regions import Region, region_of_offer
from service.presets.procurement.commitments import live_publishers
from service.prices.book import BUILT_IN_PROVIDER, PriceBook
from service.prices.offer_table import CodedColumn, Flags, Floats, Ints, OfferColumns, highest_of
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import ambiguity_text, data_sheet_inter_node_gbps
from service.usecases.resolution.price import OLD_AFTER

Request = Mapping[str, Any]
STOCKED = ("offered", "live")
MOST_NAMED = 3
"""Instance types of a provider that an assumption names."""


@dataclass(frozen=True, slots=True)
class Places:
    """PUE [1] and grid intensity [gCO2e/kWh] of the book's offers, by code of `OfferColumns.place`."""

    pue: Floats
    grid_gco2_per_kwh: Floats


def resolve_accelerators(candidates: Request, columns: OfferColumns, notes: AssumptionLog) -> tuple[str, ...]:
    """Canonical names of the stated accelerators, or of all with an offer, sorted.

    Raises UnknownName with its pointer, and InvalidRequest for machines beside accelerators or counts.
    """
    stated = _stated_accelerators(candidates)
    if stated is None:
        return tuple(sorted(columns.accelerator.names))
    matches = []
    for pointer, name in stated.items():
        try:
            matches.append(find_accelerator(name))
        except UnknownName as problem:
            problem.pointer = pointer
            raise
    names = sorted({match.accelerator.name for match in matches})
    ambiguities = {ambiguity_text(match): None for match in matches if match.ambiguous_with}
    if ambiguities:
        notes.assume("candidates.accelerators", names, "; ".join(ambiguities))
    return tuple(names)


def _stated_accelerators(candidates: Request) -> dict[str, str] | None:
    """Names of the stated accelerators by their pointers; None where all are meant."""
    machines, names = candidates.get("machines"), candidates.get("accelerators")
    if machines is None:
        return None if names is None else {f"/candidates/accelerators/{index}": name for index, name in enumerate(names)}
    if names is not None or candidates.get("counts") is not None:
        raise InvalidRequest("machines has the accelerators and their counts: leave accelerators and counts out", "/candidates/machines")
    return {f"/candidates/machines/{index}/accelerator": machine["accelerator"] for index, machine in enumerate(machines)}


def resolve_counts(candidates: Request, accelerators: Sequence[str], most: int, notes: AssumptionLog) -> dict[str, tuple[int, ...]]:
    """Numbers of each accelerator, sorted: those stated, or the defaults, fewer for many accelerators and `most` if possible."""
    if candidates.get("machines") is not None:
        pairs = {(find_accelerator(machine["accelerator"]).accelerator.name, machine["count"]) for machine in candidates["machines"]}
        return {name: tuple(sorted(count for paired, count in pairs if paired == name)) for name in accelerators}
    stated = candidates.get("counts")
    if stated is not None:
        return dict.fromkeys(accelerators, tuple(sorted(set(stated))))
    usual = default_counts(len(accelerators), most)
    return dict.fromkeys(accelerators, tuple(notes.assume("candidates.counts", usual.value, usual.source)))


def matching_rows(candidates: Request, accelerators: Sequence[str], book: PriceBook) -> Ints:
    """Rows of the book that match the filters: list prices that hold today, or are the newest of their place and not outdated.

    A named provider adds its marketplace; a named provider or region adds outdated prices. Auction floors are excluded, since no capacity
    is sold at them. The selection does not depend on the other candidates.
    """
    columns = book.columns
    live = columns.source.among(source for (_, source, _), policy in book.policies.items() if policy.provider != BUILT_IN_PROVIDER)
    by_provider, by_place = candidates.get("providers") is not None, candidates.get("regions") is not None
    selected = (live | columns.newest) & columns.accelerator.among(accelerators)
    selected &= columns.market.among(("list", "marketplace") if by_provider else ("list",))
    for name, column in filter_columns(columns).items():
        if candidates.get(name) is not None:
            selected &= column.among(candidates[name])
    if not (by_provider or by_place):
        selected &= live | ~_outdated(book)
    return np.flatnonzero(selected)


def _outdated(book: PriceBook) -> Flags:
    """Rows a year older than the book's newest price where a newer price of the same accelerator and pricing exists."""
    columns = book.columns
    recent = book.newest.timestamp() - columns.observed_s <= OLD_AFTER.total_seconds()
    kind = columns.accelerator.codes * len(columns.pricing.names) + columns.pricing.codes
    outdated: Flags = ~recent & (highest_of((recent & columns.market.among(("list",))).astype(np.float64), kind) > 0)
    return outdated


def note_candidates(candidates: Request, accelerators: Sequence[str], notes: AssumptionLog) -> None:
    """Notes the defaults of the candidates."""
    if candidates.get("accelerators") is None:
        notes.assume("candidates.accelerators", list(accelerators), "not stated: all that have an offer")
    if candidates.get("providers") is None:
        rule = "none a year old where there are newer ones, " if candidates.get("regions") is None else ""
        notes.assume("candidates.providers", "all", f"not stated: list prices, the newest of each region, {rule}no marketplaces")
    for name in ("regions", "pricing"):
        if candidates.get(name) is None:
            notes.assume(f"candidates.{name}", "all", "not stated")


def warn_unsold_pricing(candidates: Request, columns: OfferColumns, rows: Ints, notes: AssumptionLog) -> None:
    """Warns of each stated kind of pricing that no offer of some of the compared accelerators has."""
    compared = set(columns.accelerator.met(rows))
    for pricing in sorted(candidates.get("pricing") or ()):
        sold = rows[columns.pricing.among([pricing])[rows]]
        missing = sorted(columns.accelerator.names[code] for code in compared.difference(columns.accelerator.met(sold)))
        if missing:
            how = f"; {', '.join(live_publishers())} publish commitments (GET /v1/providers)" if pricing not in BY_THE_HOUR else ""
            notes.warn(
                f"no {pricing} price of {', '.join(missing)} is known among these candidates: a vendor's quote is needed to compare it{how}"
            )


def filter_columns(columns: OfferColumns) -> dict[str, CodedColumn]:
    """Columns that candidates are filtered by, by field name."""
    return {"providers": columns.provider, "regions": columns.region, "pricing": columns.pricing}


@functools.lru_cache(maxsize=4)
def resolve_places(names: tuple[str, ...]) -> Places:
    """PUE and grid intensity of every place."""
    regions = [_region(name) for name in names]
    return Places(
        pue=np.array([region.pue for region in regions]),
        grid_gco2_per_kwh=np.array([region.grid_gco2_per_kwh for region in regions]),
    )


def offer_networks(columns: OfferColumns, rows: Ints, accelerator: str) -> Floats:
    """Network rate of a node of the accelerator for each row [Gbit/s]: the instance type's where it is known, else the data sheet's.

    Instances smaller than a node have the data sheet's rate: they are compared alone, or ruled out because their links are not known.
    """
    data_sheet, counts = find_accelerator(accelerator).accelerator, columns.accelerator_count[rows]
    per_node = data_sheet.accelerators_per_node
    sold = instance_networks(columns.instance.names)[columns.instance.codes[rows]]
    instance_network = node_gbit_per_s(sold, counts.astype(np.float64), per_node)
    usual = data_sheet_inter_node_gbps(data_sheet, per_node)[0]
    return np.asarray(np.where(np.isnan(instance_network) | (counts < per_node), usual, instance_network))


@functools.lru_cache(maxsize=4)
def instance_networks(names: tuple[str, ...]) -> Floats:
    """Network rate of a whole instance [Gbit/s] for every name of `OfferColumns.instance`; NaN where it is not known."""
    networks = (find_network(*name.split("\t")) for name in names)
    return np.array([np.nan if network is None else network.gbit_per_s_per_instance for network in networks], dtype=np.float64)


def note_networks(columns: OfferColumns, rows: Ints, notes: AssumptionLog) -> None:
    """Notes the network modelled between the nodes of each option."""
    instances = [columns.instance.names[code].split("\t") for code in columns.instance.met(rows)]
    networks = {
        (provider, instance_type): find_network(provider, instance_type, accelerator) for provider, instance_type, accelerator in instances
    }
    sources = [f"{provider}: {network.source}" for (provider, _), network in networks.items() if network]
    unknown: dict[str, list[str]] = defaultdict(list)
    for provider, instance_type in (instance for instance, network in networks.items() if network is None):
        unknown[provider].append(instance_type)
    sources += [f"not known of {provider} {_first_names(types)}" for provider, types in unknown.items()]
    rule = "that of its instance type; of owned hardware, of instances smaller than a node and where none is known that of the data sheet"
    notes.assume("hardware.inter_node_gbps", "each option's own", "; ".join(dict.fromkeys((rule, *sources))))


def _first_names(names: Sequence[str]) -> str:
    """Names with commas between them, cut off with the number of the rest: there may be hundreds."""
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def check_unique_names(entries: Sequence[Request], pointer: str) -> None:
    """Raises InvalidRequest where two entries of a list have the same name."""
    names = [entry["name"] for entry in entries]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidRequest(f"two entries have the name {name!r}: names must differ", f"{pointer}/{index}/name")


def without_stock(columns: OfferColumns, rows: Ints) -> Flags:
    """Rows that no source reports as available."""
    return ~columns.availability.among(STOCKED)[rows]


def resolve_countries(candidates: Request) -> frozenset[str] | None:
    """ISO alpha-3 codes of the stated jurisdictions, None where any will do. Raises UnknownName with its pointer."""
    stated = candidates.get("jurisdictions")
    if stated is None:
        return None
    codes: frozenset[str] = frozenset()
    for index, name in enumerate(stated):
        try:
            codes |= countries_of(name)
        except UnknownName as problem:
            problem.pointer = f"/constraints/jurisdictions/{index}"
            raise
    return codes


@functools.cache
def _region(place: str) -> Region:
    provider, _, region = place.partition("\t")
    return region_of_offer(provider, region)
