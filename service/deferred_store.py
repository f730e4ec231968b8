"""The store of a process that may need no database: its library takes a quarter of a second to import."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.domain.price_books import EMPTY_MANIFEST, BookManifest
from service.domain.tracking.feedback import RunOutcome

if TYPE_CHECKING:
    from service.store import Store


class DeferredStore:
    """A store that is imported and made with its first statement; an SQLite file that does not exist has no prices and no runs."""

    def __init__(self, database_url: str, make: Callable[[], Store]) -> None:
        self._database_url, self._make = database_url, make
        self._making = threading.Lock()
        self._store: Store | None = None

    def absent(self) -> bool:
        """Whether this is an SQLite file that does not exist."""
        scheme, _, path = self._database_url.partition(":///")
        return scheme.startswith("sqlite") and not Path(path).exists()

    def current_manifest(self) -> BookManifest:
        """The newest book with its parts."""
        return EMPTY_MANIFEST if self.absent() else self._made().current_manifest()

    def run_outcomes(self, team: str) -> tuple[RunOutcome, ...]:
        """Outcomes of a team, newest first."""
        return () if self.absent() else self._made().run_outcomes(team)

    def close(self) -> None:
        """Close every pooled connection."""
        if self._store is not None:
            self._store.close()

    def __getattr__(self, name: str) -> Any:
        """Any other statement."""
        return getattr(self._made(), name)

    def _made(self) -> Store:
        with self._making:
            if self._store is None:
                self._store = self._make()
            return self._store
