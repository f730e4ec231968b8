"""gunicorn's log without a line for each request: the application writes its own."""

from __future__ import annotations

from gunicorn.glogging import Logger  # type: ignore[import-untyped]


class ErrorLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's Logger, which with a `logconfig_dict` gathers every header of a request for an access log, whatever its level is."""

    @property
    def access_log_enabled(self) -> bool:
        """Always False."""
        return False
