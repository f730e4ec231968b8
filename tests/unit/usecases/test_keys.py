"""Making keys, and the door: what a process knows of keys, for how long, and what it does when it cannot know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest, StoreUnavailable
from service.domain.teams import EVERYBODY
from service.store.tables import api_keys
from service.usecases.keys import KEY_CACHE_S, OUTAGE_KEY_S, OUTAGE_RETRY_S, AuthenticationError, Authenticator, hash_secret, make_key


@pytest.fixture
def context(settings: Settings) -> Iterator[AppContext]:
    """A context on a migrated database."""
    settings.data_dir.mkdir()
    made = build_context(settings)
    made.store.migrate()
    yield made
    made.store.close()


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock in the test's hands."""
    return Clock()


@pytest.fixture
def door(context: AppContext, clock: Clock) -> Authenticator:
    """A process that has just started."""
    return Authenticator(context, clock)


def token_of(context: AppContext, expires: str = "90d") -> str:
    """A new key's token."""
    return make_key(context, "vision", "ci", ["read"], expires)[1]


def away(*_: object) -> Any:
    """A database out of reach."""
    raise StoreUnavailable("out of reach")


def test_a_token_holds_256_random_bits(context: AppContext) -> None:
    """And the key's id, so that it can be looked up and found in a leak; of the secret only the digest is kept."""
    key, token = make_key(context, "vision", "ci", ["write", "read"], "90d")
    found = re.fullmatch(r"outlay_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", token)
    assert found is not None
    kept = context.store.find_key(found[1])
    assert kept == (key, hash_secret(found[2]))
    assert key.scopes == ("read", "write")
    assert token_of(context) != token


@pytest.mark.parametrize(("text", "lasts"), [("90d", timedelta(days=90)), ("12h", timedelta(hours=12)), ("never", None)])
def test_a_key_lasts_as_long_as_was_said(context: AppContext, text: str, lasts: timedelta | None) -> None:
    """In days, in hours, or without end."""
    key, _ = make_key(context, "vision", "ci", ["read"], text)
    assert key.expires_at == (None if lasts is None else key.created_at + lasts)


@pytest.mark.parametrize("text", ["", "0d", "-1d", "90", "1y", "1.5d", "100000d", "٣d"])
def test_what_is_no_time_is_refused(context: AppContext, text: str) -> None:
    """And no team is made on the way."""
    with pytest.raises(InvalidRequest, match="such as 90d"):
        make_key(context, "vision", "ci", ["read"], text)
    assert not context.store.any_key()


def test_whoever_has_the_token_comes_for_its_team(context: AppContext, door: Authenticator) -> None:
    """With the key's scopes."""
    key, token = make_key(context, "vision", "ci", ["read"], "90d")
    found = door.admit(token)
    assert (found.team, found.key, found.scopes) == (key.team, key.id, ("read",))


def test_a_revocation_is_seen_within_a_second(context: AppContext, door: Authenticator, clock: Clock) -> None:
    """By a process that has just used the key."""
    token = token_of(context)
    door.admit(token)
    context.store.revoke_key(token.split("_")[1], context.clock())
    clock.now += KEY_CACHE_S
    with pytest.raises(AuthenticationError, match="was revoked"):
        door.admit(token)


def test_an_expiry_is_seen_at_once(context: AppContext, clock: Clock) -> None:
    """Though what is known of the key is not read again."""
    token = token_of(context, "1h")
    now = [context.clock()]
    door = Authenticator(replace(context, clock=lambda: now[0]), clock)
    door.admit(token)
    now[0] += timedelta(hours=1)
    with pytest.raises(AuthenticationError, match="expired"):
        door.admit(token)


def test_the_first_key_closes_the_door_within_a_second(context: AppContext, door: Authenticator, clock: Clock) -> None:
    """Of a process that has just let somebody in without."""
    assert door.admit(None) == EVERYBODY
    token = token_of(context)
    clock.now += KEY_CACHE_S
    with pytest.raises(AuthenticationError, match="needs an API key"):
        door.admit(None)
    assert door.admit(token).team != EVERYBODY.team


def test_the_door_stays_closed_when_no_key_is_good(context: AppContext, door: Authenticator, clock: Clock) -> None:
    """Revoking the last key opens nothing, in a new process neither."""
    context.store.revoke_key(token_of(context).split("_")[1], context.clock())
    for each in (door, Authenticator(context, clock)):
        with pytest.raises(AuthenticationError):
            each.admit(None)


def test_while_the_database_is_away_the_door_is_as_it_was(context: AppContext, door: Authenticator, clock: Clock) -> None:
    """Open where it was known to be; the database is asked again after a while, not at every request."""
    door.admit(None)
    asked: list[int] = []
    context.store.any_key = lambda: asked.append(1) or away()  # type: ignore[method-assign]
    clock.now += KEY_CACHE_S
    assert [door.admit(None) for _ in range(9)] == 9 * [EVERYBODY]
    assert len(asked) == 1
    clock.now += OUTAGE_RETRY_S
    assert door.admit(None) == EVERYBODY
    assert len(asked) == 2


def test_nobody_comes_in_while_nothing_is_known(context: AppContext, door: Authenticator) -> None:
    """A process that started without its database does not know whether there are keys."""
    context.store.any_key = away  # type: ignore[method-assign]
    for token in (None, "outlay_x", None):
        with pytest.raises(StoreUnavailable):
            door.admit(token)


def test_a_key_that_cannot_be_looked_up_opens_nothing(context: AppContext, door: Authenticator) -> None:
    """It might be revoked."""
    token = token_of(context)
    context.store.find_key = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        door.admit(token)


def test_a_key_that_was_read_holds_for_half_a_minute_of_an_outage(context: AppContext, door: Authenticator, clock: Clock) -> None:
    """From when it was read last, and with its secret only: then it might be revoked, and opens nothing."""
    token = token_of(context)
    known = door.admit(token)
    context.store.find_key = away  # type: ignore[method-assign]
    clock.now += OUTAGE_KEY_S
    assert door.admit(token) == known
    with pytest.raises(AuthenticationError, match="not known"):
        door.admit(f"{token[:-9]}{'x' * 9}")
    clock.now += KEY_CACHE_S
    with pytest.raises(StoreUnavailable):
        door.admit(token)


def test_a_key_seen_revoked_opens_nothing_in_an_outage(context: AppContext, door: Authenticator, clock: Clock) -> None:
    """Nor one that has expired meanwhile, nor one that is no longer there."""
    revoked, gone = token_of(context), token_of(context)
    for token in (revoked, gone):
        door.admit(token)
    context.store.revoke_key(revoked.split("_")[1], context.clock())
    with context.store.engine.begin() as connection:
        connection.execute(delete(api_keys).where(api_keys.c.id == gone.split("_")[1]))
    for outage in (False, True):
        clock.now += KEY_CACHE_S
        if outage:
            context.store.find_key = away  # type: ignore[method-assign]
        with pytest.raises(AuthenticationError, match="was revoked"):
            door.admit(revoked)
        with pytest.raises((AuthenticationError, StoreUnavailable)):
            door.admit(gone)
