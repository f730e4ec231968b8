"""The tables of scenarios and their chunks. See `store.tables`."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text, UniqueConstraint, text

from service.store.tables import UtcTime, metadata

scenarios = Table(
    "scenarios",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("team", String(36), ForeignKey("teams.id"), nullable=False),
    Column("number", Integer, nullable=False),  # order of creation within the team
    Column("kind", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("units", BigInteger, nullable=False),
    Column("units_done", BigInteger, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("chunks_begun", Integer, nullable=False),  # number of the next chunk that was never claimed
    Column("review_at", Integer, nullable=False),  # number of chunks before the next stopping check
    Column("price_snapshot", String(200), nullable=False),
    Column("engine_version", String(64), nullable=False),
    Column("error", String(2000)),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("request", JSON, nullable=False),
    Column("prepared", JSON, nullable=False),
    Column("result", JSON(none_as_null=True)),
    Column("notify", JSON(none_as_null=True)),  # the target that is told of its end
    UniqueConstraint("team", "number", name="scenarios_in_team"),
    Index("scenarios_by_state", "state", "created_at"),
    Index("scenarios_by_end", "expires_at"),
)

scenario_chunks = Table(
    "scenario_chunks",
    metadata,
    Column("scenario", String(36), ForeignKey("scenarios.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 0; -1 is the review
    Column("claimed_by", String(200)),  # the `dedup_key` of the job that works on it
    Column("attempts", Integer, nullable=False),
    Column("done_at", UtcTime),
    Column("error", String(2000)),
    Column("tally", Text),
    Index("scenario_chunks_open", "scenario", sqlite_where=text("done_at IS NULL"), postgresql_where=text("done_at IS NULL")),
)
