"""Keys that end, scopes that do not include each other, names that can be written anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.domain.errors import InvalidRequest
from service.domain.teams import EVERYBODY, SCOPES, Key, Principal, checked_name, checked_scopes

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
KEY = Key("00ff00ff00ff00ff", "t", "vision", "ci", ("read",), NOW, NOW + timedelta(days=90), None)


def test_a_key_is_good_until_it_expires_or_is_revoked() -> None:
    """At the very moment it expires it is no good any more; a revocation counts from when it was made."""
    assert KEY.invalid_reason(NOW) == ""
    assert KEY.invalid_reason(NOW + timedelta(days=90, microseconds=-1)) == ""
    assert KEY.invalid_reason(NOW + timedelta(days=90)) == "expired at 2027-04-04 12:00 UTC"
    assert replace(KEY, expires_at=None).invalid_reason(NOW + timedelta(days=9000)) == ""
    assert replace(KEY, revoked_at=NOW).invalid_reason(NOW) == "was revoked at 2027-01-04 12:00 UTC"


def test_no_scope_includes_another() -> None:
    """A training script's key may write and see nothing; without keys everybody may do everything."""
    script = Principal("t", "k", ("write",))
    assert [script.may(scope) for scope in SCOPES] == [False, True, False]
    assert all(EVERYBODY.may(scope) for scope in SCOPES)


def test_scopes_are_read_in_any_order() -> None:
    """They come back in the usual one, each once."""
    assert checked_scopes(["write", "read", "write"]) == ("read", "write")


@pytest.mark.parametrize("words", [[], ["reed"], ["read", "*"]])
def test_what_is_no_scope_is_refused(words: list[str]) -> None:
    """With the list of those there are."""
    with pytest.raises(InvalidRequest, match="read, write, admin"):
        checked_scopes(words)


@pytest.mark.parametrize("name", ["", " a", "-a", "a\nb", "a\0", "é", "x" * 101, "a/b", "a,b"])
def test_names_that_could_be_mistaken_are_refused(name: str) -> None:
    """A name stands in lists, logs and commands."""
    with pytest.raises(InvalidRequest, match="starts with a letter or a digit"):
        checked_name(name, "/team")


@pytest.mark.parametrize("name", ["a", "Vision team 7", "ada@example.org", "x" * 100])
def test_usual_names_are_taken(name: str) -> None:
    """As they are."""
    assert checked_name(name, "/team") == name
