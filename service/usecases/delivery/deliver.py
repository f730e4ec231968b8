"""Delivery of messages: signed, sent, retried with growing pauses, and given up after about a day."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from standardwebhooks import Webhook

from service.context import AppContext
from service.domain.deliveries import WEBHOOK_HEADERS, DeliveryTarget
from service.domain.metrics import DELIVERY_ATTEMPTS
from service.runtime import metrics, webhooks
from service.runtime.webhooks import Gone, Undelivered
from service.store import ClaimedAlert, ClaimedDelivery
from service.usecases.scenarios.end_messages import RESPONSE_URL_VALID, end_event, end_message
from service.usecases.tracking.alert_messages import alert_event, slack_message
from service.usecases.tracking.alerts import rule_from_record

log = logging.getLogger(__name__)

PAUSES_S = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600)
"""Pause after each failed attempt [s]: 28 hours in all, growing as the Standard Webhooks specification recommends."""
MAX_ATTEMPTS = len(PAUSES_S) + 1
JITTER = 0.2
"""Random relative extension of a pause, so that deliveries that failed together are not retried together."""
MAX_CONCURRENT = 16
"""Concurrent attempts; each takes at most 8 s, so that a worker is free again within about 10 s."""
LEASE = timedelta(seconds=60)
USER_AGENT = "outlay (webhooks)"

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


def sign_headers(secret: str, delivery: str, at: datetime, body: str) -> dict[str, str]:
    """Headers of the Standard Webhooks specification. The id is that of the delivery, so that a receiver recognises a repeat."""
    signature = Webhook(secret).sign(msg_id=delivery, timestamp=at, data=body)
    return dict(zip(WEBHOOK_HEADERS, (delivery, str(int(at.timestamp())), signature), strict=True))


def _attempt(context: AppContext, post: SendMessage, outgoing: ClaimedDelivery) -> Undelivered | None:
    target = _target(outgoing)
    body, headers = _request(context, target, outgoing)
    try:
        post(target.url, body, headers, private=context.settings.allow_private_webhooks)
    except Undelivered as error:
        return error
    return None


def _target(outgoing: ClaimedDelivery) -> DeliveryTarget:
    if isinstance(outgoing, ClaimedAlert):
        return rule_from_record(outgoing.rule).targets[outgoing.delivery.target]
    return DeliveryTarget(**outgoing.target)


def _request(context: AppContext, target: DeliveryTarget, outgoing: ClaimedDelivery) -> tuple[bytes, dict[str, str]]:
    headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
    if target.secret is None:
        return json.dumps(_slack_message(context, target, outgoing)).encode(), headers
    event = alert_event(outgoing) if isinstance(outgoing, ClaimedAlert) else end_event(outgoing.scenario)
    body = json.dumps(event, sort_keys=True, allow_nan=False)
    return body.encode(), headers | sign_headers(target.secret, outgoing.delivery.id, context.clock(), body)


def _slack_message(context: AppContext, target: DeliveryTarget, outgoing: ClaimedDelivery) -> dict[str, Any]:
    if isinstance(outgoing, ClaimedAlert):
        return slack_message(context, target, outgoing)
    return end_message(context, target, outgoing.scenario)


def _settle(context: AppContext, outgoing: ClaimedDelivery, error: Undelivered | None, jitter: Callable[[], float]) -> None:
    store, delivery, now = context.store, outgoing.delivery, context.clock()
    if error is None:
        store.settle_delivery(delivery, "sent", now)
        metrics.count(DELIVERY_ATTEMPTS, "delivered")
        return
    pause = timedelta(seconds=PAUSES_S[delivery.attempts - 1] * (1 + JITTER * jitter())) if delivery.attempts < MAX_ATTEMPTS else None
    if isinstance(error, Gone) or pause is None or _is_over(outgoing, now + pause):
        what = f"alert {outgoing.alert.id}" if isinstance(outgoing, ClaimedAlert) else f"the end of scenario {outgoing.scenario.id}"
        log.warning("%s was not delivered to target %s, after %s attempts: %s", what, delivery.target, delivery.attempts, error)
        store.settle_delivery(delivery, "failed", now, error=str(error))
        metrics.count(DELIVERY_ATTEMPTS, "dead")
        return
    store.settle_delivery(delivery, "pending", now, error=str(error), due_at=now + pause)
    metrics.count(DELIVERY_ATTEMPTS, "failed")


def _is_over(outgoing: ClaimedDelivery, at: datetime) -> bool:
    """Whether the address has ended by then, as Slack's response URLs do."""
    if isinstance(outgoing, ClaimedAlert) or outgoing.target["kind"] != "slack_response":
        return False
    return at >= outgoing.scenario.created_at + RESPONSE_URL_VALID
