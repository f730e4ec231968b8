"""The check of the key that secrets are sealed with, the use and succession of API keys, and the bytes of each run's events.

All of it is added: processes of the release before go on working on the same database.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BYTES_OF_AN_EVENT = 250
"""What an event of before is counted as: its row with its keys, in the mean of progress events."""


def upgrade() -> None:
    """Create the table of the check, and add the columns."""
    op.create_table(
        "secrets_check",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sealed", sa.String(500), nullable=False),
    )
    op.add_column("api_keys", sa.Column("last_used_at", sa.DateTime(timezone=True)))
    op.add_column("api_keys", sa.Column("successor", sa.String(16)))
    op.add_column("track_runs", sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(f"UPDATE track_runs SET bytes = {BYTES_OF_AN_EVENT} * position")  # noqa: S608 - a number of ours


def downgrade() -> None:
    """Drop the columns and the check. What is sealed stays so: the release before cannot read it."""
    op.drop_column("track_runs", "bytes")
    op.drop_column("api_keys", "successor")
    op.drop_column("api_keys", "last_used_at")
    op.drop_table("secrets_check")
