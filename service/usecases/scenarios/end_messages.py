"""The end of a scenario as messages: an event of a webhook, and the card that replaces a message in Slack."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from service.context import AppContext
from service.domain.deliveries import DeliveryTarget
from service.domain.scenarios import ScenarioRecord
from service.formats.slack.scenarios import ended_message
from service.serialization import to_builtins
from service.usecases.slack.addresses import picture_address

Body = dict[str, Any]
ENDED = "scenario.ended"
RESPONSE_URL_VALID = timedelta(minutes=30)
"""Time after which Slack takes no more messages at a response URL, by docs.slack.dev/interactivity/handling-user-interaction."""


def scenario_entry(row: ScenarioRecord) -> Body:
    """A scenario without request and result, as JSON."""
    body: Body = to_builtins(row)
    return body | {"progress": {"done": row.units_done, "total": row.units}}


def end_event(row: ScenarioRecord) -> Body:
    """Body of a webhook: an event of the Standard Webhooks specification, the same at every attempt. The result is at `url`."""
    data = scenario_entry(row) | {"url": f"/v1/scenarios/{row.id}"}
    return {"type": ENDED, "timestamp": to_builtins(row.updated_at), "data": data}


def end_message(context: AppContext, target: DeliveryTarget, row: ScenarioRecord) -> Body:
    """Body of the Slack message that replaces the one with the pressed button: the card of the result, or why there is none."""
    found = context.store.scenario(row.team, row.id)
    result = None if found is None else found.result
    return ended_message(row, result, target.reading, lambda usd, goal: picture_address(context, target.server or "", usd, goal))
