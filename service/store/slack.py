"""Slack channels and the teams they act for: their table and its statements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, ForeignKey, String, Table, delete, insert, select

from service.domain.audit import Change
from service.domain.slack import WHOLE_WORKSPACE, SlackChannel
from service.store.audit import record_change
from service.store.secrets import SecretRows
from service.store.tables import UtcTime, metadata, teams

slack_channels = Table(
    "slack_channels",
    metadata,
    Column("workspace", String(32), primary_key=True),
    Column("channel", String(32), primary_key=True),  # empty: the rest of the workspace
    Column("team", String(36), ForeignKey("teams.id"), nullable=False),
    Column("scopes", String(64), nullable=False),
    Column("webhook", String(2000)),
    Column("created_at", UtcTime, nullable=False),
)
_CHANNEL = (*slack_channels.c, teams.c.name.label("team_name"))


class SlackRows(SecretRows):
    """Statements for Slack channels."""

    def map_slack_channel(self, mapped: SlackChannel) -> None:
        """Store a mapping in place of the channel's earlier one, which may be another team's."""
        row = {column.name: getattr(mapped, column.name) for column in slack_channels.c} | {"scopes": ",".join(mapped.scopes)}
        with self._write() as connection:
            self._unmap(connection, mapped.workspace, mapped.channel, mapped.created_at)
            sealed = None if mapped.webhook is None else self._seal(connection, mapped.webhook)
            connection.execute(insert(slack_channels).values(row | {"webhook": sealed}))
            record_change(connection, Change(mapped.team, "slack_channel.map", _name(row), None, row), mapped.created_at)

    def slack_channel(self, workspace: str, channel: str) -> SlackChannel | None:
        """The mapping of a channel, else of its workspace, or None."""
        there = slack_channels.c.workspace == workspace, slack_channels.c.channel.in_((channel, WHOLE_WORKSPACE))
        query = select(*_CHANNEL).join(teams).where(*there).order_by(slack_channels.c.channel.desc()).limit(1)
        return self._find(self._channel, query)

    def slack_channels(self) -> list[SlackChannel]:
        """All mappings by workspace and channel."""
        query = select(*_CHANNEL).join(teams).order_by(slack_channels.c.workspace, slack_channels.c.channel)
        return self._list(self._channel, query)

    def unmap_slack_channel(self, workspace: str, channel: str, now: datetime) -> bool:
        """Delete a mapping; False where there is none."""
        with self._write() as connection:
            return self._unmap(connection, workspace, channel, now)

    def reseal_slack_webhooks(self, *, plain_only: bool) -> int:
        """Seal webhooks under the newest key, with `plain_only` those that are not sealed; returns the number changed.

        Raises SecretsUnavailable.
        """
        with self._write() as connection:
            return self._reseal_column(connection, slack_channels, slack_channels.c.webhook, self._resealing(plain_only=plain_only))

    def _unmap(self, connection: Connection, workspace: str, channel: str, now: datetime) -> bool:
        deleted = delete(slack_channels).where(*_of(workspace, channel)).returning(slack_channels)
        gone = connection.execute(deleted).mappings().first()
        if gone is None:
            return False
        before = {**gone, "webhook": self._open_webhook(gone["webhook"])}
        record_change(connection, Change(gone["team"], "slack_channel.unmap", _name(before), before, None), now)
        return True

    def _open_webhook(self, stored: str | None) -> str | None:
        return None if stored is None else self._box.open(stored)

    def _channel(self, **row: Any) -> SlackChannel:
        return SlackChannel(**row | {"scopes": tuple(row["scopes"].split(",")), "webhook": self._open_webhook(row["webhook"])})


def _of(workspace: str, channel: str) -> tuple[Any, ...]:
    return slack_channels.c.workspace == workspace, slack_channels.c.channel == channel


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['workspace']}/{row['channel']}"
