"""What the tests of resolving a request look at: what was noted, and where a problem points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.domain.errors import DomainError, InvalidRequest
from service.usecases.resolution.assumption_log import AssumptionLog


def noted(notes: AssumptionLog) -> dict[str, Any]:
    """What was assumed; every note has a source."""
    assert all(note.source for note in notes.assumptions)
    return {note.field: note.value for note in notes.assumptions}


def pointer_of(call: Callable[[], object], kind: type[DomainError] = InvalidRequest) -> str:
    with pytest.raises(kind) as caught:
        call()
    return caught.value.pointer
