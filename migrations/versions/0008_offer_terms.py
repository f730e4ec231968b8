"""Terms of commitments and quotes: in stored offers, and in the identity of what price history follows."""

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
