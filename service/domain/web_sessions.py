"""A person's session in a browser: begun with an API key, with that key's scopes, for some hours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WebSession:
    """A session. `digest` is that of its token, which only the browser has; `key` the id of the API key it was begun with."""

    digest: str
    key: str
    created_at: datetime
    expires_at: datetime
