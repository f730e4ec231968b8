"""Kept results and the links that open them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables of results and links."""
    _results()
    _links()


def _results() -> None:
    op.create_table(
        "results",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("team", sa.String(36), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("price_snapshot", sa.String(500), nullable=False),
        sa.Column("engine_version", sa.String(64), nullable=False),
        sa.Column("title_folded", sa.Text, nullable=False),
        sa.Column("signature", sa.String(1000), nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sa.Column("answer", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("team", "number", name="results_in_team"),
    )
    op.create_index("results_by_kind", "results", ["team", "kind", "number"])
    op.create_index("results_by_end", "results", ["expires_at"])


def _links() -> None:
    op.create_table(
        "result_links",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("result", sa.String(36), sa.ForeignKey("results.id", ondelete="CASCADE"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
    )
    op.create_index("result_links_by_result", "result_links", ["result", "created_at"])


def downgrade() -> None:
    """Drop kept results and their links."""
    op.drop_table("result_links")
    op.drop_table("results")
