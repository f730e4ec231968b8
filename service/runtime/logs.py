"""Logs as JSON: one object a line, each with what it belongs to (request, key, team, job) and without secrets."""

from __future__ import annotations

import json
import logging
import logging.config
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

HIDDEN = "***"
QUIET_LOGGERS = ("urllib3.connectionpool",)
"""Loggers that at `debug` write whole addresses, which hold secrets for webhooks."""

_bound: ContextVar[Mapping[str, str]] = ContextVar("log_fields")
_secrets: set[str] = set()

_ENCODE = json.JSONEncoder(default=str, separators=(",", ":")).encode


def begin(**fields: str) -> None:
    """Give these fields to every line that this thread writes from now on, in place of earlier ones."""
    _bound.set(fields)


def bind(**fields: str | None) -> None:
    """Add fields to those of this thread's lines; None adds nothing."""
    _bound.set({**bound_fields(), **{name: value for name, value in fields.items() if value is not None}})


@contextmanager
def bound(**fields: str | None) -> Iterator[None]:
    """Context whose lines have these fields besides."""
    before = bound_fields()
    bind(**fields)
    try:
        yield
    finally:
        _bound.set(before)


def bound_fields() -> Mapping[str, str]:
    """The fields of this thread's lines."""
    return _bound.get({})


def hide(secrets: Iterable[str]) -> None:
    """Show these texts as `***` in every line: other libraries' errors may quote them."""
    for secret in secrets:
        _secrets.update({secret, _ENCODE(secret)[1:-1]})


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, the thread's fields, then what the record carries as `extra={"fields": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; line breaks are escaped, so that input cannot forge a line."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update(bound_fields())
        entry.update(getattr(record, "fields", ()))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return _without_secrets(_ENCODE(entry))


def _without_secrets(line: str) -> str:
    for secret in sorted(_secrets, key=len, reverse=True):
        line = line.replace(secret, HIDDEN)
    return line


def config(level: str = "INFO") -> dict[str, Any]:
    """A dictConfig for every process; gunicorn takes it as `logconfig_dict`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "service.runtime.logs.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
        "root": {"level": level, "handlers": ["stderr"]},
        "loggers": {
            "gunicorn.error": {"level": level, "handlers": [], "propagate": True},
            **{name: {"level": "INFO" if level == "DEBUG" else level} for name in QUIET_LOGGERS},
        },
    }


def configure(level: str = "INFO") -> None:
    """Configure logging once; existing handlers (gunicorn, a test) stay."""
    if not logging.getLogger().handlers:
        logging.config.dictConfig(config(level))
