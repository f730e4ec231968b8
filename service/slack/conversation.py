"""Who asks, and from where."""

from __future__ import annotations

from dataclasses import dataclass

from service.context import AppContext
from service.domain.slack import SlackChannel
from service.domain.teams import Principal


@dataclass(frozen=True, slots=True)
class Conversation:
    """A channel's team with its context, the address of this service as Slack knows it, the id of the user who asks, and where the answer
    goes."""

    context: AppContext
    channel: SlackChannel
    server: str
    user: str
    response_url: str

    @property
    def who(self) -> Principal:
        """On whose behalf is asked."""
        return self.channel.principal
