"""Delivery of alerts: signed, sent, retried with growing pauses, and given up after about a day."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from slack_sdk.models.blocks import Block
from standardwebhooks import Webhook

from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.tracking.alerts import TEST, AlertTarget
from service.formats.slack.alerts import alert_message, program_blocks
from service.runtime import webhooks
from service.runtime.webhooks import Gone, Undelivered
from service.serialization import to_builtins
from service.store import ClaimedDelivery
from service.usecases.slack.addresses import picture_address
from service.usecases.tracking.alerts import rule_from_record
from service.usecases.tracking.status import program_status

log = logging.getLogger(__name__)

PAUSES_S = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600)
"""Pause after each failed attempt [s]: 28 hours in all, growing as the Standard Webhooks specification recommends."""
MAX_ATTEMPTS = len(PAUSES_S) + 1
JITTER = 0.2
"""Random relative extension of a pause, so that deliveries that failed together are not retried together."""
MAX_CONCURRENT = 16
"""Concurrent attempts; each takes at most 8 s, so that a worker is free again within about 10 s."""
LEASE = timedelta(seconds=60)
USER_AGENT = "outlay (alerts)"

_RANDOM = random.SystemRandom()


class SendMessage(Protocol):
    """Sends a message to an address. Raises Undelivered."""

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> None: ...


def deliver_due(context: AppContext, post: SendMessage = webhooks.post, jitter: Callable[[], float] = _RANDOM.random) -> int:
    """Attempt up to MAX_CONCURRENT due deliveries concurrently; returns the number attempted. Claimed deliveries are left to their
    process."""
    claimed = context.store.claim_deliveries(context.clock(), LEASE, MAX_CONCURRENT, MAX_ATTEMPTS)
    if not claimed:
        return 0
    with ThreadPoolExecutor(len(claimed), thread_name_prefix="delivery") as pool:
        for outgoing, error in zip(claimed, pool.map(partial(_attempt, context, post), claimed), strict=True):
            _settle(context, outgoing, error, jitter)
    return len(claimed)


def webhook_message(outgoing: ClaimedDelivery) -> dict[str, Any]:
    """Body of a webhook: an event of the Standard Webhooks specification, the same at every attempt."""
    alert, rule = outgoing.alert, outgoing.rule
    kind = TEST if alert.subject == TEST else rule.body["kind"]
    return {
        "type": f"alert.{kind}",
        "timestamp": to_builtins(alert.at),
        "data": {"id": alert.id, "rule": rule.id, "program": alert.program, **alert.body},
    }


def slack_message(context: AppContext, target: AlertTarget, outgoing: ClaimedDelivery) -> dict[str, Any]:
    """Body of a Slack message; of a rule that was made in Slack with the program's range and buttons."""
    return alert_message(outgoing.alert.body, _program_blocks(context, target.server, outgoing) if target.server else [])


def _program_blocks(context: AppContext, server: str, outgoing: ClaimedDelivery) -> list[Block]:
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


def sign_headers(secret: str, delivery: str, at: datetime, body: str) -> dict[str, str]:
    """Headers of the Standard Webhooks specification. The id is that of the delivery, so that a receiver recognises a repeat."""
    signature = Webhook(secret).sign(msg_id=delivery, timestamp=at, data=body)
    return {"webhook-id": delivery, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


def _attempt(context: AppContext, post: SendMessage, outgoing: ClaimedDelivery) -> Undelivered | None:
    target = rule_from_record(outgoing.rule).targets[outgoing.delivery.target]
    body, headers = _request(context, target, outgoing)
    try:
        post(target.url, body, headers, private=context.settings.allow_private_webhooks)
    except Undelivered as error:
        return error
    return None


def _request(context: AppContext, target: AlertTarget, outgoing: ClaimedDelivery) -> tuple[bytes, dict[str, str]]:
    headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
    if target.secret is None:
        return json.dumps(slack_message(context, target, outgoing)).encode(), headers
    body = json.dumps(webhook_message(outgoing), sort_keys=True, allow_nan=False)
    return body.encode(), headers | sign_headers(target.secret, outgoing.delivery.id, context.clock(), body)


def _settle(context: AppContext, outgoing: ClaimedDelivery, error: Undelivered | None, jitter: Callable[[], float]) -> None:
    store, delivery, now = context.store, outgoing.delivery, context.clock()
    if error is None:
        store.settle_delivery(delivery, "sent", now)
    elif isinstance(error, Gone) or delivery.attempts >= MAX_ATTEMPTS:
        where = (outgoing.alert.id, delivery.target)
        log.warning("alert %s was not delivered to target %s, after %s attempts: %s", *where, delivery.attempts, error)
        store.settle_delivery(delivery, "failed", now, error=str(error))
    else:
        pause_s = PAUSES_S[delivery.attempts - 1] * (1 + JITTER * jitter())
        store.settle_delivery(delivery, "pending", now, error=str(error), due_at=now + timedelta(seconds=pause_s))
