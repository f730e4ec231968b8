"""Slack messages in Block Kit, within the lengths that Slack documents; names in them neither mention users nor become links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from slack_sdk.models.blocks import (
    ActionsBlock,
    Block,
    ButtonElement,
    ContextBlock,
    ImageBlock,
    LinkButtonElement,
    MarkdownTextObject,
    PlainTextObject,
    SectionBlock,
)

from service.formats.headline import money_range
from service.formats.reading_order import in_order
from service.formats.slack.cards import Card

Message = dict[str, Any]
SECTION = 3000
FIELD = 2000
ALTERNATIVE_TEXT = 2000
BUTTON_TEXT = 75
BUTTON_VALUE = 2000
NOTE = 500
FALLBACK = 3000
MOST_BUTTONS = 25
"""Most characters of each part, and most buttons of a row, by docs.slack.dev/reference/block-kit, read on 2026-11-23."""
EPHEMERAL, IN_CHANNEL = "ephemeral", "in_channel"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def message(blocks: Iterable[Block], fallback: str, *, shared: bool = False) -> Message:
    """A message for a response URL: to the person who asked alone, or to the channel. It replaces no earlier one; see `replacing`."""
    return {
        "response_type": IN_CHANNEL if shared else EPHEMERAL,
        "replace_original": False,
        "text": escaped(fallback, FALLBACK),
        "blocks": [block.to_dict() for block in blocks],
    }


def replacing(made: Message) -> Message:
    """The message in place of the one whose button was pressed."""
    return made | {"replace_original": True}


def text_message(text: str, buttons: Sequence[ButtonElement] = ()) -> Message:
    """A message of text and buttons to the person who asked."""
    return message([section(text), *button_row(buttons)], text)


def card_message(card: Card, image_url: str | None, buttons: Sequence[ButtonElement], *, shared_by: str | None = None) -> Message:
    """A card: bold sentence, fields, range, warning, what was read, buttons. `shared_by`: id of the user who shows it to the channel."""
    blocks: list[Block] = [
        SectionBlock(text=MarkdownTextObject(text=bold(card.sentence)), fields=[_field(*field) for field in card.fields] or None)
    ]
    if card.usd is not None and image_url is not None:
        alternative = f"Cost: {money_range(card.usd)}"
        blocks.append(ImageBlock(image_url=image_url, alt_text=alternative[:ALTERNATIVE_TEXT]))
    if card.warning is not None:
        blocks.append(note(f":warning: {escaped(card.warning, NOTE)}"))
    if card.reading is not None:
        blocks.append(note(escaped(card.reading, SECTION)))
    if shared_by is not None:
        blocks.append(note(f"Shared by <@{shared_by}>"))
    return message([*blocks, *button_row(buttons)], card.sentence, shared=shared_by is not None)


def section(text: str) -> SectionBlock:
    """A paragraph of text."""
    return SectionBlock(text=MarkdownTextObject(text=escaped(text, SECTION)))


def note(marked: str) -> ContextBlock:
    """A line of small text in Slack's markup."""
    return ContextBlock(elements=[MarkdownTextObject(text=marked)])


def button(label: str, action: str, value: str) -> ButtonElement:
    """A button that asks this service. Raises SlackObjectFormationError when shown with a value that is too long."""
    return ButtonElement(text=PlainTextObject(text=label[:BUTTON_TEXT], emoji=False), action_id=action, value=value)


def link_button(label: str, action: str, url: str) -> ButtonElement:
    """A button that opens an address."""
    return LinkButtonElement(text=PlainTextObject(text=label[:BUTTON_TEXT], emoji=False), action_id=action, url=url)


def button_row(buttons: Sequence[ButtonElement]) -> list[Block]:
    """The buttons in a row; none where there are none."""
    return [ActionsBlock(elements=list(buttons[:MOST_BUTTONS]))] if buttons else []


def bold(text: str) -> str:
    """The text in bold, escaped; asterisks in it would end the bold."""
    return f"*{escaped(text.replace('*', ''), SECTION - 2)}*"


def escaped(text: str, most: int) -> str:
    """The text with Slack's control characters escaped, at most so long: `<!channel>` in a name would notify everybody."""
    parts = [_ESCAPES.get(character, character) for character in in_order(text)]
    while sum(map(len, parts)) > most:
        parts = [*parts[: max(len(parts) * 9 // 10 - 1, 0)], "…"]
    return "".join(parts)


def _field(name: str, text: str) -> MarkdownTextObject:
    return MarkdownTextObject(text=f"*{escaped(name, NOTE)}*\n{escaped(text, FIELD - NOTE - 3)}")
