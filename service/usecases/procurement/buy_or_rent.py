"""Whether a fleet is bought or rented: owned fleets, reservations, capacity on demand and spot, and a mix, for the same demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.context import AppContext
from service.domain.procurement.answer import BuyOrRent

Request = Mapping[str, Any]


def buy_or_rent(context: AppContext, request: Request) -> BuyOrRent:
    """The answer to a validated request. Raises DomainErrors with pointers into it."""
    raise NotImplementedError
