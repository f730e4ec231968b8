"""Defaults of a comparison, plausible inputs and jurisdictions, from `data/compare.toml`."""

from __future__ import annotations

from service.domain.errors import UnknownName
from service.presets.defaults import Default
from service.presets.documents import load_document
from service.presets.hardware.regions import find_region


def default_counts(accelerators: int, most: int) -> Default:
    """Numbers of accelerators to compare: a finer grid for few kinds of accelerators, at most `most` numbers where possible."""
    document = load_document("compare")
    grids = [Default(**row) for row in document["counts"]]
    fine = grids if accelerators <= document["few_accelerators"] else grids[1:]
    return next((grid for grid in fine if len(grid.value) <= most), grids[-1])


def default_horizon_days() -> Default:
    """Longest run that is an option where the caller states no end [days]."""
    return Default(**load_document("compare")["horizon"])


def plausible_inputs() -> dict[str, tuple[float, float]]:
    """Bounds of inputs of owned hardware within which a verdict is tested, by field."""
    return {name: (float(low), float(high)) for name, (low, high) in load_document("compare")["plausible"].items()}


def is_plausible(name: str, value: float) -> bool:
    """Whether an input of owned hardware could have that value."""
    low, high = load_document("compare")["plausible"].get(name, (value, value))
    return bool(low <= value <= high)


def jurisdiction_groups() -> tuple[str, ...]:
    """Names of groups of countries: EU, EEA, …"""
    return tuple(load_document("compare")["jurisdictions"])


def countries_of(jurisdiction: str) -> frozenset[str]:
    """ISO alpha-3 codes of a country (alpha-2 or alpha-3, case-blind) or of a group such as EU. Raises UnknownName."""
    groups = load_document("compare")["jurisdictions"]
    members = groups.get(jurisdiction.strip().upper())
    if members is not None:
        return frozenset().union(*(countries_of(member) if member in groups else {member} for member in members))
    try:
        return frozenset({find_region(f"country:{jurisdiction.strip()}").country})
    except UnknownName:
        raise UnknownName(
            f"unknown jurisdiction {jurisdiction[:50]!r}: take an ISO 3166 country code, such as DE or DEU, or one of {', '.join(groups)}",
            near=tuple(groups),
        ) from None
