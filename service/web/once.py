"""Forms that make something once, however often they are sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from secrets import token_hex
from typing import Any

from service.api.http.auth import app_context, principal
from service.domain.idempotency import IdempotencyRecord, StoredResponse

FORM = "form"
"""The hidden field with the id of a form as it was shown."""
CREATED = 201
_FORM = re.compile(r"[0-9a-f]{16,20}")


def form_id() -> str:
    """An id for a form that is shown."""
    return token_hex(8)


def once(sent: Mapping[str, str], names: Iterable[str], body: Callable[[Any], Mapping[str, Any]]) -> IdempotencyRecord:
    """The record with which a form makes something once of what it says: sent again it gets the first `body`. `names`: its fields."""
    form = sent.get(FORM, "")
    digest = hashlib.sha256("\n".join(f"{name}={sent.get(name, '')}" for name in names).encode()).hexdigest()
    key = f"page-{form if _FORM.fullmatch(form) else form_id()}-{digest[:32]}"
    return IdempotencyRecord(principal().team, key, digest, app_context().clock(), lambda made: StoredResponse(CREATED, body(made)))
