"""Teams with their keys, tracked programs with their log of events, alerts, and what finished runs teach."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
CORRECTIONS = sa.text("supersedes IS NOT NULL")
LARGE_RUNS = {
    "sqlite": (
        "ANALYZE track_events",
        """INSERT INTO sqlite_stat1
        SELECT 'track_events', name, CASE partial WHEN 1 THEN '1000 100 1' ELSE '1000000 100000 1' END
        FROM pragma_index_list('track_events')""",
        "ANALYZE sqlite_schema",
    ),
    "postgresql": ("ALTER TABLE track_events ALTER COLUMN run SET STATISTICS 0",),
}
"""Tells the planner that runs are large. SQLite without statistics takes a run to have ten events, and PostgreSQL one that is younger than
the last count to have one: both would walk through the whole run where the unique index finds an id."""


def upgrade() -> None:
    """Create the tables of tracking."""
    _teams()
    _programs()
    _log()
    _alerts()
    _lessons()


def _teams() -> None:
    op.create_table(
        "teams",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("team", sa.String(36), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
    )
    op.create_index("api_keys_by_team", "api_keys", ["team", "created_at"])
    op.create_table(
        "idempotency_keys",
        sa.Column("team", sa.String(36), primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("location", sa.String(500)),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_index("idempotency_keys_by_time", "idempotency_keys", ["created_at"])


def _programs() -> None:
    op.create_table(
        "track_programs",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("team", sa.String(36), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("plan", sa.JSON),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("judged_events", sa.BigInteger, nullable=False),
        sa.Column("judged_at", MOMENT),
        sa.UniqueConstraint("team", "number", name="track_programs_in_team"),
    )
    op.create_table(
        "track_runs",
        sa.Column("key", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(36), nullable=False, unique=True),
        sa.Column("program", sa.String(36), sa.ForeignKey("track_programs.id"), nullable=False),
        sa.Column("team", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("folded", sa.Integer, nullable=False),
        sa.UniqueConstraint("program", "number", name="track_runs_in_program"),
    )
    op.create_index("track_runs_by_name", "track_runs", ["program", "name"])
    op.create_table(
        "track_revisions",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("by", sa.String(16)),
    )


def _log() -> None:
    op.create_table(
        "track_events",
        sa.Column("run", sa.Integer, sa.ForeignKey("track_runs.key"), primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("event", sa.String(200), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("supersedes", sa.String(200)),
        sa.UniqueConstraint("run", "event", name="track_events_once"),
        sqlite_with_rowid=False,
    )
    op.create_index("track_events_by_time", "track_events", ["run", "at"])
    op.create_index(
        "track_events_corrections", "track_events", ["run", "supersedes"], sqlite_where=CORRECTIONS, postgresql_where=CORRECTIONS
    )
    op.create_table(
        "track_hours",
        sa.Column("run", sa.Integer, sa.ForeignKey("track_runs.key"), primary_key=True, autoincrement=False),
        sa.Column("hour", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    for statement in LARGE_RUNS[op.get_bind().dialect.name]:
        op.execute(statement)


def _alerts() -> None:
    op.create_table(
        "alert_rules",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("team", sa.String(36), nullable=False),
        sa.Column("program", sa.String(36), sa.ForeignKey("track_programs.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.UniqueConstraint("program", "number", name="alert_rules_in_program"),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("program", sa.String(36), sa.ForeignKey("track_programs.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("rule", sa.String(36), sa.ForeignKey("alert_rules.id"), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("episode", sa.Integer, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.UniqueConstraint("rule", "subject", "episode", name="alerts_once"),
        sa.UniqueConstraint("program", "number", name="alerts_in_program"),
    )
    op.create_table(
        "alert_deliveries",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("alert", sa.String(36), sa.ForeignKey("alerts.id"), nullable=False),
        sa.Column("target", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("claimed_until", MOMENT),
        sa.Column("last_error", sa.String(2000)),
        sa.Column("sent_at", MOMENT),
        sa.UniqueConstraint("alert", "target", name="alert_deliveries_once"),
    )
    op.create_index("alert_deliveries_due", "alert_deliveries", ["state", "due_at"])


def _lessons() -> None:
    op.create_table(
        "track_lessons",
        sa.Column("run", sa.String(36), primary_key=True),
        sa.Column("team", sa.String(36), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
    )
    op.create_index("track_lessons_by_team", "track_lessons", ["team", "at"])


def downgrade() -> None:
    """Drop tracking: all teams, keys, programs and events are lost."""
    _drop_tables("track_lessons", "alert_deliveries", "alerts", "alert_rules", "track_hours", "track_events", "track_revisions")
    _drop_tables("track_runs", "track_programs", "idempotency_keys", "api_keys", "teams")


def _drop_tables(*names: str) -> None:
    for name in names:
        op.drop_table(name)
