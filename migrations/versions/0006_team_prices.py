"""Prices of one team alone, and how they moved."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Say of a snapshot whose it is, and create the tables of what teams have of their own."""
    op.add_column("price_snapshots", sa.Column("team", sa.String(200)))
    _prices()
    _history()


def _prices() -> None:
    op.create_table(
        "team_prices",
        sa.Column("team", sa.String(200), primary_key=True),
        sa.Column("snapshot", sa.String(200), sa.ForeignKey("price_snapshots.name"), nullable=False),
        sa.Column("offers", sa.Integer, nullable=False),
        sa.Column("rejected_count", sa.Integer, nullable=False),
        sa.Column("rejected", sa.JSON, nullable=False),
        sa.Column("doubted_count", sa.Integer, nullable=False),
        sa.Column("doubted", sa.JSON, nullable=False),
        sa.Column("warnings", sa.JSON, nullable=False),
    )


def _history() -> None:
    op.create_table(
        "team_price_history",
        sa.Column("team", sa.String(200), primary_key=True),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("asked", sa.String(64), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("region", sa.String(200), nullable=False),
        sa.Column("instance_type", sa.String(200), nullable=False),
        sa.Column("accelerator", sa.String(200), nullable=False),
        sa.Column("accelerator_count", sa.Integer, nullable=False),
        sa.Column("pricing", sa.String(32), nullable=False),
        sa.Column("market", sa.String(32), nullable=False),
        sa.Column("usd_per_hour", sa.String(40)),
        sa.Column("availability", sa.String(32), nullable=False),
        sa.Column("observed_at", MOMENT, nullable=False),
        sa.Column("source", sa.String(500), nullable=False),
    )
    op.create_index("team_price_history_by_time", "team_price_history", ["team", "observed_at", "id"])
    op.create_index("team_price_history_by_thing", "team_price_history", ["team", "instance_type", "provider", "region", "pricing", "id"])


def downgrade() -> None:
    """Drop the prices of teams."""
    op.drop_table("team_price_history")
    op.drop_table("team_prices")
    op.drop_column("price_snapshots", "team")
