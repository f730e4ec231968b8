"""Targets of messages: addresses on the public internet, and secrets that sign what is sent there."""

from __future__ import annotations

import base64
import binascii
import secrets

from service.context import AppContext
from service.domain.deliveries import DeliveryTarget
from service.domain.errors import InvalidRequest
from service.domain.slack import SLACK_HOST
from service.runtime.webhooks import Forbidden, destination

SECRET_PREFIX = "whsec_"  # noqa: S105  # prefix of a secret, by the Standard Webhooks specification
SECRET_BYTES = (24, 64)
"""Least and most bytes of a secret, by the same specification."""
GENERATED_BYTES = 32


def webhook_target(context: AppContext, url: str, secret: str | None, url_pointer: str, secret_pointer: str) -> DeliveryTarget:
    """A webhook; without a secret it gets one. Raises InvalidRequest for a forbidden address and a malformed secret."""
    _checked(context, url, url_pointer)
    if secret is None:
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(GENERATED_BYTES)).decode()
    _check_secret(secret, secret_pointer)
    return DeliveryTarget("webhook", url, secret)


def slack_target(context: AppContext, url: str, server: str | None, pointer: str) -> DeliveryTarget:
    """An incoming webhook of Slack. Raises InvalidRequest for other addresses."""
    if _checked(context, url, pointer) != SLACK_HOST:
        raise InvalidRequest(f"must be a Slack incoming webhook, https://{SLACK_HOST}/services/…", pointer)
    return DeliveryTarget("slack", url, server=server)


def address_host(url: str) -> str:
    """Host of a target's address: its path is often a secret. The address is not checked again."""
    return destination(url, private=True).name


def _checked(context: AppContext, url: str, pointer: str) -> str:
    """Host of an address, with its port unless that is the default. Raises InvalidRequest for a forbidden address."""
    try:
        return destination(url, private=context.settings.allow_private_webhooks).name
    except Forbidden as error:
        raise InvalidRequest(str(error), pointer) from None


def _check_secret(secret: str, pointer: str) -> None:
    fewest, most = SECRET_BYTES
    try:
        length = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        length = 0
    if not (secret.startswith(SECRET_PREFIX) and fewest <= length <= most):
        raise InvalidRequest(f"must be {SECRET_PREFIX} and the base64 of {fewest} to {most} random bytes; leave it out to get one", pointer)
