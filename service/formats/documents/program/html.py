"""A plan as one page that needs nothing beside it: style and plots stand in it, scripts and addresses do not. It prints as it looks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from service.formats.documents.program.sections import footer, sections


def write(answer: Mapping[str, Any]) -> bytes:
    """The page in UTF-8. Whatever it was given as text is text in it."""
    page = environment().get_template("program.html")
    said = {"title": answer["name"], "sections": sections(answer), "footer": footer(answer), "pictures": _pictures(answer)}
    return page.render(**said, policy=content_policy()).encode()


@cache
def content_policy(style: str = "program.css") -> str:
    """The Content-Security-Policy that a page works under, and states itself: its own style and nothing else."""
    content = environment().get_template(style).render()
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'"


@cache
def environment() -> Environment:
    loader = PackageLoader("service.formats.documents")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _pictures(answer: Mapping[str, Any]) -> dict[str, str]:
    """Plots by the section they stand in."""
    from service.formats.documents.program.charts import budget_chart, burn_chart, finish_chart

    return {"budget": _drawn(budget_chart, answer), "schedule": _drawn(finish_chart, answer), "burn_plan": _drawn(burn_chart, answer)}


def _drawn(chart: Callable[[Mapping[str, Any]], Any], answer: Mapping[str, Any]) -> str:
    from service.formats.documents.charts import svg

    return svg(chart(answer))
