"""Lists of accelerators and models with filters, of data files alone, and the check of a filter's value. Errors point at the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from service.domain.errors import UnknownName
from service.domain.prices import NO_SYNONYMS, PROVIDER_SYNONYMS, near_names
from service.domain.training.hardware import Accelerator
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.training.models import ModelPreset, load_models

Given = Mapping[str, Any]
LONGEST_NAME = 100
"""Maximum characters of a name that are compared and shown."""


def check_known(name: str, given: Given, known: Callable[[], Iterable[str]]) -> None:
    """Raise UnknownName with similar names where a filter's value is unknown, case-insensitive."""
    if name not in given:
        return
    by_fold, asked = {each.casefold(): each for each in known()}, str(given[name])
    if asked.casefold() not in by_fold:
        near = near_names(asked, by_fold.values(), PROVIDER_SYNONYMS if name == "provider" else NO_SYNONYMS)
        hint = f"; near names: {', '.join(near)}" if near else ""
        raise UnknownName(f"no {name} is called {asked[:LONGEST_NAME]!r}{hint}", f"/{name}", near)


@contextmanager
def pointing_at(pointer: str) -> Iterator[None]:
    """Context that sets the pointer of an UnknownName to the filter."""
    try:
        yield
    except UnknownName as problem:
        problem.pointer = pointer
        raise


def find_accelerators(given: Given) -> list[Accelerator]:
    """Accelerators by vendor (case-insensitive), or one by any of its names; ordered by name. Raises UnknownName."""
    if "accelerator" in given:
        with pointing_at("/accelerator"):
            return [find_accelerator(given["accelerator"]).accelerator]
    check_known("vendor", given, lambda: {accelerator.vendor for accelerator in load_accelerators().values()})
    vendor = given.get("vendor", "").casefold()
    found = (accelerator for accelerator in load_accelerators().values() if accelerator.vendor.casefold() == vendor or not vendor)
    return sorted(found, key=attrgetter("name"))


def find_models(given: Given) -> list[ModelPreset]:
    """Model presets by developer (case-insensitive), architecture and size; ordered by name.

    Raises UnknownName for an unknown developer.
    """
    check_known("developer", given, lambda: {preset.developer for preset in load_models().values()})
    low, high = given.get("min_params", 0), given.get("max_params", float("inf"))
    developer, architecture = given.get("developer", "").casefold(), given.get("architecture")
    found = (preset for preset in load_models().values() if low <= preset.params <= high)
    found = (preset for preset in found if preset.developer.casefold() == developer or not developer)
    return sorted((preset for preset in found if architecture in (None, preset.architecture)), key=attrgetter("name"))
