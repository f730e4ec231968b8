"""Terms of commitments and quotes in stored offers and price history, and the price files of teams."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what was stored before states no terms."""
    op.add_column("offers", sa.Column("terms", sa.JSON))
    for table in ("price_history", "team_price_history"):
        op.add_column(table, sa.Column("terms_key", sa.String(200), nullable=False, server_default=""))
    op.create_table(
        "price_files",
        sa.Column("team", sa.String(200), primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("file_name", sa.String(200), nullable=False),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kept_by", sa.String(16)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
    )
    op.create_table(
        "team_quotes",
        sa.Column("team", sa.String(200), primary_key=True),
        sa.Column("snapshot", sa.String(200), sa.ForeignKey("price_snapshots.name"), nullable=False),
    )


def downgrade() -> None:
    """Drop price files and the terms of offers."""
    op.drop_table("team_quotes")
    op.drop_table("price_files")
    for table in ("team_price_history", "price_history"):
        op.drop_column(table, "terms_key")
    op.drop_column("offers", "terms")
