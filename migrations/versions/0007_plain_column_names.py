"""Columns named by what they hold: the key of a job, skipped rows, suspicious prices."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename columns. Both databases know this statement; alembic's own would copy SQLite's tables."""
    op.drop_index("jobs_single", table_name="jobs")
    _rename("jobs", "single", "dedup_key")
    op.create_index("jobs_dedup_key", "jobs", ["dedup_key"], unique=True)
    _rename("provider_states", "left_out", "skipped")
    for table in ("provider_states", "team_prices"):
        _rename(table, "doubted", "suspicious")
        _rename(table, "doubted_count", "suspicious_count")


def _rename(table: str, old: str, new: str) -> None:
    op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")


def downgrade() -> None:
    """Rename the columns back."""
    op.drop_index("jobs_dedup_key", table_name="jobs")
    _rename("jobs", "dedup_key", "single")
    op.create_index("jobs_single", "jobs", ["single"], unique=True)
    _rename("provider_states", "skipped", "left_out")
    for table in ("provider_states", "team_prices"):
        _rename(table, "suspicious", "doubted")
        _rename(table, "suspicious_count", "doubted_count")
