"""Alerts as messages: events of webhooks, and Slack messages."""

from __future__ import annotations

import logging
from typing import Any

from slack_sdk.models.blocks import Block

from service.context import AppContext
from service.domain.deliveries import DeliveryTarget
from service.domain.errors import StoreUnavailable
from service.domain.tracking.alerts import TEST
from service.formats.slack.alerts import alert_message, program_blocks
from service.serialization import to_builtins
from service.store import ClaimedAlert
from service.usecases.slack.addresses import picture_address
from service.usecases.tracking.status import program_status

log = logging.getLogger(__name__)


def alert_event(outgoing: ClaimedAlert) -> dict[str, Any]:
    """Body of a webhook: an event of the Standard Webhooks specification, the same at every attempt."""
    alert, rule = outgoing.alert, outgoing.rule
    kind = TEST if alert.subject == TEST else rule.body["kind"]
    return {
        "type": f"alert.{kind}",
        "timestamp": to_builtins(alert.at),
        "data": {"id": alert.id, "rule": rule.id, "program": alert.program, **alert.body},
    }


def slack_message(context: AppContext, target: DeliveryTarget, outgoing: ClaimedAlert) -> dict[str, Any]:
    """Body of a Slack message; of a rule that was made in Slack with the program's range and buttons."""
    return alert_message(outgoing.alert.body, _program_blocks(context, target.server, outgoing) if target.server else [])


def _program_blocks(context: AppContext, server: str, outgoing: ClaimedAlert) -> list[Block]:
    """The program's range and buttons; the buttons alone where the range cannot be read: the alert does not wait for it."""
    usd = image_url = None
    try:
        program = context.store.program(outgoing.rule.team, outgoing.alert.program)
        if program is not None:
            usd = program_status(context, program).status.forecast.cost_usd
            image_url = None if usd is None else picture_address(context, server, usd, program.body.get("budget_usd"))
    except StoreUnavailable as error:
        log.warning("an alert goes to Slack without its picture: %s", error)
    return program_blocks(outgoing.alert.program, usd, image_url)
