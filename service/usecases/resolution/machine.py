"""The machine of a request and its price, from the sections `hardware` and `price`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.context import AppContext
from service.domain.training.run import Cluster
from service.presets.hardware.accelerators import find_accelerator
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.price import Price, find_price

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    """The cluster of a request, its price, and the name of the price book."""

    cluster: Cluster
    price: Price
    price_snapshot: str


def resolve_machine(context: AppContext, request: Request, notes: AssumptionLog) -> Machine:
    """The machine of a request. Raises UnknownName, InvalidRequest, NoOffer, with pointers into the request."""
    book = context.book(request.get("price", {}).get("snapshot"))
    return resolve_machine_in_book(request, book, context.clock(), notes)


def resolve_machine_in_book(request: Request, book: PriceBook, now: datetime, notes: AssumptionLog) -> Machine:
    """The machine of a request at the prices of a book: for callers that name this book in their answer. Raises as `resolve_machine`."""
    hardware = request["hardware"]
    found = find_accelerator(hardware["accelerator"])
    price = find_price(request.get("price", {}), found.accelerator.name, hardware["count"], book, now, notes)
    return Machine(resolve_cluster(found, hardware, notes, price), price, book.name)
