"""Sessions of browsers.

All of it is added: processes of the release before do not know of sessions and answer pages to nobody who has one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "web_sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(16), sa.ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("web_sessions_by_key", "web_sessions", ["key"])


def downgrade() -> None:
    """Drop the table: everybody is signed out."""
    op.drop_table("web_sessions")
