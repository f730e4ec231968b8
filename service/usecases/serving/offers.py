"""What accelerators a model may be served on, and at which prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.offer import Offer
from service.domain.errors import InvalidRequest, NoOffer, UnknownName
from service.domain.prices import offer_key
from service.domain.training.hardware import Accelerator
from service.engine.serving.fleet import RentalUnit
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.prices.book import PriceBook
from service.usecases.comparison.option_table import TORUS
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import ambiguity_text
from service.usecases.resolution.price import DEFAULT_PRICING, FILTERS, find_eligible_offers

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PricedAccelerator:
    """Accelerators at a price: an offer of the book or, with none, the caller's own."""

    accelerator: Accelerator
    rent: RentalUnit
    usd_per_accelerator_hour: float
    offer: Offer | None = None


def find_priced_accelerators(request: Given, book: PriceBook, notes: AssumptionLog) -> list[PricedAccelerator]:
    """The cheapest offer of each provider, accelerator and size of instance that answers the request's filter, or the caller's price.

    Raises UnknownName, InvalidRequest, NoOffer with pointers into the request.
    """
    given, names = request.get("price", {}), resolve_accelerators(request.get("hardware", {}), book, notes)
    if given.get("usd_per_accelerator_hour") is not None:
        return [_own(given, names)]
    found = [lot for name in names for lot in _sold(given, name, book)]
    if not found:
        raise NoOffer(_nothing(given, names, book), "/price")
    unsold = sorted(set(names).difference(lot.accelerator.name for lot in found))
    if unsold and "accelerators" in request.get("hardware", {}):
        notes.warn(f"no price of {', '.join(unsold)} is known for {_asked(given)} in {book.name}: left out")
    _note_prices(given, found, notes)
    return found


def resolve_accelerators(given: Given, book: PriceBook, notes: AssumptionLog) -> list[str]:
    """Canonical names of the accelerators asked for, or of all that have a price, in order. Raises UnknownName with its pointer."""
    asked = given.get("accelerators")
    if asked is None:
        return list(notes.assume("hardware.accelerators", sorted(book.by_accelerator), "not stated: all that have a price"))
    return sorted({_named(name, index, notes) for index, name in enumerate(asked)})


def _named(name: str, index: int, notes: AssumptionLog) -> str:
    pointer = f"/hardware/accelerators/{index}"
    try:
        found = find_accelerator(name)
    except UnknownName as problem:
        raise UnknownName(problem.message, pointer, problem.near) from problem
    if found.ambiguous_with:
        notes.assume(f"hardware.accelerators.{index}", found.accelerator.name, ambiguity_text(found))
    return found.accelerator.name


def _own(given: Given, names: Sequence[str]) -> PricedAccelerator:
    """The one accelerator that the caller's price is of, in nodes as its data sheet has them."""
    beside = [name for name in FILTERS if given.get(name) is not None and name != "snapshot"]
    if beside:
        raise InvalidRequest(f"a stated price needs no filter: leave out {beside[0]}", f"/price/{beside[0]}")
    if len(names) != 1:
        raise InvalidRequest("a stated price is that of one accelerator: name it", "/hardware/accelerators")
    return PricedAccelerator(load_accelerators()[names[0]], RentalUnit(1, float("inf")), float(given["usd_per_accelerator_hour"]))


def _sold(given: Given, name: str, book: PriceBook) -> Iterable[PricedAccelerator]:
    """Of each provider and size of instance the cheapest."""
    best: dict[tuple[str, int], Offer] = {}
    for offer in find_eligible_offers(given, name, book):
        key = (offer.provider, offer.accelerator_count)
        best[key] = min(best.get(key, offer), offer, key=lambda each: (each.usd_per_accelerator_hour, offer_key(each)))
    accelerator = load_accelerators()[name]
    return [
        PricedAccelerator(accelerator, _rent(accelerator, offer), float(offer.usd_per_accelerator_hour), offer) for offer in best.values()
    ]


def _rent(accelerator: Accelerator, offer: Offer) -> RentalUnit:
    """Instances as small as a part of a node, or of a pod that is let in slices, have no links that are known to any other."""
    unit = accelerator.link_domain if TORUS in accelerator.link else accelerator.accelerators_per_node
    return RentalUnit(offer.accelerator_count, float("inf") if offer.accelerator_count >= unit else float(offer.accelerator_count))


def _note_prices(given: Given, found: Sequence[PricedAccelerator], notes: AssumptionLog) -> None:
    providers = {lot.offer.provider for lot in found if lot.offer}
    source = (
        f"the cheapest region of each of {len(providers)} providers, its newest prices; no auction floors, no marketplaces unless named"
    )
    notes.assume("price", f"{len(found)} {given.get('pricing') or DEFAULT_PRICING} offers", source)


def _nothing(given: Given, names: Sequence[str], book: PriceBook) -> str:
    held = sorted({f"{offer.provider} {offer.pricing}" for name in names for offer in book.by_accelerator.get(name, ())})
    known = f"known of them: {', '.join(held[:12])}" if held else "none at all is"
    which = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
    advice = "widen price or hardware, or state price.usd_per_accelerator_hour of one accelerator"
    return f"no price of {which} for {_asked(given)} is known in {book.name}; {known}. To go on, {advice}"


def _asked(given: Given) -> str:
    return ", ".join(f"{name} {given[name]}" for name in FILTERS if given.get(name)) or DEFAULT_PRICING
