"""Templates and what they all may use: figures in words, addresses of assets, the present session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

from flask import Response, request
from jinja2 import Environment, PackageLoader, StrictUndefined

from service.api.http import sessions
from service.domain.quantities import Range
from service.formats import headline
from service.formats.field_words import choice_words, path_words
from service.formats.option_words import option_words
from service.formats.reading_order import in_order
from service.web.assets import asset_address
from service.web.plain_words import field_in_words, in_plain_text, in_typed_words, in_words

HTML = "text/html; charset=utf-8"
Answer = Mapping[str, Any]
SECTIONS = (
    ("/", "Home"),
    ("/estimate", "Estimate"),
    ("/compare", "Compare"),
    ("/buy-or-rent", "Buy or rent"),
    ("/programs", "Programs"),
    ("/scenarios", "Scenarios"),
    ("/prices", "Prices"),
    ("/settings", "Settings"),
)
"""The pages that every page leads to: address and name."""


def page(template: str, status: int = 200, **content: Any) -> Response:
    """A page as response. All text of `content` is escaped, and none turns the order around in which the rest is read."""
    session = {"form_token": sessions.form_token(), "signed_in": bool(sessions.form_token())}
    text = environment().get_template(template).render(**content, **session, sections=SECTIONS, path=request.path)
    return Response(in_order(text), status, content_type=HTML)


def moment(at: datetime) -> str:
    """A time as people read it."""
    return f"{headline.day(at)} {at:%H:%M} UTC"


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them: aws, azure and gcp."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def query_string(fields: Mapping[str, str]) -> str:
    """Fields as the query of an address."""
    return urlencode(fields)


@cache
def environment() -> Environment:
    """The templates' environment."""
    made = Environment(
        loader=PackageLoader("service.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.globals |= {"asset": asset_address, "token_field": sessions.TOKEN_FIELD}
    made.filters |= {
        "money": headline.money,
        "count": headline.count,
        "duration": headline.duration,
        "short_name": headline.short_name,
        "money_range": lambda usd: headline.money_range(_range(usd)),
        "duration_range": lambda hours: headline.duration_range(_range(hours)),
        "listing": listing,
        "moment": moment,
        "days": lambda hours: f"{hours / headline.HOURS_PER_DAY:.3g}",
        "share": lambda value: f"{value:.0%}",
        "query": query_string,
        "day": headline.day,
        "words": path_words,
        "choice": choice_words,
        "option_words": option_words,
        "field": field_in_words,
        "plain": in_words,
        "typed": in_typed_words,
        "plain_text": in_plain_text,
    }
    return made


def _range(quantity: Answer) -> Range:
    return Range(*(float(quantity[point]) for point in ("p10", "p50", "p90")))
