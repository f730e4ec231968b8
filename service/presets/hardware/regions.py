"""Grid carbon intensity and PUE of the places where accelerators are rented.

The data are in `data/regions.toml`. A key is `provider:region` (`gcp:us-central1`), `country:FRA`, `on_prem` or `world`.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from service.domain.errors import UnknownName
from service.presets.documents import build, load_document

_LONGEST_KEY = 100
_WIDE = frozenset({"any", "global", "europe", "north-america"})
"""Regions of offers that are no place."""
_CONTINENTS = frozenset({"EU", "EUR", "NA", "AS", "AP", "OC", "SA", "AF", "SEA"})


@dataclass(frozen=True, slots=True)
class Region:
    """A place with its grid [gCO2e/kWh] and PUE. `country` is ISO 3166-1 alpha-3, empty where not known.

    `exact` is false where the grid is not the place's own: a neighbour's on the same grid, the country's average or the world's. `source`
    and `pue_source` say where the figures come from, `year` the grid figure's year where known.
    """

    key: str
    place: str
    country: str
    grid_gco2_per_kwh: float
    year: int | None
    source: str
    exact: bool
    pue: float
    pue_source: str


def find_region(key: str) -> Region:
    """The region of a key, case-insensitive, or of an offer's place such as `aws:us-east-1a` or `crusoe:any`.

    Raises UnknownName with near keys, also for a place of a provider that is neither known nor wide.
    """
    found = load_regions().get(_alias(key.strip().casefold())) or _of_offer(key.strip())
    if found is None:
        near = difflib.get_close_matches(key[:_LONGEST_KEY].casefold(), list(load_regions()), n=3, cutoff=0.0)
        shown = [load_regions()[name].key for name in near]
        raise UnknownName(f"unknown region {key[:_LONGEST_KEY]!r}; near names: {', '.join(shown)}", "/energy/region", shown)
    return found


def _of_offer(key: str) -> Region | None:
    """The region of an offer by the key that `region_of_offer` gives it; None where the place could as well be misspelt."""
    provider, _, place = key.partition(":")
    if not provider or not place or provider.casefold() == "country":
        return None
    known = any(_is_zone_of(key.casefold(), name) for name in load_regions()) or _country_in(place) or place.casefold() in _WIDE
    return region_of_offer(provider, place) if known else None


@functools.cache
def country_names() -> Mapping[str, tuple[str, ...]]:
    """Names and alpha-2 codes of each country with a known grid, by its alpha-3 code; what people call it too."""
    document = load_document("regions")
    also: Mapping[str, list[str]] = document["also_called"]
    rows = document["country"]
    named = {row["code"]: tuple(name for name in (row["name"], row.get("iso2")) if name) for row in rows}
    return MappingProxyType({code: (*names, *also.get(code, ())) for code, names in named.items()})


@functools.cache
def region_cities() -> Mapping[str, tuple[str, ...]]:
    """Cities by which regions are known whose place is a country or state, with the regions' keys in lower case."""
    return MappingProxyType({city: tuple(key.casefold() for key in keys) for city, keys in load_document("regions")["cities"].items()})


def region_of_offer(provider: str, region: str) -> Region:
    """The region of an offer. Never fails: a zone has its region's grid, an unknown place its country's or the world's.

    `exact` and `source` of the answer say which.
    """
    known, key = load_regions(), f"{provider}:{region}".casefold()
    if key in known:
        return known[key]
    parent = max((name for name in known if _is_zone_of(key, name)), key=len, default=None)
    if parent is not None:
        return _standing_in(known[parent], provider, region, f"taken as {known[parent].key}")
    country = _country_in(region)
    if country:
        return _standing_in(known[f"country:{country}"], provider, region, "only the country is known")
    return _standing_in(known["world"], provider, region, "place unknown")


