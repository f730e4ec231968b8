"""State of every price provider: freshness, last error, next refresh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from providers.offer import ProviderError
from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import DomainError, UnknownName
from service.domain.jobs import ignore_progress
from service.domain.teams import DEFAULT_TEAM
from service.prices.freshness import is_stale
from service.prices.precedence import FILE_PROVIDER
from service.store import ProviderState
from service.usecases.prices.provider_access import (
    NotConfigured,
    as_configured,
    check_credentials,
    disabled_reason,
    due_at,
    in_backoff,
    load_configured,
    missing_credentials,
)
from service.usecases.prices.refresh import KIND, refresh_prices, request_refresh

Condition = Literal["ok", "stale", "failing", "not_configured", "offline", "never_asked", "off"]
MAX_EXAMPLES_SHOWN = 20
ROW_KINDS = ("rejected", "quarantined", "suspicious")
"""Kinds of rows that an operator should check."""
HIDDEN_ERROR = "its files cannot all be read; `outlay prices show` says why"
"""Error of price files: the real one names a file, possibly of a team, and may quote it."""


class UnknownProviderName(UnknownName):
    """No provider of that name."""

    status = 404
    title = "Unknown provider"


class NotAsked(DomainError):
    """The present settings do not allow the provider to be fetched."""

    status = 409
    title = "Not asked"


@dataclass(frozen=True, slots=True)
class RowCount:
    """Rows of the newest answer that did not become offers: their number and the first of them."""

    count: Annotated[int, Doc("Number of rows")]
    examples: Annotated[Sequence[Mapping[str, Any]], Doc("The first rows: row, reason and content", max_items=MAX_EXAMPLES_SHOWN)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """What is known of one price source."""

    name: Annotated[str, Doc("Name of the provider")]
    state: Annotated[
        Condition,
        Doc(
            "ok; stale: not fetched for longer than fresh_for_hours; failing: the last fetch failed; not_configured: see missing; "
            "offline: OUTLAY_OFFLINE is set; never_asked: not fetched yet; off: not named in OUTLAY_PROVIDERS"
        ),
    ]
    credentials: Annotated[tuple[str, ...], Doc("Environment variables it needs", max_items=20)] = ()
    missing: Annotated[str | None, Doc("What is missing to fetch from it; no error", max_length=1000)]
    fresh_for_hours: Annotated[float | None, Doc("How long its prices count as fresh", "h")] = None
    snapshot: Annotated[str | None, Doc("Newest good snapshot; a name for price_snapshot")]
    offers: Annotated[int, Doc("Offers in the newest snapshot")]
    last_success_at: Annotated[datetime | None, Doc("Last successful fetch; null: never")]
    last_attempt_at: Annotated[datetime | None, Doc("Last fetch; null: never")]
    last_error: Annotated[str | None, Doc("Error of the last fetch; null: none", max_length=2000)]
    last_error_at: Annotated[datetime | None, Doc("Time of that error; null: none")]
    next_refresh_at: Annotated[datetime | None, Doc("Time of the next fetch; null where there is none")] = None
    breaker_open_until: Annotated[datetime | None, Doc("It failed and is not fetched until then")] = None
    refresh: Annotated[str | None, Doc("State of a running refresh; null: none", choices=("queued", "running"))]
    rejected: Annotated[RowCount, Doc("Rows that could not be parsed")]
    skipped: Annotated[Mapping[str, int], Doc("Number of rows without a wanted accelerator, by reason")]
    quarantined: Annotated[RowCount, Doc("Implausible prices that are not served: jumps, placeholders, spot above on-demand")]
    suspicious: Annotated[RowCount, Doc("Implausible prices of your own files, which are served: check them")]
    warnings: Annotated[Sequence[str], Doc("Discounts that match no offer", max_length=1000, max_items=100)]


def list_providers(context: AppContext, *, operator: bool = False) -> list[ProviderEntry]:
    """All providers, ordered by name, as the context's team may see them, or the operator."""
    states, running = context.store.provider_states(), _running(context)
    entries = (_entry(context, states.get(name, ProviderState(name)), running.get(name)) for name in context.providers.names())
    return [_visible_to_team(context, entry, operator=operator) for entry in entries]


