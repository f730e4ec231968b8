"""Sealing of secrets before they are stored: webhooks' addresses and secrets, Slack's addresses, remembered answers.

A sealed text is `sealed:` and a Fernet token. Texts without the prefix are those that releases before this one stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain.errors import SecretsUnavailable

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

PREFIX = "sealed:"


@dataclass(frozen=True, slots=True)
class SecretKeys:
    """Where the keys are: `read` returns them, the newest first, `make_first` makes one; `place` names them in errors."""

    place: str
    read: Callable[[], tuple[str, ...]]
    make_first: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Sealing:
    """How a response that holds a secret is stored and read."""

    seal: Callable[[str], str]
    open: Callable[[str], str]


class SecretBox:
    """Seals and opens texts; reads the keys when they are first needed, and anew where they do not open a text."""

    def __init__(self, keys: SecretKeys) -> None:
        self._keys = keys
        self._fernet: MultiFernet | None = None

    def make_first_key(self) -> None:
        """Make a key where there is none. Raises SecretsUnavailable."""
        try:
            self._keys.make_first()
        except OSError as error:
            raise SecretsUnavailable(f"the key of stored secrets cannot be written, {self._keys.place}: {error}") from error

    def seal(self, text: str) -> str:
        """The sealed text, under the newest key that this process knows. Raises SecretsUnavailable."""
        return PREFIX + self._known().encrypt(text.encode()).decode()

    def open(self, stored: str) -> str:
        """The text of what is stored, sealed or not. Raises SecretsUnavailable where no key opens it."""
        if not stored.startswith(PREFIX):
            return stored
        token = stored.removeprefix(PREFIX)
        text = self._decrypted(token)
        if text is None:
            self._fernet = None  # another process may have rotated the keys
            text = self._decrypted(token)
        if text is None:
            raise SecretsUnavailable(
                f"the key of stored secrets is not the one that they were sealed with: {self._keys.place}; put the right one there"
            )
        return text

    def _decrypted(self, token: str) -> str | None:
        from cryptography.fernet import InvalidToken

        try:
            return self._known().decrypt(token).decode()
        except InvalidToken:
            return None

    def seal_plain(self, stored: str) -> str:
        """What is stored, sealed if it is not. Raises SecretsUnavailable."""
        return stored if stored.startswith(PREFIX) else self.seal(stored)

    def reseal(self, stored: str) -> str:
        """The same text sealed under the newest key. Raises SecretsUnavailable."""
        text = self.open(stored)
        self._fernet = None
        return self.seal(text)

    def _known(self) -> MultiFernet:
        if self._fernet is None:
            self._fernet = self._read()
        return self._fernet

    def _read(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet

        try:
            keys = self._keys.read()
            if keys:
                return MultiFernet([Fernet(key) for key in keys])
        except (OSError, ValueError) as error:
            raise SecretsUnavailable(f"the key of stored secrets cannot be read, {self._keys.place}: {error}") from error
        raise SecretsUnavailable(
            f"the key of stored secrets is missing: {self._keys.place}; copy it from the installation that stored them"
        )
