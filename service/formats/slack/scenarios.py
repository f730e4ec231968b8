"""Scenarios in Slack: what is said while one runs, and the card when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from service.domain.quantities import Range
from service.domain.scenarios import ScenarioRecord
from service.formats.slack.blocks import Message, button, card_message, replacing, text_message
from service.formats.slack.cards import make_card
from service.formats.slack.references import PROGRESS, SHARE, WHY, Reference

PictureAddress = Callable[[Range, float | None], str | None]
"""The address of the picture of a cost [USD] and its goal [USD]."""
SUCCEEDED = "succeeded"


def running_message(row: ScenarioRecord, reading: str | None) -> Message:
    """The message while a scenario has not ended: how far it is, with a button that looks again."""
    done = f"{row.units_done:,} of {row.units:,} trials are done" if row.units_done else f"{row.units:,} trials are queued"
    text = f"{done}; this message changes when they have ended."
    value = Reference(scenario=row.id).value() or ""
    return replacing(text_message("\n".join(filter(None, (reading, text))), [button("Progress", PROGRESS, value)]))


def ended_message(row: ScenarioRecord, result: Mapping[str, Any] | None, reading: str | None, picture: PictureAddress) -> Message:
    """The card of a scenario's result, or why it has none, in place of the message before."""
    if row.state != SUCCEEDED or result is None:
        why = f": {row.error}" if row.error else ""
        return replacing(text_message("\n".join(filter(None, (reading, f"The trials have ended without a result: {row.state}{why}")))))
    card = make_card("chance", {}, result, " ".join(filter(None, (reading, f"{row.units_done:,} trials."))))
    image_url = None if card.usd is None else picture(card.usd, card.goal_usd)
    value = Reference(scenario=row.id).value() or ""
    return replacing(card_message(card, image_url, [button("Why", WHY, value), button("Share", SHARE, value)]))
