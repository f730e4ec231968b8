"""Tables of tracking: programs and runs, events and hours, alerts and run outcomes. See `tables`."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text, UniqueConstraint, text

from service.store.tables import UtcTime, metadata

track_programs = Table(
    "track_programs",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("team", String(36), ForeignKey("teams.id"), nullable=False),
    Column("number", Integer, nullable=False),  # order of creation within the team, for pages
    Column("version", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    Column("plan", JSON(none_as_null=True)),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("judged_events", BigInteger, nullable=False),  # number of events at the last evaluation of alert rules
    Column("judged_at", UtcTime),
    UniqueConstraint("team", "number", name="track_programs_in_team"),
)

track_runs = Table(
    "track_runs",
    metadata,
    Column("key", Integer, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("program", String(36), ForeignKey("track_programs.id"), nullable=False),
    Column("team", String(36), nullable=False),
    Column("number", Integer, nullable=False),  # order of creation within the program
    Column("version", Integer, nullable=False),
    Column("name", String(200), nullable=False),
    Column("body", JSON, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("position", Integer, nullable=False),  # of the newest event in the log
    Column("folded", Integer, nullable=False),  # position up to which hours are projected
    Column("bytes", BigInteger, nullable=False, server_default="0"),  # of the log's rows, about
    Column("archived_at", UtcTime),  # when the log's rows were archived: there are no more, and none are taken
    UniqueConstraint("program", "number", name="track_runs_in_program"),
    Index("track_runs_by_name", "program", "name"),
)

track_revisions = Table(
    "track_revisions",
    metadata,
    Column("id", String(36), primary_key=True),  # of the program or run
    Column("version", Integer, primary_key=True),
    Column("body", JSON, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("by", String(16)),
)

track_events = Table(
    "track_events",
    metadata,
    Column("run", Integer, ForeignKey("track_runs.key"), primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("event", String(200), nullable=False),
    Column("type", String(16), nullable=False),
    Column("at", BigInteger, nullable=False),  # microseconds since 1970, UTC
    Column("received_at", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("supersedes", String(200)),
    UniqueConstraint("run", "event", name="track_events_once"),
    Index("track_events_by_time", "run", "at"),
    Index(
        "track_events_corrections",
        "run",
        "supersedes",
        sqlite_where=text("supersedes IS NOT NULL"),
        postgresql_where=text("supersedes IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)

track_hours = Table(
    "track_hours",
    metadata,
    Column("run", Integer, ForeignKey("track_runs.key"), primary_key=True, autoincrement=False),
    Column("hour", Integer, primary_key=True, autoincrement=False),  # since 1970, UTC
    Column("body", Text, nullable=False),
    sqlite_with_rowid=False,
)

alert_rules = Table(
    "alert_rules",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("team", String(36), nullable=False),
    Column("program", String(36), ForeignKey("track_programs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    UniqueConstraint("program", "number", name="alert_rules_in_program"),
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("program", String(36), ForeignKey("track_programs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("rule", String(36), ForeignKey("alert_rules.id"), nullable=False),
    Column("subject", String(200), nullable=False),  # what the finding is about: alerted once while it lasts
    Column("episode", Integer, nullable=False),  # counts repetitions after an end
    Column("body", JSON, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    UniqueConstraint("rule", "subject", "episode", name="alerts_once"),
    UniqueConstraint("program", "number", name="alerts_in_program"),
)

track_lessons = Table(
    "track_lessons",
    metadata,
    Column("run", String(36), primary_key=True),
    Column("team", String(36), nullable=False),
    Column("body", JSON, nullable=False),
    Column("at", UtcTime, nullable=False),
    Index("track_lessons_by_team", "team", "at"),
)

track_figures = Table(
    "track_figures",
    metadata,
    Column("program", String(36), ForeignKey("track_programs.id"), primary_key=True),
    Column("events", BigInteger, nullable=False),  # number of events at the evaluation
    Column("body", JSON, nullable=False),
    Column("at", UtcTime, nullable=False),
)

track_imports = Table(
    "track_imports",
    metadata,
    Column("id", String(36), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),  # of its job, which has state and result
    Column("team", String(36), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("digest", String(64)),  # of the parts that the file was cut into
    Column("parts", Integer, nullable=False),  # number of parts that are stored and counted
    Column("counts", JSON, nullable=False),
    Column("cpu_ms", BigInteger, nullable=False),
    Index("track_imports_by_team", "team"),
)

track_import_files = Table(
    "track_import_files",
    metadata,
    Column("id", String(36), ForeignKey("track_imports.id", ondelete="CASCADE"), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""Files of imports that have not ended; apart from `track_imports`, whose rows change with every part."""
