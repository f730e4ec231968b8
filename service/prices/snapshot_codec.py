"""A snapshot's offers as bytes for the cache, with a digest: other bytes than were stored are ignored."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from providers.offer import Discount, Fetched, Offer, OfferTerms
from service.domain.prices import pack_terms, unpack_terms

FORMAT = 2
"""Version of the format, part of the cache's keys."""
_FIELDS = tuple(field.name for field in fields(Offer))
_TIMES = ("observed_at", "available_since")
_DIGEST_BYTES = 32


def pack(snapshot: Fetched) -> bytes:
    """Offers, discounts and name of a snapshot."""
    rows = [pack_offer(offer) for offer in snapshot.offers]
    discounts = [asdict(discount) | {"share": str(discount.share)} for discount in snapshot.discounts]
    text = json.dumps({"snapshot": snapshot.snapshot, "offers": rows, "discounts": discounts}, separators=(",", ":"))
    body = zlib.compress(text.encode(), 1)
    return hashlib.sha256(body).digest() + body


def unpack(blob: bytes, snapshot: str) -> Fetched | None:
    """The packed snapshot, or None where these bytes are not from `pack`."""
    body = blob[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != blob[:_DIGEST_BYTES]:
        return None
    found = json.loads(zlib.decompress(body))
    if found["snapshot"] != snapshot:
        return None
    discounts = tuple(Discount(**entry | {"share": Decimal(entry["share"])}) for entry in found["discounts"])
    return Fetched(tuple(unpack_offer(row) for row in found["offers"]), snapshot, discounts=discounts)


def pack_offer(offer: Offer) -> list[Any]:
    """An offer's fields as plain JSON values, in their order."""
    return [_written(getattr(offer, name)) for name in _FIELDS]


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, OfferTerms):
        return pack_terms(value)
    return str(value) if isinstance(value, Decimal) else value


def unpack_offer(row: list[Any]) -> Offer:
    """The offer that `pack_offer` made plain."""
    given = dict(zip(_FIELDS, row, strict=True))
    times = {name: given[name] and datetime.fromisoformat(given[name]) for name in _TIMES}
    return Offer(**{**given, **times, "usd_per_hour": Decimal(given["usd_per_hour"]), "terms": unpack_terms(given["terms"])})
