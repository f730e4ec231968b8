"""Slack channels and the teams they act for: their table and its statements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, ForeignKey, String, Table, delete, insert, select

from service.domain.audit import Change
from service.domain.slack import WHOLE_WORKSPACE, SlackChannel
from service.store.audit import record_change
from service.store.database import Database
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


class SlackRows(Database):
    """Statements for Slack channels."""

    def map_slack_channel(self, mapped: SlackChannel) -> None:
        """Store a mapping in place of the channel's earlier one, which may be another team's."""
        row = {column.name: getattr(mapped, column.name) for column in slack_channels.c} | {"scopes": ",".join(mapped.scopes)}
        with self._write() as connection:
            _unmap(connection, mapped.workspace, mapped.channel, mapped.created_at)
            connection.execute(insert(slack_channels).values(row))
            record_change(connection, Change(mapped.team, "slack_channel.map", _name(row), None, row), mapped.created_at)

    def slack_channel(self, workspace: str, channel: str) -> SlackChannel | None:
        """The mapping of a channel, else of its workspace, or None."""
        there = slack_channels.c.workspace == workspace, slack_channels.c.channel.in_((channel, WHOLE_WORKSPACE))
        query = select(*_CHANNEL).join(teams).where(*there).order_by(slack_channels.c.channel.desc()).limit(1)
        return self._find(_channel, query)

    def slack_channels(self) -> list[SlackChannel]:
        """All mappings by workspace and channel."""
        query = select(*_CHANNEL).join(teams).order_by(slack_channels.c.workspace, slack_channels.c.channel)
        return self._list(_channel, query)

    def unmap_slack_channel(self, workspace: str, channel: str, now: datetime) -> bool:
        """Delete a mapping; False where there is none."""
        with self._write() as connection:
            return _unmap(connection, workspace, channel, now)


def _unmap(connection: Connection, workspace: str, channel: str, now: datetime) -> bool:
    gone = connection.execute(delete(slack_channels).where(*_of(workspace, channel)).returning(slack_channels)).mappings().first()
    if gone is not None:
        record_change(connection, Change(gone["team"], "slack_channel.unmap", _name(dict(gone)), dict(gone), None), now)
    return gone is not None


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['workspace']}/{row['channel']}"


def _of(workspace: str, channel: str) -> tuple[Any, ...]:
    return slack_channels.c.workspace == workspace, slack_channels.c.channel == channel


def _channel(**row: Any) -> SlackChannel:
    return SlackChannel(**row | {"scopes": tuple(row["scopes"].split(","))})
