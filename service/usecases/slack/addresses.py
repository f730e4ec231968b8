"""Addresses between this service and Slack: messages go to its own host and no other, and it fetches pictures from here."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from service.context import AppContext
from service.domain.quantities import Range
from service.domain.slack import SLACK_HOST
from service.formats.slack.range_url import range_url
from service.runtime import webhooks
from service.runtime.webhooks import Destination, Forbidden
from service.serialization import to_json

HEADERS = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "outlay (slack)"}


def slack_destination(context: AppContext, url: str) -> Destination:
    """The parsed address, which is at Slack; with OUTLAY_ALLOW_PRIVATE_WEBHOOKS also on this machine. Raises Forbidden."""
    private = context.settings.allow_private_webhooks
    found = webhooks.destination(url, private=private)
    if found.name == SLACK_HOST and found.scheme == "https":
        return found
    if private and _is_this_machine(found.host):
        return found
    raise Forbidden(f"must be at https://{SLACK_HOST}")


def send_message(context: AppContext, url: str, message: Mapping[str, Any]) -> None:
    """Send a message to a response URL. Raises Undelivered; it is not sent again, as it may have arrived."""
    slack_destination(context, url)
    webhooks.post(url, to_json(message).encode(), HEADERS, private=context.settings.allow_private_webhooks)


def picture_address(context: AppContext, server: str, usd: Range, goal_usd: float | None) -> str | None:
    """The address of the picture of a range; None where Slack cannot fetch it: it does so by https alone."""
    settings = context.settings
    if settings.slack_signing_secret is None or not (server.startswith("https://") or settings.allow_private_webhooks):
        return None
    return range_url(server, settings.slack_signing_secret, usd, goal_usd, context.clock())


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