@functools.cache
def load_regions() -> Mapping[str, Region]:
    """Every region, country, `on_prem` and `world` by its key in lower case."""
    regions = {"world": _world("world", "World", "cloud"), "on_prem": _world("on_prem", "Own data centre", "on_prem")}
    regions |= {f"country:{row['code']}".casefold(): _country(row) for row in load_document("regions")["country"]}
    rows = load_document("regions")["region"]
    own = {row["key"].casefold(): _region(row) for row in rows if "grid" in row}
    regions |= own
    derived = {row["key"].casefold(): _derived(row, regions) for row in rows if "grid" not in row and "same_grid_as" in row}
    plain = {row["key"].casefold(): _derived(row, regions) for row in rows if "grid" not in row and "same_grid_as" not in row}
    return MappingProxyType(regions | derived | plain)


def _world(key: str, place: str, pue_of: str) -> Region:
    row = load_document("regions")["world"]
    source = f"world average: {_source(row['source'])}"
    return Region(key, place, "", row["grid"], row["year"], source, exact=False, **_provider_pue(pue_of))


def _country(row: Mapping[str, Any]) -> Region:
    key, source = f"country:{row['code']}", f"average of {row['name']}: {_source('codecarbon')}"
    return Region(key, row["name"], row["code"], row["grid"], row["year"], source, exact=False, **_provider_pue("cloud"))


def _region(row: Mapping[str, Any]) -> Region:
    grid = {"grid_gco2_per_kwh": row["grid"], "year": row.get("year"), "source": _source(row["source"])}
    return build(Region, row, **grid, exact=True, **_pue(row))


def _derived(row: Mapping[str, Any], known: Mapping[str, Region]) -> Region:
    """A place without a figure of its own: that of a place on the same grid, else its country's."""
    like = known[row.get("same_grid_as", f"country:{row['country']}").casefold()]
    source = f"same grid as {like.key}: {like.source}" if "same_grid_as" in row else like.source
    return replace(like, key=row["key"], place=row["place"], country=row["country"], source=source, exact=False, **_pue(row))


def _is_zone_of(zone: str, region: str) -> bool:
    """`us-east-1a` and `us-east-1-bos-1` are zones of `us-east-1`; `us-east-10` is not."""
    return zone.startswith(region) and not zone[len(region) :][:1].isdigit()


def _standing_in(region: Region, provider: str, name: str, why: str) -> Region:
    own = region.key.casefold().startswith(f"{provider}:".casefold())
    pue = {} if own else _provider_pue(provider)
    return replace(region, key=f"{provider}:{name}", place=name, source=f"{why}: {region.source}", exact=False, **pue)


def _pue(row: Mapping[str, Any]) -> dict[str, Any]:
    if "pue" in row:
        return {"pue": row["pue"], "pue_source": _source(row["pue_source"])}
    return _provider_pue(row["key"].split(":")[0])


def _provider_pue(provider: str) -> dict[str, Any]:
    table: Mapping[str, Any] = load_document("regions")["pue"]
    row = table.get(provider.casefold().split(":")[0], table["cloud"])
    return {"pue": row["value"], "pue_source": _source(row["source"])}


def _source(name: str) -> str:
    source: str = load_document("regions")["sources"][name]
    return source


def _alias(key: str) -> str:
    """`country:fr` is `country:fra`."""
    prefix, _, code = key.partition(":")
    return f"country:{_iso2().get(code, code)}" if prefix == "country" else key


def _country_in(region: str) -> str:
    """Lower-case alpha-3 code of the country a region's name states: `CA`, `Alberta, CA, NA`, `EU-RO-1`, `helsinki-finland-1`."""
    parts = [part.strip() for part in region.split(",")]
    if len(parts) == 3:
        return _iso2().get(parts[1].casefold(), "")
    codes = [code for code in re.split(r"[^A-Za-z]+", region) if code.isupper() and len(code) == 2 and code not in _CONTINENTS]
    if codes:
        return _iso2().get(codes[0].casefold(), "")
    words = set(re.split(r"[^a-z]+", region.casefold()))
    return next((row["code"].casefold() for row in load_document("regions")["country"] if row["name"].casefold() in words), "")


@functools.cache
def _iso2() -> Mapping[str, str]:
    """Alpha-2 to alpha-3 code, both in lower case."""
    rows = [row for row in load_document("regions")["country"] if "iso2" in row]
    return MappingProxyType({row["iso2"].casefold(): row["code"].casefold() for row in rows} | {"uk": "gbr"})
