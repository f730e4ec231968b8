"""Slack workspaces and channels, and the teams they act for."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of Slack channels."""
    op.create_table(
        "slack_channels",
        sa.Column("workspace", sa.String(32), primary_key=True),
        sa.Column("channel", sa.String(32), primary_key=True),
        sa.Column("team", sa.String(36), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("webhook", sa.String(2000)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Drop the channels: each has to be connected again."""
    op.drop_table("slack_channels")
