"""API keys: creation and authentication."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from service.context import AppContext
from service.domain.errors import InvalidRequest, NotFound, StoreUnavailable
from service.domain.teams import EVERYBODY, Key, Principal, checked_name, checked_scopes

log = logging.getLogger(__name__)

LAST_USE_S = 300.0
"""Each process notes the use of a key this often at most [s]."""
KEY_CACHE_S = 1.0
"""Time until a revocation, or the first key, is known in every process [s]."""
OUTAGE_KEY_S = 30.0
"""How long a key that was read holds where the database cannot be read [s]: for what needs no database, and nothing else is answered."""
OUTAGE_RETRY_S = 5.0
"""Pause after the database could not be read [s]."""
CACHED_KEYS = 1000
_SECRET_BYTES = 32
_ID_BYTES = 8
_TOKEN = re.compile(r"outlay_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_NO_DIGEST = "0" * 64
_EXPIRES = re.compile(r"([1-9][0-9]{0,4})([hd])")


class AuthenticationError(Exception):
    """The key is missing or invalid; the text gives the reason as far as its holder may know. `shown`: whether a key was sent."""

    def __init__(self, why: str, *, shown: bool) -> None:
        super().__init__(why)
        self.shown = shown


def make_key(context: AppContext, team: str, name: str, scopes: Sequence[str], expires: str) -> tuple[Key, str]:
    """A new key of a team, which is created if needed, and its token, which cannot be read later.

    `expires` is a duration such as 90d or 12h, or never. Raises InvalidRequest.
    """
    now = context.clock()
    checked_name(name, "/name")
    allowed, until = checked_scopes(scopes), parse_expiry(expires, now)
    owner = context.store.team(checked_name(team, "/team"), now)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    key = Key(secrets.token_hex(_ID_BYTES), owner.id, owner.name, name, allowed, now, until, None)
    context.store.create_key(key, hash_secret(secret))
    return key, f"{key.prefix}_{secret}"


def rotate_key(context: AppContext, key_id: str, overlap: str) -> tuple[Key, str, datetime]:
    """A new key in the place of another, for as long as that was made for: the key, its token, and when the earlier one ends.

    Both hold for `overlap`, such as 24h, or for as long as the earlier one has left. Raises InvalidRequest, and NotFound.
    """
    now = context.clock()
    found = context.store.find_key(key_id)
    if found is None:
        raise NotFound(f"there is no key {key_id!r}; `outlay keys list` shows all keys")
    old, _ = found
    if old.is_person:
        raise InvalidRequest(f"{key_id} is a person who signs in with the issuer and has no key that can be rotated")
    if reason := old.invalid_reason(now):
        raise InvalidRequest(f"the key {key_id} {reason}; `outlay keys create` makes a new one")
    until = parse_expiry(overlap, now)
    if until is None:
        raise InvalidRequest("state after how many days or hours the earlier key ends, such as 24h", "/overlap")
    ends = until if old.expires_at is None else min(until, old.expires_at)
    expires_at = None if old.expires_at is None else now + (old.expires_at - old.created_at)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    new = replace(old, id=secrets.token_hex(_ID_BYTES), created_at=now, expires_at=expires_at, last_used_at=None, successor=None)
    context.store.rotate_key(old, new, hash_secret(secret), ends)
    return new, f"{new.prefix}_{secret}", ends


def list_team_keys(context: AppContext, who: Principal) -> tuple[Key, ...]:
    """The keys of the caller's team without their secrets, ended ones too, the oldest first."""
    found = context.store.keys()
    return tuple(key for key in found if key.team == who.team)


def parse_expiry(text: str, now: datetime) -> datetime | None:
    """Expiry of a key created now. Raises InvalidRequest."""
    if text == "never":
        return None
    found = _EXPIRES.fullmatch(text)
    if found is None:
        raise InvalidRequest("state after how many days or hours the key expires, such as 90d or 12h, or state never", "/expires")
    return now + timedelta(**{{"h": "hours", "d": "days"}[found[2]]: int(found[1])})


