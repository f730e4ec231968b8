"""Who asks, and from where."""

from __future__ import annotations

from dataclasses import dataclass

from service.context import AppContext
from service.domain.slack import SlackChannel
from service.domain.teams import Principal


@dataclass(frozen=True, slots=True)
class Conversation:
    """A channel's team with its context, the address of this service as Slack knows it, and the id of the user who asks."""

    context: AppContext
    channel: SlackChannel
    server: str
    user: str

    @property
    def who(self) -> Principal:
        """On whose behalf is asked."""
        return self.channel.principal
