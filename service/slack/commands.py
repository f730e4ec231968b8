"""The words after /outlay: a question of POST /v1/ask, or a command about a program or a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.domain.ask import EXAMPLES
from service.formats.slack.blocks import Message, text_message
from service.slack.answers import answer_question
from service.slack.conversation import Conversation
from service.slack.programs import gate, report, watch
from service.slack.reasons import explain

COMMANDS: Mapping[str, Callable[[Conversation, str], Message]] = {
    "report": report,
    "gate": gate,
    "watch": watch,
    "why": explain,
    "help": lambda _chat, _words: help_message(),
}
"""By first word; everything else is a question, `status PROGRAM` among them."""
FORMS: tuple[str, ...] = ("status PROGRAM", "report PROGRAM", "gate PROGRAM", "watch PROGRAM at 50,80,100%", "why ID", "help")


def answer_text(chat: Conversation, text: str) -> Message:
    """The answer to what somebody wrote after the command. Raises DomainErrors."""
    words = unescaped(text).strip()
    word, _, rest = words.partition(" ")
    command = COMMANDS.get(word.lower())
    return answer_question(chat, words) if command is None else command(chat, rest.strip())


def unescaped(text: str) -> str:
    """The text as it was typed: Slack writes three characters as entities."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def help_message() -> Message:
    """How to ask."""
    questions, commands = ([f"• /outlay {words}" for words in listed] for listed in (EXAMPLES[:-1], FORMS))
    return text_message("\n".join(["Ask in words, such as:", *questions, "Of tracked programs and answers:", *commands]))
