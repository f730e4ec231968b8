"""Store a fetch: check its offers, write a snapshot if they changed, price history, and the provider's new state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from providers.offer import FILE, UNREAD_SINCE, Discount, Fetched, Offer, Provider, ProviderError, Rejected
from providers.quarantine import CheckedOffers, Identity, Quarantined, check_offers, find_suspicious
from service.context import AppContext
from service.domain.jobs import ReportProgress
from service.prices.book import BUILT_IN_PROVIDER, NEVER
from service.prices.precedence import FILE_PROVIDER, matches
from service.store import ProviderState, TeamPriceChanges, TeamPrices
from service.store.database import sanitize_text
from service.store.prices.history import IDENTITY_COLUMNS
from service.store.prices.snapshots import LONGEST, LONGEST_PRICE, MOST_ACCELERATORS
from service.usecases.prices.provider_access import configuration

MAX_EXAMPLES = 100
"""Examples stored of rejected and quarantined rows and of reasons to skip; all are counted."""
MAX_REASON_CHARS = 300
"""Maximum characters of a reason: a source may send a whole page."""
OTHER_REASONS = "other reasons"
_NOTHING = Fetched((), "")


@dataclass(frozen=True, slots=True)
class RefreshAttempt:
    """One refresh: the provider, its state before, when it began, offers of all providers, and whether the operator accepts jumps."""

    provider: Provider
    state: ProviderState
    began: datetime
    known: Sequence[Offer] = ()
    accept_jumps: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of an answer for all teams or for one: `checked` is stored under the name `snapshot`.

    `before` is the previous snapshot; where the answer equals it `is_news` is False and the name stays.
    """

    checked: CheckedOffers
    before: Mapping[Identity, Offer]
    snapshot: str | None
    is_news: bool


@dataclass(frozen=True, slots=True)
class _SaveContext:
    """Arguments of one call of `save_fetched`."""

    context: AppContext
    attempt: RefreshAttempt
    now: datetime
    step: ReportProgress


def save_fetched(context: AppContext, attempt: RefreshAttempt, fetched: Fetched, step: ReportProgress) -> ProviderState:
    """Store everything of `fetched`; returns the provider's new state, without anything of a single team.

    Raises ProviderError where the answer cannot be complete, StaleWriteError where another answer was stored since the attempt began.
    """
    name, now, state, fetched = attempt.provider.name, context.clock(), attempt.state, _storable_offers(fetched)
    at = _SaveContext(context, attempt, now, step)
    fetched = _with_last_good(at, fetched, state.snapshot)
    part = _check_part(at, fetched, state.snapshot)
    new_state, owned = replace(_next_state(attempt, fetched, part.checked, now), snapshot=part.snapshot), None
    new_state = replace(new_state, configuration=configuration(context, name))
    if name == FILE_PROVIDER:
        warnings = _unmatched_discounts(context, fetched.discounts)
        new_state = replace(new_state, warnings=warnings, **_suspicious_fields(at, part), **_unread(fetched, now))
        owned = _team_price_changes(at, fetched)
    context.store.save_state(new_state, now, _part_changes(at, part), since=state, owned=owned)
    return new_state


def withdrawal_changes(context: AppContext, provider: str, snapshot: str, now: datetime) -> list[dict[str, Any]]:
    """Rows of history: every offer of a snapshot is gone."""
    last = context.store.load_snapshot(snapshot) or _NOTHING
    return price_changes(provider, {offer.identity: offer for offer in last.offers}, (), now)


def _check_part(at: _SaveContext, fetched: Fetched, known: str | None, team: str | None = None) -> _Part:
    """Checked part for all teams or one, compared with the snapshot `known`; a new name where it changed. Raises ProviderError."""
    context, attempt, name = at.context, at.attempt, at.attempt.provider.name
    last = context.store.load_snapshot(known) or _NOTHING if known else _NOTHING
    before = {offer.identity: offer for offer in last.offers}
    if before and not fetched.offers and not attempt.provider.local:
        raise ProviderError(f"{name} brought no offer at all, where it had {len(before)}")
    checked = _checked(attempt, fetched, before, at.now)
    content = _content(checked.offers, fetched, attempt.began)
    if known and content == _content(last.offers, last, _taken_at(context, known, team)):
        return _Part(checked, before, known, is_news=False)
    if name == FILE_PROVIDER and not (known or team or content):  # a new book would disclose that teams have price books
        return _Part(checked, before, None, is_news=False)
    snapshot = fetched.snapshot if name == BUILT_IN_PROVIDER else _name(name, [*content, *([team] if team else [])], at.now)
    context.store.save_snapshot(name, replace(fetched, offers=checked.offers, snapshot=snapshot), at.now, at.step, team=team)
    return _Part(checked, before, snapshot, is_news=True)


def _taken_at(context: AppContext, snapshot: str, team: str | None) -> datetime:
    head = context.store.team_snapshot_ref(team, snapshot) if team else context.store.book_manifest(snapshot).parts[0]
    return head.taken_at if head else NEVER


