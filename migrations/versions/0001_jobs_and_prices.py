"""Jobs, heartbeats of the workers, and price snapshots with their offers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the first tables."""
    _jobs()
    op.create_table("heartbeats", sa.Column("worker", sa.String(200), primary_key=True), sa.Column("at", MOMENT, nullable=False))
    _prices()


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("handed_back", sa.Integer, nullable=False),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_expires_at", MOMENT),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("progress_done", sa.Integer, nullable=False),
        sa.Column("progress_total", sa.Integer, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("error", sa.String(2000)),
        sa.Column("sent_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
    )
    op.create_index("jobs_by_state", "jobs", ["state", "lease_expires_at"])
    op.create_index("jobs_by_kind", "jobs", ["kind", "created_at"])


def _prices() -> None:
    op.create_table(
        "price_snapshots",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("taken_at", MOMENT, nullable=False),
        sa.Column("offer_count", sa.Integer, nullable=False),
        sa.Column("complete", sa.Boolean, nullable=False),
    )
    op.create_index("price_snapshots_by_provider", "price_snapshots", ["provider", "taken_at"])
    op.create_table(
        "offers",
        sa.Column("snapshot", sa.String(200), sa.ForeignKey("price_snapshots.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("row", sa.Integer, primary_key=True),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("region", sa.String(200), nullable=False),
        sa.Column("instance_type", sa.String(200), nullable=False),
        sa.Column("accelerator", sa.String(200), nullable=False),
        sa.Column("accelerator_count", sa.Integer, nullable=False),
        sa.Column("pricing", sa.String(32), nullable=False),
        sa.Column("usd_per_hour", sa.String(40), nullable=False),
        sa.Column("observed_at", MOMENT, nullable=False),
        sa.Column("source", sa.String(500), nullable=False),
        sa.Column("market", sa.String(32), nullable=False),
        sa.Column("availability", sa.String(32), nullable=False),
        sa.Column("extras", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    """Drop the first tables."""
    for table in ("offers", "price_snapshots", "heartbeats", "jobs"):
        op.drop_table(table)