def hash_secret(secret: str) -> str:
    """Digest of a secret. It is random and long, so a fast hash is sufficient."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Authenticator:
    """Authenticates tokens in one process; cached keys are at most `KEY_CACHE_S` old, `OUTAGE_KEY_S` while the database cannot be read."""

    def __init__(self, context: AppContext, ticks: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._ticks = ticks
        self._needed = context.settings.oidc_issuer is not None
        self._asked = False
        self._ask_again = 0.0
        self._asking = threading.Lock()
        self._noted: dict[str, float] = {}
        self._read: dict[str, tuple[float, tuple[Key, str]]] = {}
        self._find_now = lru_cache(CACHED_KEYS)(self._look_up)

    def needs_keys(self) -> bool:
        """Whether any key exists: then every request needs one.

        While the database is away the last answer holds; raises StoreUnavailable where there was none.
        """
        due = not self._needed and self._ticks() >= self._ask_again
        # one asks, the others go on with what was known: a hung database must not hold every thread
        if due and self._asking.acquire(blocking=not self._asked):
            try:
                self._ask()
            finally:
                self._asking.release()
        return self._needed

    def admit(self, token: str | None) -> Principal:
        """Principal of a token. Raises AuthenticationError, and StoreUnavailable where a key cannot be looked up."""
        if not self.needs_keys():
            return EVERYBODY
        if token is None:
            raise AuthenticationError(
                "This needs an API key: send it in the header Authorization, as Bearer followed by the key.", shown=False
            )
        return self._principal(self._known(token))

    def admit_key(self, key_id: str) -> Principal:
        """Principal of a key whose holder was admitted before. Raises AuthenticationError where it is not good any more."""
        found = self._find(key_id)
        if found is None:
            raise AuthenticationError("This API key is not known.", shown=True)
        return self._principal(found[0])

    def _principal(self, key: Key) -> Principal:
        if reason := key.invalid_reason(self._context.clock()):
            raise AuthenticationError(f"This API key {reason}; `outlay keys create` makes a new one.", shown=True)
        self._note_use(key)
        return Principal(key.team, key.id, key.scopes, key.team_name, key.name)

    def _note_use(self, key: Key) -> None:
        """Store when a key is used, now and then; a request does not fail for it."""
        ticks = self._ticks()
        if ticks - self._noted.get(key.id, -math.inf) < LAST_USE_S:
            return
        self._noted[key.id] = ticks
        try:
            self._context.store.touch_key(key.id, self._context.clock())
        except StoreUnavailable as error:
            log.warning("the use of key %s is not noted: %s", key.id, error)

    def _known(self, token: str) -> Key:
        parts = _TOKEN.fullmatch(token)
        found = self._find(parts[1]) if parts else None
        key, digest = found or (None, _NO_DIGEST)
        good = hmac.compare_digest(digest, hash_secret(parts[2] if parts else ""))
        if key is None or not good:
            raise AuthenticationError("This API key is not known.", shown=True)
        return key

    def _find(self, key_id: str) -> tuple[Key, str] | None:
        """The key of that id and its digest. Raises StoreUnavailable where it cannot be read, nor was in the last `OUTAGE_KEY_S`."""
        ticks = self._ticks()
        try:
            return self._find_now(key_id, int(ticks / KEY_CACHE_S))
        except StoreUnavailable:
            read_at, known = self._read.get(key_id, (-math.inf, None))
            if ticks - read_at > OUTAGE_KEY_S:
                raise
            return known

    def _look_up(self, key_id: str, period: int) -> tuple[Key, str] | None:
        del period  # an entry counts for its period and is never asked for again
        ticks = self._ticks()
        found = self._context.store.find_key(key_id)
        if found is None:
            self._read.pop(key_id, None)
            return None
        if len(self._read) >= CACHED_KEYS:
            self._read.clear()
        self._read[key_id] = ticks, found
        return found

    def _ask(self) -> None:
        wait_s = KEY_CACHE_S
        try:
            self._needed = self._context.store.any_key() or self._needed
            self._asked = True
        except StoreUnavailable:
            if not self._asked:
                raise
            wait_s = OUTAGE_RETRY_S
        self._ask_again = self._ticks() + wait_s
