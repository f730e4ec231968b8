"""What is known: offers, accelerators and models, filtered. Problems point at the filter they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from providers.offer import Offer
from service.catalog import PriceBook, answers
from service.desk import Desk
from service.domain.errors import UnknownName
from service.domain.hardware import Accelerator
from service.presets.accelerators import find_accelerator, load_accelerators
from service.presets.models import ModelPreset, load_models

Given = Mapping[str, Any]


def find_offers(desk: Desk, given: Given) -> tuple[PriceBook, list[Offer]]:
    """The offers of a price book that answer all filters given, in the book's order. Raises UnknownName for an unknown accelerator."""
    with _pointing_at("/snapshot"):
        book = desk.catalog.book(given.get("snapshot"))
    offers = book.offers
    if "accelerator" in given:
        with _pointing_at("/accelerator"):
            resolved = find_accelerator(given["accelerator"])
        names = (resolved.accelerator.name, *resolved.ambiguous_with)
        offers = tuple(offer for name in sorted(names) for offer in book.by_accelerator.get(name, ()))
    limit = given.get("max_usd_per_accelerator_hour")
    wanted = {name: given.get(name) for name in ("provider", "region", "pricing")}
    return book, [offer for offer in offers if answers(offer, wanted) and (limit is None or float(offer.usd_per_accelerator_hour) <= limit)]


@contextmanager
def _pointing_at(pointer: str) -> Iterator[None]:
    """Names are looked up with the pointers of an estimate request; a filter stands elsewhere."""
    try:
        yield
    except UnknownName as problem:
        problem.pointer = pointer
        raise


def find_accelerators(given: Given) -> list[Accelerator]:
    """Accelerators by vendor (case-blind), or one by any of its names; ordered by name."""
    if "accelerator" in given:
        with _pointing_at("/accelerator"):
            return [find_accelerator(given["accelerator"]).accelerator]
    vendor = given.get("vendor", "").casefold()
    found = (accelerator for accelerator in load_accelerators().values() if accelerator.vendor.casefold() == vendor or not vendor)
    return sorted(found, key=lambda accelerator: accelerator.name)


def find_models(given: Given) -> list[ModelPreset]:
    """Model presets by developer (case-blind), architecture and size; ordered by name."""
    low, high = given.get("min_params", 0), given.get("max_params", float("inf"))
    developer, architecture = given.get("developer", "").casefold(), given.get("architecture")
    found = (
        preset
        for preset in load_models().values()
        if low <= preset.params <= high
        and (not developer or preset.developer.casefold() == developer)
        and (architecture is None or preset.architecture == architecture)
    )
    return sorted(found, key=lambda preset: preset.name)
