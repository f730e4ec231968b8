"""Tables in SQLAlchemy Core: jobs, prices, teams, and shared column types.

Tables of tracking, scenarios and results are in the `tables.py` of their packages; the package loads them all. A change needs a file in
`migrations/versions` and a new `HEAD`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
)

HEAD = "0017"
"""The newest migration, checked by `Store.check_head` without loading Alembic. A test compares it with the files."""


class UtcTime(TypeDecorator[datetime]):
    """A time with zone: stored and returned in UTC, refused without zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class ExactDecimal(TypeDecorator[Decimal]):
    """An exact decimal, stored as text: SQLite has no decimals, and cloud prices have up to nine places."""

    LENGTH = 40
    impl = String(LENGTH)
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> str | None:
        del dialect
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Decimal | None:
        del dialect
        return None if value is None else Decimal(value)


def length_of(column: Column[Any]) -> int:
    """Maximum number of characters of a text column. Raises TypeError for another kind of column."""
    length = getattr(column.type, "length", None)
    if not isinstance(length, int):
        raise TypeError(f"{column.name} has no length")
    return length


metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("handed_back", Integer, nullable=False),
    Column("lease_owner", String(200)),
    Column("lease_expires_at", UtcTime),
    Column("cancel_requested", Boolean(create_constraint=False), nullable=False),
    Column("progress_done", Integer, nullable=False),
    Column("progress_total", Integer, nullable=False),
    Column("result", JSON(none_as_null=True)),
    Column("error", String(2000)),
    Column("sent_at", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("dedup_key", String(200)),  # what only one open job may be about; null once the job is over
    Index("jobs_dedup_key", "dedup_key", unique=True),
    Index("jobs_by_state", "state", "lease_expires_at"),
    Index("jobs_by_kind", "kind", "created_at"),
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("worker", String(200), primary_key=True),
    Column("at", UtcTime, nullable=False),
)

price_snapshots = Table(
    "price_snapshots",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("provider", String(64), nullable=False),
    Column("taken_at", UtcTime, nullable=False),
    Column("offer_count", Integer, nullable=False),
    Column("complete", Boolean(create_constraint=False), nullable=False),
    Column("discounts", JSON(none_as_null=True)),
    Column("team", String(200)),  # name of the only team that sees the prices; null: all teams
    Index("price_snapshots_by_provider", "provider", "taken_at"),
)


def _offer_columns() -> tuple[Column[Any], ...]:
    """Columns of an offer but its price."""
    return (
        Column("provider", String(64), nullable=False),
        Column("region", String(200), nullable=False),
        Column("instance_type", String(200), nullable=False),
        Column("accelerator", String(200), nullable=False),
        Column("accelerator_count", Integer, nullable=False),
        Column("pricing", String(32), nullable=False),
        Column("market", String(32), nullable=False),
        Column("availability", String(32), nullable=False),
        Column("observed_at", UtcTime, nullable=False),
        Column("source", String(500), nullable=False),
    )


offers = Table(
    "offers",
    metadata,
    Column("snapshot", String(200), ForeignKey("price_snapshots.name", ondelete="CASCADE"), primary_key=True),
    Column("row", Integer, primary_key=True),
    *_offer_columns(),
    Column("usd_per_hour", ExactDecimal, nullable=False),
    Column("extras", JSON, nullable=False),
    Column("available_since", UtcTime),
    Column("terms", JSON(none_as_null=True)),
)

provider_states = Table(
    "provider_states",
    metadata,
    Column("provider", String(64), primary_key=True),
    Column("snapshot", String(200)),
    Column("fresh_for_s", Integer),
    Column("verified_at", UtcTime),
    Column("attempted_at", UtcTime),
    Column("failures", Integer, nullable=False),
    Column("last_error", String(2000)),
    Column("last_error_at", UtcTime),
    Column("retry_at", UtcTime),
    Column("unconfigured", String(500)),
    Column("offers", Integer, nullable=False),
    Column("rejected_count", Integer, nullable=False),
    Column("rejected", JSON, nullable=False),
    Column("skipped", JSON, nullable=False),
    Column("quarantined_count", Integer, nullable=False),
    Column("quarantined", JSON, nullable=False),
    Column("suspicious_count", Integer, nullable=False),
    Column("suspicious", JSON, nullable=False),
    Column("warnings", JSON, nullable=False),
    Column("configuration", String(64)),
)

price_books = Table(
    "price_books",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("seq", Integer, nullable=False, unique=True),
    Column("made_at", UtcTime, nullable=False),
)

