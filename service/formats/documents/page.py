"""Pages without external parts: style and charts are inline, scripts and addresses are not allowed. They print as they look."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from service.formats.reading_order import in_order

STYLES = {"program": "page.css", "procurement": "pack.css", "report": "report.css", "result": "result.css"}


def render_page(template: str, style: str, content: dict[str, Any]) -> bytes:
    """A page in UTF-8. All text of `content` is escaped."""
    return in_order(_environment().get_template(template).render(**content, style=style, policy=content_policy(style))).encode()


@cache
def content_policy(style: str) -> str:
    """The Content-Security-Policy that the page states itself: its own style and nothing else."""
    content = _environment().get_template(style).render()
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'"


@cache
def _environment() -> Environment:
    loader = PackageLoader("service.formats.documents")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