def _part_changes(at: _SaveContext, part: _Part) -> list[dict[str, Any]]:
    return price_changes(at.attempt.provider.name, part.before, part.checked.offers, at.now) if part.is_news else []


def _with_last_good(at: _SaveContext, fetched: Fetched, known: str | None) -> Fetched:
    """The answer with the last good prices (marked) and discounts of price files that cannot be read, from the snapshot `known`."""
    last = at.context.store.load_snapshot(known) if known and fetched.unread else None
    if last is None:
        return fetched
    files, stated = {file.row for file in fetched.unread}, {offer.identity for offer in fetched.offers}
    mark = {UNREAD_SINCE: at.now.isoformat()}
    offers = (offer for offer in last.offers if offer.extras.get(FILE) in files and offer.identity not in stated)
    discounts = (discount for discount in last.discounts if discount.file in files and discount not in fetched.discounts)
    return replace(
        fetched,
        offers=(*fetched.offers, *(replace(offer, extras=mark | offer.extras) for offer in offers)),
        discounts=(*fetched.discounts, *discounts),
    )


def _unread(fetched: Fetched, now: datetime) -> dict[str, Any]:
    """Fields of the state about unreadable price files."""
    if not fetched.unread:
        return {}
    return {"last_error": "; ".join(file.reason for file in fetched.unread), "last_error_at": now}


def _team_price_changes(at: _SaveContext, shared: Fetched) -> TeamPriceChanges:
    """Present prices of each team, and the changes that they make."""
    known = at.context.store.team_prices()
    prices, history = list[TeamPrices](), dict[str, Sequence[Mapping[str, Any]]]()
    for team, read in {**dict.fromkeys(known, _NOTHING), **shared.teams}.items():
        has = known.get(team)
        fetched = _with_last_good(at, replace(_storable_offers(read), unread=shared.unread), has.snapshot if has else None)
        if has and not (fetched.offers or fetched.discounts or fetched.rejected):
            history[team] = withdrawal_changes(at.context, FILE_PROVIDER, has.snapshot, at.now)
            continue
        if has and not fetched.offers and not fetched.discounts:
            prices.append(replace(has, **_rejected(fetched)))  # none of its rows can be kept: its last good prices stay
            continue
        part = _check_part(at, fetched, has.snapshot if has else None, team)
        warnings = _unmatched_discounts(at.context, fetched.discounts)
        new_state = TeamPrices(team, str(part.snapshot), len(part.checked.offers), warnings=warnings)
        if has and not part.is_news:
            new_state = replace(new_state, suspicious_count=has.suspicious_count, suspicious=has.suspicious)
        prices.append(replace(new_state, **_rejected(fetched), **_suspicious_fields(at, part)))
        history[team] = _part_changes(at, part)
    return TeamPriceChanges(prices, history)


def price_changes(provider_name: str, before: Mapping[Identity, Offer], offers: tuple[Offer, ...], now: datetime) -> list[dict[str, Any]]:
    """Rows of history: offers that are new, have another price or availability, or are gone."""
    after = {offer.identity: offer for offer in offers}
    news = [offer for key, offer in after.items() if _offer_identity(before.get(key)) != _offer_identity(offer)]
    gone = [replace(offer, observed_at=now) for key, offer in before.items() if key not in after]
    return [_row(provider_name, offer) for offer in news] + [_row(provider_name, offer) | {"usd_per_hour": None} for offer in gone]


def _row(provider_name: str, offer: Offer) -> dict[str, Any]:
    columns = (*IDENTITY_COLUMNS[1:], "usd_per_hour", "availability", "observed_at", "source")
    return {"asked": provider_name, **{name: getattr(offer, name) for name in columns}}


def _offer_identity(offer: Offer | None) -> tuple[object, ...]:
    return () if offer is None else (offer.usd_per_hour, offer.availability)


def _storable_offers(fetched: Fetched) -> Fetched:
    """The answer without offers whose texts or numbers the store cannot hold; these are rejected."""
    misfits = [(offer, _storage_error(offer)) for offer in fetched.offers]
    rejected = tuple(Rejected(_shown(offer)[:200], reason) for offer, reason in misfits if reason)
    return replace(fetched, offers=tuple(offer for offer, reason in misfits if not reason), rejected=fetched.rejected + rejected)


def _storage_error(offer: Offer) -> str | None:
    if offer.accelerator_count > MOST_ACCELERATORS or len(str(offer.usd_per_hour)) > LONGEST_PRICE:
        return f"{offer.accelerator_count} accelerators at {offer.usd_per_hour} USD are no numbers that can be kept"[:200]
    texts = ((name, getattr(offer, name)) for name in LONGEST)
    found = next((name for name, text in texts if len(text) > LONGEST[name] or sanitize_text(text) != text), None)
    return f"{found} is no text that can be kept" if found else None