price_book_parts = Table(
    "price_book_parts",
    metadata,
    Column("book", String(200), ForeignKey("price_books.name", ondelete="CASCADE"), primary_key=True),
    Column("provider", String(64), primary_key=True),
    Column("snapshot", String(200), ForeignKey("price_snapshots.name"), nullable=False),
)

team_prices = Table(
    "team_prices",
    metadata,
    Column("team", String(200), primary_key=True),  # its name: a book may be there before the team
    Column("snapshot", String(200), ForeignKey("price_snapshots.name"), nullable=False),
    Column("offers", Integer, nullable=False),
    Column("rejected_count", Integer, nullable=False),
    Column("rejected", JSON, nullable=False),
    Column("suspicious_count", Integer, nullable=False),
    Column("suspicious", JSON, nullable=False),
    Column("warnings", JSON, nullable=False),
)

price_files = Table(
    "price_files",
    metadata,
    Column("team", String(200), primary_key=True),  # its name, as price books have it
    Column("name", String(100), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("file_name", String(200), nullable=False),
    Column("format", String(16), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("kept_at", UtcTime, nullable=False),
    Column("kept_by", String(16)),  # id of the API key
    Column("state", String(16), nullable=False),  # current, superseded or deleted
    Column("content", JSON, nullable=False),
)

team_quotes = Table(
    "team_quotes",
    metadata,
    Column("team", String(200), primary_key=True),
    Column("snapshot", String(200), ForeignKey("price_snapshots.name"), nullable=False),
)
"""The snapshot of all current offers of a team's price files; the team's operator may give it further prices in `team_prices`."""


price_history = Table(
    "price_history",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("asked", String(64), nullable=False),
    *_offer_columns(),
    Column("usd_per_hour", ExactDecimal),
    Column("terms_key", String(200), nullable=False, server_default=""),
    Index("price_history_by_time", "observed_at", "id"),
    Index("price_history_by_accelerator", "accelerator", "observed_at", "id"),
    Index("price_history_by_provider", "provider", "observed_at", "id"),
    Index("price_history_by_region", "region", "observed_at", "id"),
    Index("price_history_by_pricing", "pricing", "observed_at", "id"),
    Index("price_history_by_thing", "instance_type", "provider", "region", "pricing", "id"),
)

team_price_history = Table(
    "team_price_history",
    metadata,
    Column("team", String(200), primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),  # -1, -2 and so on of each team: apart from those of price_history
    Column("asked", String(64), nullable=False),
    *_offer_columns(),
    Column("usd_per_hour", ExactDecimal),
    Column("terms_key", String(200), nullable=False, server_default=""),
    Index("team_price_history_by_time", "team", "observed_at", "id"),
    Index("team_price_history_by_thing", "team", "instance_type", "provider", "region", "pricing", "id"),
)
"""A separate table: gaps in the ids of a common one, visible in cursors, would disclose that a team's prices moved."""

teams = Table(
    "teams",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("created_at", UtcTime, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("team", String(36), ForeignKey("teams.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scopes", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("revoked_at", UtcTime),
    Column("last_used_at", UtcTime),
    Column("successor", String(16)),  # id of the key that a rotation made in its place
    Index("api_keys_by_team", "team", "created_at"),
)

web_sessions = Table(
    "web_sessions",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("key", String(16), ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Index("web_sessions_by_key", "key"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("team", String(36), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    Column("location", String(500)),
    Column("created_at", UtcTime, nullable=False),
    Index("idempotency_keys_by_time", "created_at"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("team", String(36), nullable=False),
    Column("alert", String(36), ForeignKey("alerts.id")),  # what is told: an alert, or the end of a scenario
    Column("scenario", String(36), ForeignKey("scenarios.id", ondelete="CASCADE")),
    Column("target", Integer, nullable=False),  # index among the rule's targets
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", UtcTime, nullable=False),
    Column("claimed_until", UtcTime),
    Column("last_error", String(2000)),
    Column("sent_at", UtcTime),
    UniqueConstraint("alert", "target", name="deliveries_of_alerts_once"),
    UniqueConstraint("scenario", "target", name="deliveries_of_scenarios_once"),
    Index("deliveries_due", "state", "due_at"),
)

secrets_check = Table(
    "secrets_check",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("sealed", String(500), nullable=False),
)
"""One row, sealed with the installation's key of stored secrets: a machine with another key finds out before it seals anything."""
