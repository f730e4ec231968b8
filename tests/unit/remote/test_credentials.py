"""Kept API keys: for the user alone, one a server, and the one that is stated wins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.remote.credentials import BadCredentials, credentials_file, find_server, keep_key, read_keys
from service.remote.transport import checked_url

URL = "https://outlay.example.com"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A user's configuration directory."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_a_key_is_kept_for_its_server_and_its_owner_alone(environment: dict[str, str]) -> None:
    """File 0600 in a directory 0700, and no rest of the file that was replaced."""
    file = credentials_file(environment)
    keep_key(file, URL, "first")
    keep_key(file, "https://other.example.com", "second")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert find_server(f"{URL}/", None, environment).key == "first"
    assert find_server("https://third.example.com", None, environment).key is None


def test_the_stated_key_wins_then_that_of_the_environment(environment: dict[str, str]) -> None:
    """Flag, variable, file, in this order."""
    keep_key(credentials_file(environment), URL, "kept")
    assert find_server(URL, None, {**environment, "OUTLAY_API_KEY": "variable"}).key == "variable"
    assert find_server(URL, "flag", {**environment, "OUTLAY_API_KEY": "variable"}).key == "flag"


def test_a_forgotten_key_is_gone_and_the_others_stay(environment: dict[str, str]) -> None:
    """`outlay logout`."""
    file = credentials_file(environment)
    keep_key(file, URL, "first")
    keep_key(file, "https://other.example.com", "second")
    keep_key(file, URL, None)
    assert read_keys(file) == {"https://other.example.com": "second"}


def test_a_file_that_others_can_read_is_refused(environment: dict[str, str]) -> None:
    """As ssh refuses such a key."""
    file = credentials_file(environment)
    keep_key(file, URL, "first")
    file.chmod(0o640)
    with pytest.raises(BadCredentials, match="chmod 600"):
        read_keys(file)


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({URL: 3})])
def test_a_damaged_file_is_named(environment: dict[str, str], content: str) -> None:
    """With what to do."""
    file = credentials_file(environment)
    keep_key(file, URL, "first")
    file.write_text(content, encoding="utf-8")
    with pytest.raises(BadCredentials, match="outlay login"):
        read_keys(file)


@pytest.mark.parametrize(
    "url", ["outlay.example.com", "ftp://x", "https://", "https://me:secret@x", "https://x/?a=1", "file:///etc/passwd"]
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    """Also an address with a password in it, which would be shown in errors."""
    with pytest.raises(ValueError, match="address of a server"):
        checked_url(url)


def test_a_server_does_not_show_its_key(environment: dict[str, str]) -> None:
    """In tracebacks and logs."""
    assert "secret" not in repr(find_server(URL, "secret", environment))