def _checked(attempt: RefreshAttempt, fetched: Fetched, before: Mapping[Identity, Offer], now: datetime) -> CheckedOffers:
    """Offers that may be served, each dated and with the time since when it has its availability.

    Shipped prices are checked when they are built; prices of files are not quarantined.
    """
    if attempt.provider.name == BUILT_IN_PROVIDER:
        return CheckedOffers(fetched.offers, ())
    dated = tuple(replace(offer, observed_at=now) if offer.observed_at >= attempt.began else offer for offer in fetched.offers)
    if attempt.provider.name == FILE_PROVIDER:
        checked = CheckedOffers(dated, ())
    else:
        checked = check_offers(replace(fetched, offers=dated), before, attempt.known, accept_jumps=attempt.accept_jumps)
    return replace(checked, offers=tuple(_with_available_since(offer, before.get(offer.identity), now) for offer in checked.offers))


def _with_available_since(offer: Offer, before: Offer | None, now: datetime) -> Offer:
    if offer.available_since is not None:
        return offer
    same = before is not None and before.availability == offer.availability
    return replace(offer, available_since=before.available_since or before.observed_at if before is not None and same else now)


def _next_state(attempt: RefreshAttempt, fetched: Fetched, checked: CheckedOffers, now: datetime) -> ProviderState:
    """State of the provider after a good answer."""
    bad = _rows(checked.quarantined, now)
    return replace(
        attempt.state,
        fresh_for_s=round(attempt.provider.fresh_for.total_seconds()),
        verified_at=now,
        attempted_at=attempt.began,
        failures=0,
        last_error=None,
        last_error_at=None,
        retry_at=None,
        unconfigured=None,
        offers=len(checked.offers),
        **_rejected(fetched),
        skipped=_most_common(fetched.skipped),
        quarantined_count=len(bad),
        quarantined=bad[:MAX_EXAMPLES],
    )


def _rows(found: Sequence[Quarantined], now: datetime) -> list[dict[str, Any]]:
    at = now.isoformat()
    return [{"row": _shown(row.offer), "reason": row.reason, "at": at, "usd_per_hour": float(row.offer.usd_per_hour)} for row in found]


def _suspicious_fields(at: _SaveContext, part: _Part) -> dict[str, Any]:
    """Fields of the state about suspicious prices; none where the answer is unchanged."""
    if not part.is_news:
        return {}
    found = _rows(find_suspicious(part.checked.offers, part.before, at.attempt.known), at.now)
    return {"suspicious_count": len(found), "suspicious": found[:MAX_EXAMPLES]}


def _rejected(fetched: Fetched) -> dict[str, Any]:
    """Fields of the state about rejected rows."""
    shown = fetched.rejected[:MAX_EXAMPLES]
    rows = [{"row": sanitize_text(row.row[:200]), "reason": sanitize_text(row.reason[:MAX_REASON_CHARS])} for row in shown]
    return {"rejected_count": len(fetched.rejected), "rejected": rows}


def _unmatched_discounts(context: AppContext, discounts: Sequence[Discount]) -> list[str]:
    """Warnings about discounts that match no offer of other sources."""
    if not discounts:
        return []
    book = context.catalog.book(context.store.current_manifest().book)
    others = [offer for offer in book.offers if book.source_provider(offer) != FILE_PROVIDER]
    idle = (discount for discount in discounts if not any(matches(discount, offer) for offer in others))
    warnings = (f"discount {discount.name} matched no offer{_discount_target(discount)}" for discount in idle)
    return [sanitize_text(warning[:MAX_REASON_CHARS]) for warning in islice(warnings, MAX_EXAMPLES)]


def _discount_target(discount: Discount) -> str:
    named = [f"{name} {value}" for name in ("provider", "region", "pricing", "accelerator") if (value := getattr(discount, name))]
    return f": {', '.join(named)}" if named else ""


def _most_common(skipped: Mapping[str, int]) -> dict[str, int]:
    """The most common reasons; they contain labels of the source, and there may be thousands."""
    ordered = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    shown = {sanitize_text(reason[:MAX_REASON_CHARS]): count for reason, count in ordered[:MAX_EXAMPLES]}
    rest = sum(count for _, count in ordered[MAX_EXAMPLES:])
    return shown | ({OTHER_REASONS: rest} if rest else {})


def _shown(offer: Offer) -> str:
    return f"{offer.provider} {offer.region} {offer.instance_type} {offer.accelerator_count}x {offer.accelerator} {offer.pricing}"


def _content(offers: tuple[Offer, ...], fetched: Fetched, fresh_from: datetime) -> list[str]:
    """Content of an answer in a fixed order. Dates count only for offers that this answer did not read."""
    read = (replace(offer, observed_at=NEVER) if offer.observed_at >= fresh_from else offer for offer in offers)
    return [*sorted(map(repr, read)), *map(repr, fetched.discounts)]


def _name(provider: str, content: list[str], now: datetime) -> str:
    return f"{provider}-{now:%Y-%m-%d}-{hashlib.sha256(repr(content).encode()).hexdigest()[:10]}"
