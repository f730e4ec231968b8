"""Access to providers: loading, credentials, backoff. Any error that a provider's code raises becomes one ProviderError."""

from __future__ import annotations

import hashlib
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from providers.error_text import MIN_SECRET_CHARS, redact
from providers.offer import Provider, ProviderError
from providers.registry import UnknownProvider
from service.context import AppContext
from service.prices.book import BUILT_IN_PROVIDER
from service.prices.precedence import FILE_PROVIDER
from service.store import ProviderState
from service.store.database import sanitize_text

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=2), timedelta(hours=1)
"""Pause after a failure, doubled with each consecutive one."""
EARLY_SHARE = 0.2
"""Refreshes and retries are up to a fifth early, by another share for each provider, so that they do not coincide."""
FILES_VARIABLE = "OUTLAY_PRICE_FILES"
FILES_EVERY = timedelta(minutes=10)
"""Time until edits of a price file show [s]."""
CREDENTIAL = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
"""Names of environment variables with secret values."""


class NotConfigured(Exception):
    """The provider lacks what it needs to be fetched; this is no failure."""


@contextmanager
def wrap_provider_errors(context: AppContext, provider: str) -> Iterator[None]:
    """Context of a provider's own code, possibly of another package: any error becomes a ProviderError.

    A missing package is NotConfigured. No message that leaves here contains a credential.
    """
    try:
        yield
    except (NotConfigured, UnknownProvider):
        raise
    except ProviderError as error:
        if isinstance(error.__cause__, ImportError):
            raise NotConfigured(str(error)) from error
        raise ProviderError(redact_credentials(context, str(error))) from error
    except ImportError as error:
        raise NotConfigured(f"an optional package is missing: {error}") from error
    except Exception as error:
        log.error("provider %s failed in a way of its own: %s", provider, redact_credentials(context, traceback.format_exc()))  # noqa: TRY400
        raise ProviderError(redact_credentials(context, f"{type(error).__name__}: {error}")) from error


def redact_credentials(context: AppContext, text: str) -> str:
    """The text without credentials of the providers' environment, which other libraries' errors may quote, and without lone surrogates,
    which neither a log nor a database accepts.
    """
    env = context.providers.env
    return redact(sanitize_text(text), (value for name, value in env.items() if CREDENTIAL.search(name) and len(value) >= MIN_SECRET_CHARS))


def load_configured(context: AppContext, name: str) -> Provider:
    """The provider of a name. Raises UnknownProvider, NotConfigured, and ProviderError where it cannot be created."""
    with wrap_provider_errors(context, name):
        return context.providers.load(name)


def check_credentials(context: AppContext, provider: Provider) -> None:
    """Raise NotConfigured where a required environment variable is not set."""
    missing = missing_credentials(context, provider)
    if missing:
        raise NotConfigured(f"not set: {', '.join(missing)}")


def missing_credentials(context: AppContext, provider: Provider) -> list[str]:
    """Required environment variables that are not set."""
    return [name for name in provider.credentials if not context.providers.env.get(name)]


def configuration(context: AppContext, name: str) -> str | None:
    """Digest of the files that provider `file` reads; None where it reads none, and for all other providers."""
    paths = context.providers.env.get(FILES_VARIABLE) if name == FILE_PROVIDER else None
    return hashlib.sha256(paths.encode(errors="replace")).hexdigest() if paths else None


def as_configured(context: AppContext, state: ProviderState) -> ProviderState:
    """What of the state still holds: where other files are to be read than at the last attempt, the prices that are served and no more."""
    told_now = configuration(context, state.provider)
    if state.provider != FILE_PROVIDER or (told_now is not None and told_now == state.configuration):
        return state
    fresh = ProviderState(state.provider, configuration=told_now)
    return replace(fresh, snapshot=state.snapshot, offers=state.offers, fresh_for_s=state.fresh_for_s)


def disabled_reason(context: AppContext, provider: Provider) -> str | None:
    """What the settings have against asking the provider: "off", "offline" or nothing."""
    if not context.settings.asks(provider.name) and provider.name != BUILT_IN_PROVIDER:
        return "off"
    return "offline" if context.settings.offline and not provider.local else None


def in_backoff(state: ProviderState, now: datetime) -> bool:
    """Whether the provider failed so lately that it is not asked again yet. A pause longer than any was noted by a clock gone wrong."""
    return state.retry_at is not None and now < state.retry_at <= now + LONGEST_PAUSE


def due_at(state: ProviderState, provider: Provider, now: datetime) -> datetime | None:
    """When it is to be asked next by the clock; None: at once, also where the last answer came in the future.

    Files on this machine are looked at more often than their prices change.
    """
    if state.failures:
        return state.retry_at if in_backoff(state, now) else None
    if state.unconfigured and state.attempted_at:  # found out by asking, as where a package is missing
        return state.attempted_at + LONGEST_PAUSE
    if state.verified_at is None or state.verified_at > now:
        return None
    looked_after = min(provider.fresh_for, FILES_EVERY) if provider.name == FILE_PROVIDER else provider.fresh_for
    return state.verified_at + looked_after * (1 - EARLY_SHARE * _hash_share(provider.name))


def backoff(provider: str, failures: int) -> timedelta:
    """Pause after `failures` consecutive failures."""
    longest: timedelta = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)
    return longest * (1 - EARLY_SHARE * _hash_share(f"{provider} {failures}"))


def _hash_share(text: str) -> float:
    """Number from 0 to 1 that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
