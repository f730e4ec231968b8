"""Figures of tracked programs for metrics."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of program figures."""
    op.create_table(
        "track_figures",
        sa.Column("program", sa.String(36), sa.ForeignKey("track_programs.id"), primary_key=True),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Drop the figures: they follow from the events."""
    op.drop_table("track_figures")
