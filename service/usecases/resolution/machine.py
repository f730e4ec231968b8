"""The machine of a request and its price, from the sections `hardware` and `price`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.training.run import Cluster
from service.presets.hardware.accelerators import find_accelerator
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
    hardware, price_filter = request["hardware"], request.get("price", {})
    book = context.book(price_filter.get("snapshot"))
    found = find_accelerator(hardware["accelerator"])
    price = find_price(price_filter, found.accelerator.name, hardware["count"], book, context.clock(), notes)
    return Machine(resolve_cluster(found, hardware, notes, price), price, book.name)
