"""Who asks from where, and references to what was answered, which buttons carry."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.slack import SlackChannel
from service.domain.teams import Principal
from service.formats.slack.blocks import BUTTON_VALUE
from service.schemas import strict_json
from service.serialization import to_json

CHANGED = "This button is of an earlier version; ask again."


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


@dataclass(frozen=True, slots=True)
class Reference:
    """An answer: a kept result with the token of its link, or, where nothing may be kept, the question."""

    result: str | None = None
    token: str | None = None
    question: str | None = None

    def value(self) -> str | None:
        """The reference as a button's value; None where it is too long for one."""
        text = to_json({name: part for name, part in asdict(self).items() if part is not None})
        return text if len(text) <= BUTTON_VALUE else None


def read_reference(value: str) -> Reference:
    """The reference in a button's value. Raises InvalidRequest."""
    try:
        found = strict_json.parse(value.encode())
        reference = Reference(**found)
    except (strict_json.BadJson, TypeError) as error:
        raise InvalidRequest(CHANGED) from error
    if not all(part is None or isinstance(part, str) for part in asdict(reference).values()):
        raise InvalidRequest(CHANGED)
    return reference
