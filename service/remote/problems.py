"""What a running service refuses, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RemoteProblem(Exception):
    """The server refuses a request, or cannot be reached (status 0); `errors` are its entries of pointer and message."""

    def __init__(self, detail: str, status: int = 0, errors: tuple[Mapping[str, Any], ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.errors = errors
