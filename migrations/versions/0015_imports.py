"""Imports that workers do, and their files.

All of it is added: processes of the release before go on working on the same database. Their workers know no job of this kind: an attempt
that one of them makes fails, and a worker of this release makes the next.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "track_imports",
        sa.Column("id", sa.String(36), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("team", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(64)),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
        sa.Column("cpu_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("track_imports_by_team", "track_imports", ["team"])
    op.create_table(
        "track_import_files",
        sa.Column("id", sa.String(36), sa.ForeignKey("track_imports.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables, and the jobs that only this release can do. Events that were stored stay."""
    op.drop_table("track_import_files")
    op.drop_table("track_imports")
    op.execute("DELETE FROM jobs WHERE kind = 'import_events'")
