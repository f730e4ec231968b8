"""Alerts as Slack messages: title, text and figures as plain text, and for rules that were made in Slack the range and buttons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slack_sdk.models.blocks import Block, ButtonElement, HeaderBlock, ImageBlock, PlainTextObject, SectionBlock

from service.domain.quantities import Range
from service.formats.headline import money, money_range
from service.formats.reading_order import in_order
from service.formats.slack.blocks import ALTERNATIVE_TEXT, FALLBACK, SECTION, button, button_row, escaped
from service.formats.slack.references import GATE, REPORT, Reference

Message = dict[str, Any]
HEADER = 150
"""Most characters of a header, by docs.slack.dev/reference/block-kit, read on 2026-11-23."""
FIGURES = {
    "spent_usd": "Spent",
    "budget_usd": "Budget",
    "cost_p50_usd": "Forecast, p50",
    "cost_p90_usd": "Forecast, p90",
    "redone_usd": "Redone when going back",
    "saved_usd": "Saved by going back",
}
"""Figures of alerts that are shown, with their names."""


def alert_message(body: Mapping[str, Any], further: list[Block]) -> Message:
    """The message of an alert, as plain text: names in it neither mention users nor become links."""
    title, text = str(body["title"])[:HEADER], str(body["text"])[:SECTION]
    blocks = [HeaderBlock(text=_plain(title)), SectionBlock(text=_plain(text), fields=_figures(body["figures"]) or None), *further]
    return {"text": escaped(text, FALLBACK), "blocks": [block.to_dict() for block in blocks]}


def program_blocks(program: str, usd: Range | None, image_url: str | None) -> list[Block]:
    """The range of a program's cost, and buttons that ask for its report and gate."""
    drawn: list[Block] = []
    if usd is not None and image_url is not None:
        drawn = [ImageBlock(image_url=image_url, alt_text=f"Cost at completion: {money_range(usd)}"[:ALTERNATIVE_TEXT])]
    return [*drawn, *button_row(program_buttons(program))]


def program_buttons(program: str) -> list[ButtonElement]:
    """Buttons that ask for a program's report and gate."""
    value = Reference(program=program).value() or ""
    return [button("Report", REPORT, value), button("Gate", GATE, value)]


def _figures(figures: Mapping[str, Any]) -> list[PlainTextObject]:
    known = [(label, figures[name]) for name, label in FIGURES.items() if isinstance(figures.get(name), int | float)]
    return [_plain(f"{label}\n{money(value)}") for label, value in known]


def _plain(text: str) -> PlainTextObject:
    return PlainTextObject(text=in_order(text), emoji=False)
