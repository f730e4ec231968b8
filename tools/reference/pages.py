"""The pages by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from service.config import markdown_table as settings_table
from service.domain.metrics import COUNTED, KEYED_READINGS, OPEN_READINGS
from service.domain.metrics import markdown_table as metrics_table
from service.domain.tracking.events import API_NAMES, EVENT_FIELDS
from service.schemas.tracking.events import EventSchema
from tools.reference import commands, data_files, operations
from tools.reference.tables import table

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def settings_page() -> str:
    """All settings."""
    return (
        "# Settings\n\nThe service reads these variables when it starts. None is required. `outlay doctor` checks them.\n\n"
        + settings_table()
        + "\nWith `OUTLAY_REDIS_URL` and `OUTLAY_DATABASE_URL` set, the same code uses Redis and PostgreSQL"
        " ([running in production](../how-to/deployment.md)).\nTeams' budgets are explained under [limits](limits.md), price files under"
        " [price providers](providers.md).\n"
    )


def metrics_page() -> str:
    """All metrics, by where they come from."""
    return (
        "# Metrics\n\nWhat `GET /metrics` shows to Prometheus. Dashboards and alerts are under [monitoring](observability.md).\n\n"
        "## Counted by processes\n\nSummed over the processes of a machine. Counters go on when a process is replaced.\n\n"
        + metrics_table(COUNTED)
        + "\n## Read from the machine, the database and the price sources\n\n"
        + metrics_table(OPEN_READINGS)
        + "\n## Programs and teams\n\nOnly with the key in `OUTLAY_METRICS_KEY`.\n\n"
        + metrics_table(KEYED_READINGS)
    )


def events_page() -> str:
    """Types of events with their fields, then the fields."""
    types = ((f"`{name}`", _names(of.required) or _any(of.any_of), _names(of.takes)) for name, of in EVENT_FIELDS.items())
    fields = ((f"`{name}`", str(field.metadata.get("description", ""))) for name, field in EventSchema().fields.items())
    return (
        "# Events\n\nWhat a tracked run can report to `POST /v1/track/runs/{run_id}/events`. For examples, see [tracking](tracking.md) and"
        " [the client for training scripts](tracking-client.md).\nEvery event has `id`, `type` and `at`.\n\n"
        + table(("type", "needs", "takes"), types)
        + "\n## Fields\n\n"
        + table(("field", "meaning"), fields)
    )


def _names(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{API_NAMES.get(name, name)}`" for name in fields)


def _any(fields: tuple[str, ...]) -> str:
    return "at least one of these" if fields else "nothing"


PAGES: Mapping[str, Callable[[], str]] = {
    "http": operations.page,
    "commands": commands.page,
    "settings": settings_page,
    "metrics": metrics_page,
    "events": events_page,
    "data": data_files.page,
}
"""By a page's name in FOLDER what it should say."""
