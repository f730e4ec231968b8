"""Refresh of prices: when each provider is fetched, and what is stored where that fails. A failure never changes the last good prices."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from providers.offer import Fetched, Provider, ProviderError
from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.jobs import Job, ReportProgress, ignore_progress
from service.domain.price_books import BookManifest, SnapshotRef
from service.prices.book import BUILT_IN_PROVIDER
from service.prices.freshness import is_stale
from service.prices.precedence import FILE_PROVIDER
from service.store import ProviderState, StaleWriteError, TeamPriceChanges
from service.usecases.prices.ingest import RefreshAttempt, save_fetched, withdrawal_changes
from service.usecases.prices.provider_access import (
    NotConfigured,
    as_configured,
    backoff,
    check_credentials,
    disabled_reason,
    due_at,
    in_backoff,
    load_configured,
    redact_credentials,
    wrap_provider_errors,
)

log = logging.getLogger(__name__)

KIND = "refresh_prices"
LOCAL_PROVIDERS = (BUILT_IN_PROVIDER, FILE_PROVIDER)
"""Built-in providers that read this machine only."""
TRIGGER_INTERVAL_S = 60.0
"""Time between requests of one process for a refresh of expired prices [s]."""
Given = Mapping[str, Any]


def refresh_prices(context: AppContext, payload: Given, step: ReportProgress) -> dict[str, Any]:
    """The job `refresh_prices`, payload `{"provider": name}`, with `by_hand` or `accept_jumps` set by an operator.

    It continues where an interrupted attempt stopped. A provider's failure is no failure of the job: the provider's state has it.
    """
    name = payload["provider"]
    if name != BUILT_IN_PROVIDER and context.store.provider_state(BUILT_IN_PROVIDER).snapshot is None:
        refresh_prices(context, {"provider": BUILT_IN_PROVIDER}, ignore_progress)  # no book is without the shipped prices
    state = context.store.provider_state(name)
    try:
        provider = load_configured(context, name)
        reason = _skip_reason(context, provider, state, payload)
        return {"provider": name, "skipped": reason} if reason else _fetch_and_save(context, provider, state, payload, step)
    except NotConfigured as error:
        save_unconfigured(context, state, str(error), attempted=True)
        return {"provider": name, "skipped": str(error)}
    except ProviderError as error:
        _save_failure(context, state, str(error))
        return {"provider": name, "error": str(error)}
    except StaleWriteError as error:
        return {"provider": name, "skipped": str(error)}


def request_refresh(context: AppContext, provider: str, *, by_hand: bool = False, accept_jumps: bool = False) -> Job:
    """A refresh of one provider: the open one, or a new one. Concurrent calls get the same job."""
    options = {name: True for name, true in (("by_hand", by_hand), ("accept_jumps", accept_jumps)) if true}
    dedup_key = f"{KIND}:{provider}" + (":accept_jumps" if accept_jumps else "")
    job, new = context.store.create_unique_job(KIND, {"provider": provider, **options}, context.clock(), dedup_key)
    if new:
        context.queue.send(job.id)
    return job


def refresh_due(context: AppContext) -> tuple[Job, ...]:
    """A refresh of every provider that is configured, enabled, not in backoff and due."""
    return tuple(
        request_refresh(context, name) for name, at in _fetchable(context, context.providers.names()) if at is None or at <= context.clock()
    )


def refresh_local(context: AppContext) -> tuple[Job, ...]:
    """A refresh of providers that read this machine: files may have changed while the service was down."""
    return tuple(request_refresh(context, name) for name, _ in _fetchable(context, LOCAL_PROVIDERS))


class RefreshTrigger:
    """Requests a refresh of expired prices, at most once a minute for each provider. Never raises: the prices are served meanwhile."""

    def __init__(self, context: AppContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._context, self._clock = context, clock
        self._next: dict[str, float] = {}

    def __call__(self, manifest: BookManifest) -> None:
        for head in manifest.parts:
            if self._has_expired(head) and self._clock() >= self._next.get(head.provider, float("-inf")):
                self._next[head.provider] = self._clock() + TRIGGER_INTERVAL_S
                self._ask(head.provider)

    def _has_expired(self, known: SnapshotRef | ProviderState) -> bool:
        return is_stale(known.verified_at, self._context.clock(), timedelta(seconds=known.fresh_for_s or 0))

    def _ask(self, provider: str) -> None:
        """Request a refresh unless the store has newer prices than this process."""
        context = self._context
        allowed = context.settings.asks(provider) and (provider in LOCAL_PROVIDERS or not context.settings.offline)
        try:
            state = context.store.provider_state(provider)
            if allowed and self._has_expired(state) and not state.unconfigured and not in_backoff(state, context.clock()):
                request_refresh(context, provider)
        except StoreUnavailable as error:
            log.warning("no refresh of %s can be requested: %s", provider, error)


def save_unconfigured(context: AppContext, state: ProviderState, reason: str, *, attempted: bool = False) -> None:
    """Store what the provider lacks; `attempted`: an attempt found it. Prices of files that are no longer named are withdrawn."""
    unnamed = state.provider == FILE_PROVIDER
    owned = context.store.team_prices() if unnamed else {}
    if state.unconfigured == reason and not attempted and not (unnamed and (state.snapshot or owned)):
        return
    now = context.clock()
    gone = withdrawal_changes(context, FILE_PROVIDER, state.snapshot, now) if unnamed and state.snapshot else ()
    gone_by_team = {team: withdrawal_changes(context, FILE_PROVIDER, has.snapshot, now) for team, has in owned.items()}
    nothing = TeamPriceChanges((), gone_by_team) if owned else None
    new_state = replace(as_configured(context, state), unconfigured=reason, snapshot=None if unnamed else state.snapshot)
    _save_state(context, replace(new_state, attempted_at=now) if attempted else new_state, state, gone, nothing)


def _skip_reason(context: AppContext, provider: Provider, state: ProviderState, payload: Given) -> str | None:
    by_hand = payload.get("by_hand") or payload.get("accept_jumps")
    waits = in_backoff(as_configured(context, state), context.clock()) and not by_hand
    return disabled_reason(context, provider) or (f"left alone until {state.retry_at}, as it failed" if waits else None)


def _fetch_and_save(context: AppContext, provider: Provider, state: ProviderState, payload: Given, step: ReportProgress) -> dict[str, Any]:
    check_credentials(context, provider)
    shipped = load_configured(context, BUILT_IN_PROVIDER).fetch()
    attempt = RefreshAttempt(provider, state, context.clock(), shipped.offers, bool(payload.get("accept_jumps")))
    with wrap_provider_errors(context, provider.name):
        fetched = provider.fetch()
    new_state = _save(context, attempt, _redacted(context, fetched), step)
    counts = {"offers": new_state.offers, "rejected": new_state.rejected_count, "quarantined": new_state.quarantined_count}
    counts |= {"suspicious": new_state.suspicious_count} if provider.name == FILE_PROVIDER else {}
    warnings = [*new_state.warnings, *_unread_warnings(new_state, state)]
    warned = {"warnings": warnings} if warnings else {}
    return {"provider": provider.name, "snapshot": new_state.snapshot, "new": new_state.snapshot != state.snapshot, **counts, **warned}


def _unread_warnings(new_state: ProviderState, before: ProviderState) -> list[str]:
    """Errors of unreadable price files where others were read; logged as a warning once."""
    if new_state.last_error is None:
        return []
    level = logging.INFO if new_state.last_error == before.last_error else logging.WARNING
    log.log(level, "the last good prices of files that cannot be read stay: %s", new_state.last_error)
    return [new_state.last_error]


def _redacted(context: AppContext, fetched: Fetched) -> Fetched:
    rejected, unread = (
        tuple(replace(row, reason=redact_credentials(context, row.reason)) for row in rows) for rows in (fetched.rejected, fetched.unread)
    )
    return replace(fetched, rejected=rejected, unread=unread, teams={team: _redacted(context, own) for team, own in fetched.teams.items()})


def _save(context: AppContext, attempt: RefreshAttempt, fetched: Fetched, step: ReportProgress) -> ProviderState:
    """State after an answer. An answer overtaken by another one is void, unless the operator accepts it."""
    try:
        return save_fetched(context, attempt, fetched, step)
    except StaleWriteError:
        if not attempt.accept_jumps:
            raise
        return save_fetched(context, replace(attempt, state=context.store.provider_state(attempt.provider.name)), fetched, step)


def _save_state(
    context: AppContext, new_state: ProviderState, since: ProviderState, gone: Sequence[Given] = (), owned: TeamPriceChanges | None = None
) -> None:
    """Store a state without an answer, unless an answer was stored meanwhile."""
    try:
        context.store.save_state(new_state, context.clock(), gone, since=since, owned=owned)
    except StaleWriteError as error:
        log.info("not noted: %s", error)


def _save_failure(context: AppContext, state: ProviderState, error: str) -> None:
    known, now = as_configured(context, state), context.clock()
    failures = known.failures + 1
    note = ", its last good prices stay" if state.snapshot else ""
    log.log(logging.WARNING if failures == 1 else logging.INFO, "%s failed%s: %s", state.provider, note, error)
    new_state = replace(known, attempted_at=now, failures=failures, last_error=error, last_error_at=now, unconfigured=None)
    _save_state(context, replace(new_state, retry_at=now + backoff(state.provider, failures)), state)


def _fetchable(context: AppContext, names: Iterable[str]) -> Iterator[tuple[str, datetime | None]]:
    """Providers that can be fetched, and when they are due (None: at once)."""
    known = context.store.provider_states()
    for name in names:
        state = known.get(name, ProviderState(name))
        try:
            provider = load_configured(context, name)
            if not disabled_reason(context, provider):
                check_credentials(context, provider)
                yield name, due_at(as_configured(context, state), provider, context.clock())
        except NotConfigured as error:
            save_unconfigured(context, state, str(error))
        except ProviderError as error:
            _save_failure(context, state, str(error))
