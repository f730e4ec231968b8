"""Slack workspaces and channels, and the team that each acts for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from service.domain.teams import Principal, Scope

SLACK_HOST = "hooks.slack.com"
WHOLE_WORKSPACE = ""
"""In place of a channel: all channels that have no mapping of their own."""


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """A channel, or the rest of a workspace, with its team and what its members may do there.

    `webhook` is the channel's incoming webhook, which alerts are sent to; None: alerts cannot be sent there.
    """

    workspace: str
    channel: str
    team: str
    team_name: str
    scopes: tuple[Scope, ...]
    webhook: str | None
    created_at: datetime

    @property
    def principal(self) -> Principal:
        """On whose behalf members of the channel ask."""
        return Principal(self.team, f"slack:{self.workspace}", self.scopes, self.team_name)
