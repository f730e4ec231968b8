"""Messages to addresses that callers name: their targets, and the deliveries that are tried until they arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from service.domain.answer_fields import HIDDEN, Doc

TargetKind = Literal["webhook", "slack", "slack_response"]
"""A signed webhook; an incoming webhook of Slack; the response URL of a pressed button in Slack, which ends after 30 minutes."""
DeliveryState = Literal["pending", "sent", "failed"]
MAX_URL_CHARACTERS = 2000
"""Characters of an address."""
WEBHOOK_HEADERS: Mapping[str, str] = {
    "webhook-id": "Id of the message, the same at every attempt",
    "webhook-timestamp": "Time of the attempt, in Unix seconds",
    "webhook-signature": "`v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body with dots between",
}
"""Headers of a webhook, by the Standard Webhooks specification."""


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """Address that messages are POSTed to; webhooks have a secret for their signature (`whsec_` and base64).

    `server`: address of this service as Slack knows it, of what was asked there; None: messages have no picture and no buttons.
    `reading`: what the question in Slack was read as.
    """

    kind: TargetKind
    url: str
    secret: str | None = None
    server: str | None = None
    reading: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """Delivery of an alert, or of a scenario's end, to one target. `failed`: given up, after the last attempt or because its rule has
    ended.

    `due_at`: when the next attempt is made.
    """

    id: Annotated[str, Doc("The webhook-id of its messages, the same at every attempt")]
    alert: Annotated[str | None, HIDDEN]
    scenario: Annotated[str | None, HIDDEN]
    target: Annotated[int, Doc("Number of its target in the rule's list, from 0")]
    state: Annotated[DeliveryState, Doc("Whether it has arrived")]
    attempts: Annotated[int, Doc("Attempts so far")]
    due_at: Annotated[datetime, HIDDEN]
    claimed_until: Annotated[datetime | None, HIDDEN]
    last_error: Annotated[str | None, Doc("Why the last attempt failed; null: none failed", max_length=2000)]
    sent_at: Annotated[datetime | None, Doc("When the receiver accepted it")]
