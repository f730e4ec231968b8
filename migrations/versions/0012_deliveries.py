"""Deliveries of alerts and of scenarios' ends in one table, and where to tell of a scenario's end."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Move the deliveries of alerts to a table that has those of scenarios too."""
    op.add_column("scenarios", sa.Column("notify", sa.JSON(none_as_null=True)))
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("team", sa.String(36), nullable=False),
        sa.Column("alert", sa.String(36), sa.ForeignKey("alerts.id")),
        sa.Column("scenario", sa.String(36), sa.ForeignKey("scenarios.id", ondelete="CASCADE")),
        sa.Column("target", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("claimed_until", TIME),
        sa.Column("last_error", sa.String(2000)),
        sa.Column("sent_at", TIME),
        sa.UniqueConstraint("alert", "target", name="deliveries_of_alerts_once"),
        sa.UniqueConstraint("scenario", "target", name="deliveries_of_scenarios_once"),
    )
    op.create_index("deliveries_due", "deliveries", ["state", "due_at"])
    columns = "target, state, attempts, due_at, claimed_until, last_error, sent_at"
    op.execute(
        f"INSERT INTO deliveries (id, team, alert, {columns}) SELECT moved.id, alert_rules.team, alert, {columns}"  # noqa: S608
        " FROM alert_deliveries AS moved JOIN alerts ON alerts.id = moved.alert JOIN alert_rules ON alert_rules.id = alerts.rule"
    )
    op.drop_table("alert_deliveries")


def downgrade() -> None:
    """Move the deliveries of alerts back; those of scenarios are lost."""
    op.create_table(
        "alert_deliveries",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("alert", sa.String(36), sa.ForeignKey("alerts.id"), nullable=False),
        sa.Column("target", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("claimed_until", TIME),
        sa.Column("last_error", sa.String(2000)),
        sa.Column("sent_at", TIME),
        sa.UniqueConstraint("alert", "target", name="alert_deliveries_once"),
    )
    op.create_index("alert_deliveries_due", "alert_deliveries", ["state", "due_at"])
    columns = "id, alert, target, state, attempts, due_at, claimed_until, last_error, sent_at"
    op.execute(f"INSERT INTO alert_deliveries ({columns}) SELECT {columns} FROM deliveries WHERE alert IS NOT NULL")  # noqa: S608
    op.drop_table("deliveries")
    op.drop_column("scenarios", "notify")
