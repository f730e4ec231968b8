"""Addresses of range pictures: they hold the figures, their end, and a signature, so that they need no key and no database.

Slack fetches a picture without credentials when a message is shown. An address opens one picture for a day and discloses nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from urllib.parse import urlencode

from service.domain.quantities import Range

PATH = "/slack/range.png"
VALID = timedelta(days=1)
_PURPOSE = b"outlay range picture"


class BadRangeUrl(Exception):
    """The address is not one of this service, or it has ended."""


def range_url(server: str, secret: str, usd: Range, goal_usd: float | None, now: datetime) -> str:
    """The address of a picture of these costs [USD]."""
    goal = "" if goal_usd is None else f"{goal_usd:.2f}"
    figures = ",".join([*(f"{value:.2f}" for value in (usd.p10, usd.p50, usd.p90)), goal])
    until = str(int((now + VALID).timestamp()))
    return f"{server}{PATH}?{urlencode({'usd': figures, 'until': until, 'signature': _sign(secret, figures, until)})}"


def read_figures(secret: str, figures: str, until: str, signature: str, now: datetime) -> tuple[Range, float | None]:
    """The costs and the goal of an address. Raises BadRangeUrl."""
    if not hmac.compare_digest(_sign(secret, figures, until).encode(), signature.encode()) or now.timestamp() > int(until):
        raise BadRangeUrl
    low, middle, high, goal = figures.split(",")
    return Range(float(low), float(middle), float(high)), float(goal) if goal else None


def _sign(secret: str, figures: str, until: str) -> str:
    key = hmac.digest(secret.encode(), _PURPOSE, hashlib.sha256)
    return hmac.new(key, f"{figures}&{until}".encode(), hashlib.sha256).hexdigest()
