"""The time at which the events of a run were archived.

The column is added: processes of the release before go on working on the same database. They do not know it, so programs are archived only
once the last of them is gone: what they would take for an archived run would be summed up without the events that have left.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("track_runs", sa.Column("archived_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    """Drop the column. Refused while a program is archived: the release before would sum its hours up without their events."""
    if op.get_bind().scalar(sa.text("SELECT count(*) FROM track_runs WHERE archived_at IS NOT NULL")):
        raise LookupError("there are archived programs, which the release before does not know; `outlay unarchive` them first")
    op.drop_column("track_runs", "archived_at")
