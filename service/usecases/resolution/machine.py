"""The machine of a request and its price, from the sections `hardware` and `price`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.errors import UnpricedAccelerator
from service.domain.training.model import Model
from service.domain.training.run import Cluster, Training
from service.presets.hardware.accelerators import find_accelerator
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.offer_choice import CheaperStale, choose_offer, note_choice
from service.usecases.resolution.price import (
    STATE_PRICE,
    Price,
    find_eligible_offers,
    find_offers,
    find_stated_price,
    note_offer_price,
    sold_for,
)
from service.usecases.resolution.run import TrainedModel, resolve_trained_model

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    """The cluster of a request, its price, and the name of the price book.

    `price` is None where no price of the accelerator is known and the caller states none.
    `cost_by_provider` is the least cost of the run at each provider over that at the priced offer [1], its own provider's first; empty
    for the caller's own price. `cheaper_stale` is the least costly offer with an old price, where it costs less than the priced one.
    `trained` is the request's model and training where an offer was chosen by them.
    """

    cluster: Cluster
    price: Price | None
    price_snapshot: str
    cost_by_provider: Mapping[str, float]
    cheaper_stale: CheaperStale | None = None
    trained: TrainedModel | None = None


def resolve_machine(context: AppContext, request: Request, notes: AssumptionLog) -> Machine:
    """The machine of a request. Raises DomainErrors, with pointers into the request."""
    return resolve_machine_in_book(context, request, context.book(request.get("price", {}).get("snapshot")), notes)


def resolve_machine_in_book(context: AppContext, request: Request, book: PriceBook, notes: AssumptionLog) -> Machine:
    """The machine of a request at the prices of a book: for callers that name this book in their answer. Raises as `resolve_machine`."""
    hardware, filters = request["hardware"], request.get("price", {})
    found = find_accelerator(hardware["accelerator"])
    stated = find_stated_price(filters, found.accelerator.name)
    if stated is not None:
        return Machine(resolve_cluster(found, hardware, notes, stated), stated, book.name, {})
    try:
        offers = sold_for(find_offers(filters, found.accelerator.name, book), hardware["count"])
    except UnpricedAccelerator as problem:
        notes.warn(f"{problem.message}, {STATE_PRICE}")
        return Machine(resolve_cluster(found, hardware, notes), None, book.name, {})
    filtered = filters.get("provider") or filters.get("region")
    others = find_eligible_offers({"pricing": filters.get("pricing")}, found.accelerator.name, book) if filtered else ()
    choice = choose_offer(context, request, resolve_cluster(found, hardware, AssumptionLog()), offers, book, others)
    price = note_offer_price(choice.offer, book, context.clock(), notes)
    least = choice.offer.terms.minimum_accelerators or 0
    if least > hardware["count"]:
        notes.warn(f"the price of {choice.offer.provider} is for at least {least:,} accelerators")
    cluster = resolve_cluster(found, hardware, notes, price)
    note_choice(choice, cluster, hardware.get("inter_node_gbps"), notes)
    return Machine(cluster, price, book.name, choice.cost_by_provider, choice.cheaper_stale, choice.trained)


def trained_model(context: AppContext, request: Request, machine: Machine, notes: AssumptionLog) -> tuple[Model, Training]:
    """Model and training of the machine's request: those that its offer was chosen with, where it was. Raises DomainErrors."""
    if machine.trained is None:
        return resolve_trained_model(context, request, machine.cluster, notes)
    notes.add(machine.trained.notes)
    return machine.trained.model, machine.trained.training
