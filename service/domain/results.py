"""Kept results: answers that do not change any more, their records for audits, and links that open them to others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from service.domain.answer_fields import HIDDEN, MERGED, Doc

Body = Mapping[str, Any]
KINDS = ("estimate", "compare", "program", "buy_or_rent", "optimal", "serving")
"""Kinds of question whose answers are kept."""
MOST_LINKS = 100
"""Links of one result."""


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """A kept result without its answer. `number` counts a team's results."""

    id: Annotated[str, Doc("Id of the result")]
    team: Annotated[str, HIDDEN]
    number: Annotated[int, HIDDEN]
    kind: Annotated[str, Doc("Kind of question")]
    title: Annotated[str, Doc("Title, by default the answer's summary, cut to 200 characters")]
    created_at: Annotated[datetime, Doc("Time at which it was computed and kept")]
    expires_at: Annotated[datetime | None, Doc("Time of deletion; null: kept until it is deleted")]
    sha256: Annotated[str, Doc("SHA-256 of the answer's bytes, which `/r/{result_id}?format=json` returns, in hexadecimal")]
    price_snapshot: Annotated[str, Doc("Price snapshot that the answer is made with", max_length=500)]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]


@dataclass(frozen=True, slots=True)
class ResultDetail:
    """A kept result.

    `answer_json` are the bytes of the answer as kept; `signature` is the JWS of its record without the payload (RFC 7515, appendix F), and
    `record_json` that payload without the answer.
    """

    row: Annotated[ResultRecord, MERGED]
    request: Annotated[Body, Doc("Request as sent")]
    offers: Annotated[tuple[Body, ...], Doc("Prices in the answer, each once, with their sources", max_items=10_000)]
    answer_json: Annotated[bytes, HIDDEN]
    record_json: Annotated[bytes, HIDDEN]
    signature: Annotated[str, HIDDEN]

    @property
    def answer(self) -> dict[str, Any]:
        """The answer as JSON values."""
        found: dict[str, Any] = json.loads(self.answer_json)
        return found


@dataclass(frozen=True, slots=True)
class ResultFilter:
    """Which results are listed. `title`: part of the title, in any case; `expires_before`: only those that expire before this time."""

    kind: str | None = None
    title: str | None = None
    expires_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResultLink:
    """A link that opens one result to whoever has it; its token is not stored, only a digest."""

    id: Annotated[str, Doc("Id of the link, which opens nothing")]
    created_at: Annotated[datetime, Doc("Time at which it was made")]
    expires_at: Annotated[datetime | None, Doc("Time from which it opens nothing; null: until it is revoked")]


def offers_in(answer: object) -> tuple[Body, ...]:
    """Every price in an answer, once, in the order in which they stand: objects with a source and a price an accelerator-hour."""
    found: dict[str, Body] = {}
    _collect_offers(answer, found)
    return tuple(found.values())


def _collect_offers(value: object, found: dict[str, Body]) -> None:
    if isinstance(value, Mapping):
        if {"provider", "source", "usd_per_accelerator_hour"} <= value.keys():
            found.setdefault(json.dumps(value, sort_keys=True), value)
            return
        for below in value.values():
            _collect_offers(below, found)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for below in value:
            _collect_offers(below, found)
