"""What is served though the rules doubt it, what the owner of price files should know, and filtered history that stays fast."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

FILTERS = ("provider", "region", "pricing")


def upgrade() -> None:
    """Add what states lack, and an index in time for each filter that had none."""
    op.add_column("provider_states", sa.Column("doubted_count", sa.Integer, nullable=False, server_default="0"))
    op.add_column("provider_states", sa.Column("doubted", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("provider_states", sa.Column("warnings", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("provider_states", sa.Column("configuration", sa.String(64)))
    for name in FILTERS:
        op.create_index(f"price_history_by_{name}", "price_history", [name, "observed_at", "id"])


def downgrade() -> None:
    """Drop the columns and indexes."""
    for name in FILTERS:
        op.drop_index(f"price_history_by_{name}", table_name="price_history")
    for column in ("configuration", "warnings", "doubted", "doubted_count"):
        op.drop_column("provider_states", column)
