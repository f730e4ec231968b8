"""API keys of servers in the user's configuration directory: a file that only the user can read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from service.remote.transport import Server, checked_url

SERVER_VARIABLE, KEY_VARIABLE = "OUTLAY_SERVER", "OUTLAY_API_KEY"
OTHERS = 0o077
"""Permissions of anybody but the owner."""


class BadCredentials(Exception):
    """The file of keys cannot be used; says why and what to do."""


def credentials_file(environment: Mapping[str, str]) -> Path:
    """The file of keys, below XDG_CONFIG_HOME or ~/.config."""
    above = environment.get("XDG_CONFIG_HOME")
    return (Path(above) if above else Path.home() / ".config") / "outlay" / "credentials.json"


def find_server(url: str, key: str | None, environment: Mapping[str, str]) -> Server:
    """The server with the key that is stated, else the one kept for it. Raises ValueError and BadCredentials."""
    address = checked_url(url)
    return Server(address, key or environment.get(KEY_VARIABLE) or read_keys(credentials_file(environment)).get(address))


def read_keys(file: Path) -> dict[str, str]:
    """Keys by the address of their server. Raises BadCredentials where others may read the file, or it is damaged."""
    try:
        if file.stat().st_mode & OTHERS:
            raise BadCredentials(f"{file} can be read by others: `chmod 600 {file}`, and replace its keys if others use this machine")
        keys = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadCredentials(f"{file} cannot be read: {error}; delete it and use `outlay login` again") from error
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise BadCredentials(f"{file} holds no keys by server; delete it and use `outlay login` again")
    return keys


def keep_key(file: Path, url: str, key: str | None) -> None:
    """Keep the key of a server, or forget it where None; the file is replaced as a whole. Raises BadCredentials."""
    others = {name: kept for name, kept in read_keys(file).items() if name != url}
    keys = others if key is None else others | {url: key}
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes the file with mode 0600, so that the key is never readable by others.
        number, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(number, "w", encoding="utf-8") as part:
            json.dump(keys, part, indent=1)
        Path(name).replace(file)
    except OSError as error:
        raise BadCredentials(f"{file} cannot be written: {error.strerror}") from error