def count_fresh(entries: Iterable[ProviderEntry]) -> tuple[int, int]:
    """How many sources are fresh, and of how many prices are expected: not of those that are not configured or left out."""
    states = [entry.state for entry in entries if entry.state not in ("not_configured", "off")]
    return states.count("ok"), len(states)


def find_provider(context: AppContext, name: str) -> ProviderEntry:
    """One provider as the context's team may see it. Raises UnknownProviderName."""
    known = context.providers.names()
    if name not in known:
        near = tuple(get_close_matches(name[:100], known, n=3))
        raise UnknownProviderName(f"no price provider is called {name[:100]!r}; known: {', '.join(known)}", "/name", near)
    return _visible_to_team(context, _entry(context, context.store.provider_state(name), _running(context).get(name)), operator=False)


def teams_without_key(context: AppContext, teams: Iterable[str]) -> list[str]:
    """A warning for each of these teams that has no usable API key: its name may be misspelt."""
    now = context.clock()
    keyed = {DEFAULT_TEAM, *(key.team_name for key in context.store.keys() if not key.invalid_reason(now))}  # noqa: SIM118 - no dictionary
    return [f"no usable API key is of a team called {team}: its price book is not used" for team in teams if team not in keyed]


def _running(context: AppContext) -> dict[str, str]:
    """States of running refreshes by provider."""
    return {str(job.payload.get("provider")): job.state for job in context.store.open_jobs(KIND)}


def refresh_now(context: AppContext, name: str, *, accept_jumps: bool = False) -> ProviderEntry:
    """Request a refresh of a provider, whatever its backoff. Raises UnknownProviderName, NotAsked where the settings forbid it."""
    entry = find_provider(context, name)
    if entry.state in ("off", "offline"):
        setting = "OUTLAY_PROVIDERS leaves it out" if entry.state == "off" else "OUTLAY_OFFLINE is set"
        raise NotAsked(f"{name} is not asked: {setting}", "/name")
    if entry.missing is not None:
        _check_askable(context, name)
    job = request_refresh(context, name, by_hand=True, accept_jumps=accept_jumps)
    return replace(entry, refresh=job.state)


def refresh_in_process(context: AppContext, name: str, *, accept_jumps: bool = False) -> dict[str, Any]:
    """Result of a refresh made here by the operator, with its rejected, quarantined and suspicious rows. Raises UnknownProvider."""
    result = refresh_prices(context, {"provider": name, "by_hand": True, "accept_jumps": accept_jumps}, ignore_progress)
    if "snapshot" not in result:
        return result
    state = context.store.provider_state(name)
    owned = context.store.team_prices() if name == FILE_PROVIDER else {}
    rows = {f"{kind}_rows": [row for source in (state, *owned.values()) for row in getattr(source, kind, ())] for kind in ROW_KINDS}
    team_warnings = [warning for prices in owned.values() for warning in prices.warnings]
    warnings = [*result.get("warnings", ()), *team_warnings, *teams_without_key(context, owned)]
    teams = {"teams": {team: prices.offers for team, prices in owned.items()}} if owned else {}
    return result | rows | teams | {"skipped_rows": dict(state.skipped)} | ({"warnings": warnings} if warnings else {})


def _check_askable(context: AppContext, name: str) -> None:
    """Raise NotAsked for what is missing now; what a worker found missing may be set since."""
    try:
        missing = missing_credentials(context, load_configured(context, name))
    except (NotConfigured, ProviderError) as error:
        raise NotAsked(f"{name} is not configured: {error}", "/name") from error
    if missing:
        raise NotAsked(f"{name} is not configured: set {', '.join(missing)}", "/name")


