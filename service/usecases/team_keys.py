"""API keys of a team, made, rotated and revoked by its administrators: no key gives more than it may itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from service.context import AppContext
from service.domain.errors import InvalidRequest, NotFound
from service.domain.teams import Key, Principal, Scope, checked_scopes
from service.usecases.keys import list_team_keys, make_key, rotate_key

MAX_KEYS = 200
"""Keys of a team that are good at a time, as far as its administrators make them."""


def make_team_key(context: AppContext, who: Principal, name: str, scopes: Sequence[str], expires: str) -> tuple[Key, str]:
    """A new key of the caller's team, and its token, which cannot be read later.

    Raises InvalidRequest, also for a name that a good key of the team has: a form that is sent twice makes one key.
    """
    _check_has_key(who)
    _check_within(who, checked_scopes(scopes), "/scopes")
    good = [key for key in list_team_keys(context, who) if not key.invalid_reason(context.clock())]
    if any(key.name == name for key in good):
        raise InvalidRequest("a valid key of the team already has this name; choose another name, or rotate that key", "/name")
    if sum(not key.is_person for key in good) >= MAX_KEYS:
        raise InvalidRequest(f"the team has {MAX_KEYS} valid keys, the most that it may have; revoke one first")
    return make_key(context, who.team_name, name, scopes, expires)


def rotate_team_key(context: AppContext, who: Principal, key_id: str, overlap: str) -> tuple[Key, str, datetime]:
    """A new key in the place of one of the caller's team: the key, its token, and when the earlier one ends.

    Raises NotFound, also for keys of other teams, and InvalidRequest.
    """
    old = find_team_key(context, who, key_id)
    _check_within(who, old.scopes, "")
    if old.successor is not None:
        raise InvalidRequest(f"the key {old.prefix} was already rotated; rotate the key that replaced it")
    return rotate_key(context, old.id, overlap)


def revoke_team_key(context: AppContext, who: Principal, key_id: str) -> None:
    """End a key of the caller's team, within a second in every process. Raises NotFound, also for keys of other teams."""
    context.store.revoke_key(find_team_key(context, who, key_id).id, context.clock())


def find_team_key(context: AppContext, who: Principal, key_id: str) -> Key:
    """The key of that id, of the caller's team. Raises NotFound."""
    found = context.store.find_key(key_id)
    if found is None or found[0].team != who.team:
        raise NotFound("the team has no key with this id")
    return found[0]


def _check_has_key(who: Principal) -> None:
    if who.key is None:
        raise InvalidRequest("make the first key on the machine of the service, with `outlay keys create`")


def _check_within(who: Principal, scopes: Collection[Scope], pointer: str) -> None:
    """Raises InvalidRequest for scopes that the caller does not have: whoever may make keys must not gain by it."""
    if beyond := [scope for scope in scopes if not who.may(scope)]:
        raise InvalidRequest(f"your own key does not have the scope {', '.join(beyond)}, so it cannot give it to another key", pointer)
