"""Scenarios and their chunks."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
UNDONE = sa.text("done_at IS NULL")


def upgrade() -> None:
    """Create the tables of scenarios."""
    _scenarios()
    _chunks()


def _scenarios() -> None:
    op.create_table(
        "scenarios",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("team", sa.String(36), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("units", sa.BigInteger, nullable=False),
        sa.Column("units_done", sa.BigInteger, nullable=False),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.Column("chunks_begun", sa.Integer, nullable=False),
        sa.Column("review_at", sa.Integer, nullable=False),
        sa.Column("price_snapshot", sa.String(200), nullable=False),
        sa.Column("engine_version", sa.String(64), nullable=False),
        sa.Column("error", sa.String(2000)),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("prepared", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.UniqueConstraint("team", "number", name="scenarios_in_team"),
    )
    op.create_index("scenarios_by_state", "scenarios", ["state", "created_at"])
    op.create_index("scenarios_by_end", "scenarios", ["expires_at"])


def _chunks() -> None:
    op.create_table(
        "scenario_chunks",
        sa.Column("scenario", sa.String(36), sa.ForeignKey("scenarios.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("claimed_by", sa.String(200)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("done_at", MOMENT),
        sa.Column("error", sa.String(2000)),
        sa.Column("tally", sa.Text),
    )
    op.create_index("scenario_chunks_open", "scenario_chunks", ["scenario"], sqlite_where=UNDONE, postgresql_where=UNDONE)


def downgrade() -> None:
    """Drop scenarios with their results."""
    op.drop_table("scenario_chunks")
    op.drop_table("scenarios")
