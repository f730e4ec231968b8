"""Sessions of browsers: begun with an API key, ended by their holder, with the key, or after twelve hours."""

from __future__ import annotations

import secrets
from datetime import timedelta

from service.context import AppContext
from service.domain.teams import Principal
from service.domain.web_sessions import WebSession
from service.usecases.keys import AuthenticationError, Authenticator, hash_secret

LONGEST = timedelta(hours=12)
"""A working day: who signs in in the morning is signed out at night."""
_TOKEN_BYTES = 32


def begin_session(context: AppContext, authenticator: Authenticator, api_key: str) -> tuple[WebSession, str]:
    """A new session with the scopes of an API key, and its token, which cannot be read later.

    Raises AuthenticationError for a key that is not good, and StoreUnavailable.
    """
    who = authenticator.admit(api_key)
    if who.key is None:
        raise AuthenticationError("This service has no API keys yet, so there is nothing to sign in with.", shown=True)
    return store_session(context, who.key)


def store_session(context: AppContext, key: str) -> tuple[WebSession, str]:
    """A new session with a key, and its token, which cannot be read later. Raises StoreUnavailable."""
    now, token = context.clock(), secrets.token_urlsafe(_TOKEN_BYTES)
    session = WebSession(hash_secret(token), key, now, now + LONGEST)
    context.store.create_web_session(session)
    return session, token


def principal_of(context: AppContext, authenticator: Authenticator, token: str) -> Principal:
    """On whose behalf a session's requests are made. Raises AuthenticationError where it or its key has ended, and StoreUnavailable."""
    session = context.store.web_session(hash_secret(token), context.clock())
    if session is None:
        raise AuthenticationError("You were signed out.", shown=True)
    return authenticator.admit_key(session.key)


def end_session(context: AppContext, token: str) -> None:
    """End a session; one that has ended already is no error."""
    context.store.delete_web_session(hash_secret(token))


def end_sessions_of(context: AppContext, who: Principal) -> int:
    """End all sessions that were begun with the principal's key, on every device; returns their number."""
    return context.store.delete_web_sessions(who.key) if who.key else 0
