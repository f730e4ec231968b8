"""Providers' states, price books, price history, jobs of which one may be open at a time, and since when an offer is available."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add what live prices need."""
    op.add_column("jobs", sa.Column("single", sa.String(200)))
    op.create_index("jobs_single", "jobs", ["single"], unique=True)
    op.add_column("price_snapshots", sa.Column("discounts", sa.JSON))
    op.add_column("offers", sa.Column("available_since", MOMENT))
    _provider_states()
    _price_books()
    _price_history()


def _provider_states() -> None:
    op.create_table(
        "provider_states",
        sa.Column("provider", sa.String(64), primary_key=True),
        sa.Column("snapshot", sa.String(200)),
        sa.Column("fresh_for_s", sa.Integer),
        sa.Column("verified_at", MOMENT),
        sa.Column("attempted_at", MOMENT),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("last_error", sa.String(2000)),
        sa.Column("last_error_at", MOMENT),
        sa.Column("retry_at", MOMENT),
        sa.Column("unconfigured", sa.String(500)),
        sa.Column("offers", sa.Integer, nullable=False),
        sa.Column("rejected_count", sa.Integer, nullable=False),
        sa.Column("rejected", sa.JSON, nullable=False),
        sa.Column("left_out", sa.JSON, nullable=False),
        sa.Column("quarantined_count", sa.Integer, nullable=False),
        sa.Column("quarantined", sa.JSON, nullable=False),
    )


def _price_books() -> None:
    op.create_table(
        "price_books",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("seq", sa.Integer, nullable=False, unique=True),
        sa.Column("made_at", MOMENT, nullable=False),
    )
    op.create_table(
        "price_book_parts",
        sa.Column("book", sa.String(200), sa.ForeignKey("price_books.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("provider", sa.String(64), primary_key=True),
        sa.Column("snapshot", sa.String(200), sa.ForeignKey("price_snapshots.name"), nullable=False),
    )


def _price_history() -> None:
    op.create_table(
        "price_history",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("asked", sa.String(64), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("region", sa.String(200), nullable=False),
        sa.Column("instance_type", sa.String(200), nullable=False),
        sa.Column("accelerator", sa.String(200), nullable=False),
        sa.Column("accelerator_count", sa.Integer, nullable=False),
        sa.Column("pricing", sa.String(32), nullable=False),
        sa.Column("market", sa.String(32), nullable=False),
        sa.Column("usd_per_hour", sa.String(40)),
        sa.Column("availability", sa.String(32), nullable=False),
        sa.Column("observed_at", MOMENT, nullable=False),
        sa.Column("source", sa.String(500), nullable=False),
    )
    op.create_index("price_history_by_time", "price_history", ["observed_at", "id"])
    op.create_index("price_history_by_accelerator", "price_history", ["accelerator", "observed_at", "id"])
    op.create_index("price_history_by_thing", "price_history", ["instance_type", "provider", "region", "pricing", "id"])


def downgrade() -> None:
    """Drop live prices; price books and the history of prices are lost."""
    for table in ("price_history", "price_book_parts", "price_books", "provider_states"):
        op.drop_table(table)
    op.drop_column("offers", "available_since")
    op.drop_column("price_snapshots", "discounts")
    op.drop_index("jobs_single", table_name="jobs")
    op.drop_column("jobs", "single")