def _entry(context: AppContext, state: ProviderState, refresh: str | None) -> ProviderEntry:
    state = as_configured(context, state)
    try:
        provider = load_configured(context, state.provider)
    except (NotConfigured, ProviderError) as error:
        return _make_entry(state, "not_configured", refresh, missing=str(error))
    now, missing = context.clock(), _missing(context, state)
    bar = disabled_reason(context, provider)
    condition = bar or _condition(state, missing, now)
    asked = bar is None and missing is None
    return _make_entry(
        state,
        condition,  # type: ignore[arg-type]  # "off" and "offline" are conditions
        refresh,
        missing=missing,
        credentials=provider.credentials,
        fresh_for_hours=provider.fresh_for.total_seconds() / 3600,
        next_refresh_at=(due_at(state, provider, now) or now) if asked else None,
        breaker_open_until=state.retry_at if in_backoff(state, now) else None,
    )


def _visible_to_team(context: AppContext, entry: ProviderEntry, *, operator: bool) -> ProviderEntry:
    """The entry, for price files with the team's own prices, or with all teams' for the operator."""
    if entry.name != FILE_PROVIDER:
        return entry
    if operator:
        owned = context.store.team_prices()
    else:
        owned = context.store.team_prices(context.team) if context.team else {}
        entry = replace(entry, last_error=entry.last_error and HIDDEN_ERROR)
    own = owned.values()
    warnings = [*entry.warnings, *(warning for prices in own for warning in prices.warnings)]
    return replace(
        entry,
        offers=entry.offers + sum(prices.offers for prices in own),
        rejected=_add_counts(entry.rejected, [RowCount(prices.rejected_count, prices.rejected) for prices in own]),
        suspicious=_add_counts(entry.suspicious, [RowCount(prices.suspicious_count, prices.suspicious) for prices in own]),
        warnings=warnings + (teams_without_key(context, owned) if operator else []),
    )


def _add_counts(shared: RowCount, own: Sequence[RowCount]) -> RowCount:
    every = (shared, *own)
    examples = [example for counted in every for example in counted.examples]
    return RowCount(sum(counted.count for counted in every), examples[:MAX_EXAMPLES_SHOWN])


def _missing(context: AppContext, state: ProviderState) -> str | None:
    """What the worker found missing; before its first attempt, what is missing here."""
    if state.unconfigured or state.attempted_at:
        return state.unconfigured
    try:
        check_credentials(context, load_configured(context, state.provider))
    except NotConfigured as error:
        return str(error)
    return None


def _condition(state: ProviderState, missing: str | None, now: datetime) -> Condition:
    if missing:
        return "not_configured"
    if state.failures:
        return "failing"
    if state.verified_at is None:
        return "never_asked"
    return "stale" if is_stale(state.verified_at, now, timedelta(seconds=state.fresh_for_s or 0)) else "ok"


def _make_entry(state: ProviderState, condition: Condition, refresh: str | None, *, missing: str | None, **more: Any) -> ProviderEntry:
    return ProviderEntry(
        name=state.provider,
        state=condition,
        missing=missing,
        snapshot=state.snapshot,
        offers=state.offers if state.snapshot else 0,
        last_success_at=state.verified_at,
        last_attempt_at=state.attempted_at,
        last_error=state.last_error,
        last_error_at=state.last_error_at,
        refresh=refresh,
        rejected=RowCount(state.rejected_count, state.rejected[:MAX_EXAMPLES_SHOWN]),
        skipped=state.skipped,
        quarantined=RowCount(state.quarantined_count, state.quarantined[:MAX_EXAMPLES_SHOWN]),
        suspicious=RowCount(state.suspicious_count, state.suspicious[:MAX_EXAMPLES_SHOWN]),
        warnings=state.warnings,
        **more,
    )
