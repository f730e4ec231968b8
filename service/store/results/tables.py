"""The tables of kept results and their links. See `store.tables`."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text, UniqueConstraint

from service.store.tables import UtcTime, metadata

results = Table(
    "results",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("team", String(36), ForeignKey("teams.id"), nullable=False),
    Column("number", Integer, nullable=False),  # order of keeping within the team
    Column("kind", String(32), nullable=False),
    Column("title", String(200), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("sha256", String(64), nullable=False),
    Column("price_snapshot", String(500), nullable=False),
    Column("engine_version", String(64), nullable=False),
    Column("title_folded", Text, nullable=False),  # for searches in any case; SQLite folds ASCII alone
    Column("signature", String(1000), nullable=False),
    Column("record", LargeBinary, nullable=False),  # deflated, as is the answer; last, so that lists need not read them
    Column("answer", LargeBinary, nullable=False),
    UniqueConstraint("team", "number", name="results_in_team"),
    Index("results_by_kind", "team", "kind", "number"),
    Index("results_by_end", "expires_at"),
)

result_links = Table(
    "result_links",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("result", String(36), ForeignKey("results.id", ondelete="CASCADE"), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Index("result_links_by_result", "result", "created_at"),
)
