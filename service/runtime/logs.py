"""Logs as JSON: one object a line, each with the request's id."""

from __future__ import annotations

import json
import logging
import logging.config
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str] = ContextVar("request_id", default="")

_ENCODE = json.JSONEncoder(default=str, separators=(",", ":")).encode


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, `request_id`, then what the record carries as `extra={"fields": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; line breaks are escaped, so that input cannot forge a line."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            entry["request_id"] = current
        entry.update(getattr(record, "fields", ()))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return _ENCODE(entry)


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
            "gunicorn.access": {"level": "WARNING", "handlers": [], "propagate": True},
        },
    }


def configure(level: str = "INFO") -> None:
    """Configure logging once; existing handlers (gunicorn, a test) stay."""
    if not logging.getLogger().handlers:
        logging.config.dictConfig(config(level))
