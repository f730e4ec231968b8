"""Vendors' price sheets of a team: propose how one is read, keep it once confirmed, list, show and delete."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from statistics import median
from typing import Annotated, Any

from providers.offer import FILE, Fetched, Offer
from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import InvalidRequest, NotFound
from service.domain.price_files import CurrencyRate, QuoteCorrections, QuoteOffer, QuoteProposal
from service.domain.prices import PROVIDER_SYNONYMS, offer_key
from service.domain.teams import Principal
from service.formats.imports.quotes.labels import QuoteReference
from service.formats.imports.quotes.proposal import ReadQuote, present_offer, propose
from service.presets.hardware.accelerators import accelerator_candidates, load_accelerators
from service.prices.book import PriceBook
from service.prices.snapshot_codec import pack_offer, unpack_offer
from service.serialization import to_builtins
from service.store import PriceFileRecord
from service.store.prices.price_books import QUOTES_PREFIX

MAX_FILES = 100
"""Price files of a team."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
HASH_DIGITS = 12


class TooManyPriceFiles(InvalidRequest):
    """The team has as many price files as it may have."""

    title = "Too many price files"


class UnknownPriceFile(NotFound):
    """The team has no price file of that name."""

    status = 404
    title = "Unknown price file"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFileEntry:
    """A version of a team's price file."""

    name: Annotated[str, Doc("Name of the price file")]
    version: Annotated[int, Doc("Version, from 1", minimum=1)]
    state: Annotated[str, Doc("current: its offers are used until they end", choices=("current", "superseded", "deleted"))]
    file_name: Annotated[str, Doc("Name of the vendor's file")]
    format: Annotated[str, Doc("csv or xlsx")]
    sha256: Annotated[str, Doc("Digest of the vendor's file, which itself is not kept")]
    kept_at: Annotated[datetime, Doc("When it was confirmed")]
    offers: Annotated[int, Doc("Offers", minimum=0)]
    refused: Annotated[int, Doc("Prices of the sheet that are no offers", minimum=0)]
    ended: Annotated[int, Doc("Offers that have ended and are not used any more", minimum=0)]
    first_end: Annotated[date | None, Doc("Last day of the offer that ends next; null: none ends")]
    ends_in_days: Annotated[int | None, Doc("Days until that; null: none ends", "days")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFileDetail:
    """A team's price file: its newest version with its offers, and all versions."""

    entry: Annotated[PriceFileEntry, Doc("The newest version")]
    mapping: Annotated[Mapping[str, Any], Doc("The corrections with which it was read, as they were sent")]
    quotes: Annotated[Sequence[QuoteOffer], Doc("Its offers", max_items=5000)]
    versions: Annotated[Sequence[PriceFileEntry], Doc("All versions, newest first", max_items=10_000)]
    warnings: Annotated[Sequence[str], Doc("What to know", max_length=1000, max_items=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFileAnswer:
    """How a vendor's sheet is read, and whether it is kept."""

    kept: Annotated[bool, Doc("Whether its offers are kept: only after `confirm` with the digest of the file")]
    name: Annotated[str, Doc("Name under which it is kept, or would be")]
    sha256: Annotated[str, Doc("Digest of the file, to confirm with")]
    proposal: Annotated[QuoteProposal, Doc("How the sheet is read")]
    entry: Annotated[PriceFileEntry | None, Doc("The kept version; absent before", optional=True)] = None


def read_price_file(context: AppContext, content: bytes, request: Mapping[str, Any]) -> PriceFileAnswer:
    """How a vendor's file is read with the caller's corrections; nothing is kept. `request` is as the schema loads it.

    Raises InvalidRequest for a file that cannot be read and for corrections that do not fit it.
    """
    name, quote = _read(context, content, request)
    return PriceFileAnswer(kept=False, name=name, sha256=hashlib.sha256(content).hexdigest(), proposal=quote.proposal)


def keep_price_file(context: AppContext, who: Principal, content: bytes, request: Mapping[str, Any]) -> PriceFileAnswer:
    """Keep the offers of a vendor's file as the team's own, as the next version of its name.

    Raises InvalidRequest for a digest of another file, for one without any offer, and as `read_price_file`.
    """
    digest = hashlib.sha256(content).hexdigest()
    if request.get("sha256") != digest:
        raise InvalidRequest(f"confirm with the digest of the file that you send: {digest}", "/sha256")
    name, quote = _read(context, content, request)
    if not quote.offers:
        raise InvalidRequest(f"no price of the file can be kept: {_first_reasons(quote.proposal)}", "/mapping")
    record = PriceFileRecord(
        team=who.team_name,
        name=name,
        version=0,
        file_name=request.get("file_name") or "",
        format=quote.proposal.format,
        sha256=digest,
        kept_at=context.clock(),
        kept_by=who.key,
        state="current",
        content=_content(quote, request),
    )
    kept = _same(context, record)
    if kept is None:
        kept = context.store.keep_price_file(record, MAX_FILES, _combined)
        if kept is None:
            raise TooManyPriceFiles(f"a team has at most {MAX_FILES} price files: delete one first", "/name")
        context.catalog.changed()
    return PriceFileAnswer(kept=True, name=name, sha256=digest, proposal=quote.proposal, entry=_entry(kept, context.clock().date()))


def _same(context: AppContext, record: PriceFileRecord) -> PriceFileRecord | None:
    """The current version where this one is the same again: a repeated confirmation makes no further version."""
    known = next((known for known in context.store.price_files(record.team) if known.name == record.name), None)
    return known if known and (known.sha256, known.content) == (record.sha256, json.loads(json.dumps(record.content))) else None


def list_price_files(context: AppContext, who: Principal) -> list[PriceFileEntry]:
    """The team's current price files, by name."""
    today = context.clock().date()
    return [_entry(record, today) for record in context.store.price_files(who.team_name)]


def show_price_file(context: AppContext, who: Principal, name: str) -> PriceFileDetail:
    """A team's price file with its offers and all its versions. Raises UnknownPriceFile."""
    versions, today = context.store.price_file_versions(who.team_name, name), context.clock().date()
    if not versions or versions[0].state == "deleted":
        raise UnknownPriceFile(f"the team has no price file called {name[:100]!r}", "/name")
    newest = versions[0]
    offers = _offers(newest)
    return PriceFileDetail(
        entry=_entry(newest, today),
        mapping=newest.content["mapping"],
        quotes=[present_offer(offer) for offer in offers],
        versions=[_entry(record, today) for record in versions],
        warnings=[*newest.content["warnings"], *_end_warnings(offers, today)],
    )


def delete_price_file(context: AppContext, who: Principal, name: str) -> PriceFileEntry:
    """The price file, whose offers are not used from now on; its record stays. Raises UnknownPriceFile."""
    now = context.clock()
    gone = context.store.delete_price_file(who.team_name, name, now, _combined)
    if gone is None:
        raise UnknownPriceFile(f"the team has no price file called {name[:100]!r}", "/name")
    context.catalog.changed()
    return _entry(gone, now.date())


def corrections_of(request: Mapping[str, Any]) -> QuoteCorrections:
    """The corrections of a request, as the schema loads it. Raises InvalidRequest for a rate that is not known yet."""
    mapping = request.get("mapping", {})
    rates = {code: CurrencyRate(rate["usd"], rate["at"]) for code, rate in mapping.get("rates", {}).items()}
    return QuoteCorrections(
        sheet=mapping.get("sheet"),
        header_row=mapping.get("header_row"),
        columns=mapping.get("columns", {}),
        settings=mapping.get("settings", {}),
        accelerators=mapping.get("accelerators", {}),
        rates=rates,
    )


def _read(context: AppContext, content: bytes, request: Mapping[str, Any]) -> tuple[str, ReadQuote]:
    """Name and reading of a file. Raises InvalidRequest."""
    file_name, today = request.get("file_name") or "", context.clock().date()
    corrections = corrections_of(request)
    _check(corrections, today)
    name = request.get("name") or _name(file_name)
    quote = propose(content, file_name or name, corrections, quote_reference(context.book(), today))
    team = context.team or ""
    return name, _owned(quote, name, team)


def _check(corrections: QuoteCorrections, today: date) -> None:
    """Raises InvalidRequest for rates of days to come and for accelerators that are not known."""
    late = next((code for code, rate in corrections.rates.items() if rate.at > today), None)
    if late is not None:
        raise InvalidRequest(f"the rate of {late} is of a day that is still to come", f"/mapping/rates/{late}/at")
    stated = {**corrections.accelerators, "": corrections.settings.get("accelerator")}
    for label, name in stated.items():
        if name is not None and name not in load_accelerators() and label:
            raise InvalidRequest(
                f"{name[:80]!r} is no canonical name of an accelerator; GET /v1/accelerators lists them", "/mapping/accelerators"
            )


def _name(file_name: str) -> str:
    """A name of a price file made of a file's name; `quote` where nothing of that can be used."""
    stem = re.sub(r"\.[A-Za-z]{2,4}$", "", file_name)
    cleaned = re.sub(r"[^A-Za-z0-9 ._-]+", "-", stem).strip(" ._-")[:100]
    return cleaned if NAME.fullmatch(cleaned) else "quote"


def _owned(quote: ReadQuote, name: str, team: str) -> ReadQuote:
    """The reading with offers that name the file and the team."""
    extras = {FILE: name, "team": team}
    rows = [
        row if row.kept is None else replace(row, kept=replace(row.kept, extras=row.kept.extras | extras)) for row in quote.proposal.rows
    ]
    return ReadQuote(replace(quote.proposal, rows=rows))


def quote_reference(book: PriceBook, today: date) -> QuoteReference:
    """What reading a quote needs to know: accelerators, and of a book providers, plain instance types and usual prices.

    The usual price of an accelerator is the median of what each provider's cheapest list price on demand is.
    """
    instances: dict[str, set[tuple[str, int]]] = {}
    providers: dict[str, str] = {}
    least: dict[tuple[str, str], float] = {}
    for offer in book.offers:
        instances.setdefault(offer.instance_type.casefold(), set()).add((offer.accelerator, offer.accelerator_count))
        providers[offer.provider.casefold()] = offer.provider
        if offer.pricing == "on_demand" and offer.market == "list":
            key = offer.accelerator, offer.provider
            least[key] = min(least.get(key, math.inf), float(offer.usd_per_accelerator_hour))
    listed: dict[str, list[float]] = {}
    for (accelerator, _), usd in least.items():
        listed.setdefault(accelerator, []).append(usd)
    return QuoteReference(
        candidates=accelerator_candidates,
        accelerators_per_node={name: part.accelerators_per_node for name, part in load_accelerators().items()},
        typical_usd={name: median(prices) for name, prices in listed.items()},
        providers=providers | {word: name for word, name in PROVIDER_SYNONYMS.items() if name in providers},
        instances={name: next(iter(sold)) for name, sold in instances.items() if len(sold) == 1 and not accelerator_candidates(name)},
        today=today,
    )


def _content(quote: ReadQuote, request: Mapping[str, Any]) -> dict[str, Any]:
    proposal = quote.proposal
    return {
        "offers": [pack_offer(offer) for offer in quote.offers],
        "mapping": to_builtins(request.get("mapping", {})),
        "refused": proposal.counts.refused,
        "warnings": list(proposal.warnings),
    }


def _offers(record: PriceFileRecord) -> list[Offer]:
    return [unpack_offer(row) for row in record.content["offers"]]


def _combined(records: Sequence[PriceFileRecord]) -> Fetched | None:
    """One snapshot of all offers; of two of one thing that of the file kept last."""
    offers = {offer_key(offer): offer for record in records for offer in _offers(record)}
    if not offers:
        return None
    files = "\n".join(f"{record.team} {record.name} {record.version} {record.sha256}" for record in records)
    digest = hashlib.sha256(files.encode()).hexdigest()[:HASH_DIGITS]
    return Fetched(tuple(offers.values()), f"{QUOTES_PREFIX}{records[-1].kept_at:%Y-%m-%d}-{digest}")


def _entry(record: PriceFileRecord, today: date) -> PriceFileEntry:
    offers = _offers(record)
    ends = sorted(day for offer in offers if (day := offer.terms.valid_until) is not None)
    ahead = [day for day in ends if day >= today]
    return PriceFileEntry(
        name=record.name,
        version=record.version,
        state=record.state,
        file_name=record.file_name,
        format=record.format,
        sha256=record.sha256,
        kept_at=record.kept_at,
        offers=len(offers),
        refused=record.content["refused"],
        ended=len(ends) - len(ahead),
        first_end=ahead[0] if ahead else None,
        ends_in_days=(ahead[0] - today).days if ahead else None,
    )


def _end_warnings(offers: Iterable[Offer], today: date) -> list[str]:
    """How many offers have ended."""
    ended = sorted(day for offer in offers if (day := offer.terms.valid_until) is not None and day < today)
    return [f"{len(ended)} of its offers have ended, the last on {ended[-1]}, and are not used"] if ended else []


def _first_reasons(proposal: QuoteProposal) -> str:
    """The most frequent reasons of refused rows."""
    counts: dict[str, int] = {}
    for row in proposal.rows:
        for reason in row.reasons if row.fate == "refused" else ():
            counts[reason] = counts.get(reason, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])[:5]
    return "; ".join(f"{reason} ({count} prices)" for reason, count in ordered) or "it has no price"
