"""The audit trail: entries that are never changed, and each team's newest."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

REFUSED = "audit entries are not changed"


def upgrade() -> None:
    """Create the tables and the triggers that refuse changes."""
    op.create_table(
        "audit_entries",
        sa.Column("team", sa.String(36), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("operation", sa.String(64), nullable=False),
        sa.Column("object", sa.String(200), nullable=False),
        sa.Column("via", sa.String(16), nullable=False),
        sa.Column("key", sa.String(16)),
        sa.Column("user", sa.String(200)),
        sa.Column("address", sa.String(64)),
        sa.Column("request", sa.String(64)),
        sa.Column("before", sa.String(64)),
        sa.Column("after", sa.String(64)),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_index("audit_entries_by_object", "audit_entries", ["team", "object", "number"])
    op.create_index("audit_entries_by_key", "audit_entries", ["team", "key", "number"])
    op.create_index("audit_entries_by_time", "audit_entries", ["team", "at", "number"])
    op.create_table(
        "audit_heads",
        sa.Column("team", sa.String(36), primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        _refuse_in_sqlite()
    else:
        _refuse_in_postgres()


def _refuse_in_sqlite() -> None:
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_entries_no_{change.lower()} BEFORE {change} ON audit_entries BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
        )


def _refuse_in_postgres() -> None:
    op.execute(
        "CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'restrict_violation'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_entries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()"
    )


def downgrade() -> None:
    """Drop the trail: `outlay backup` keeps a copy of it."""
    op.drop_table("audit_entries")
    op.drop_table("audit_heads")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_audit_change()")
