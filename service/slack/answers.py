"""Answers to questions: read by the parser of POST /v1/ask, kept where that is allowed, and shown as cards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slack_sdk.models.blocks import ButtonElement

from service.domain.errors import InvalidRequest
from service.formats.slack.alerts import program_buttons
from service.formats.slack.blocks import Message, button, card_message, link_button, text_message
from service.formats.slack.cards import Card, make_card
from service.formats.slack.references import SHARE, WHY, Reference
from service.schemas.ask import LONGEST_QUESTION, ask_body
from service.schemas.results.kinds import KINDS
from service.slack.conversation import Conversation
from service.usecases.ask.completion import completed
from service.usecases.results.keep import Question, find_result, keep
from service.usecases.results.links import make_link, new_token
from service.usecases.scenarios.scenarios import find_scenario
from service.usecases.slack.addresses import picture_address

Body = Mapping[str, Any]
KEPT_DAYS = 90
"""Answers in Slack, and the links that open them, end after this time."""
MOST_CANDIDATES = 10
CHEAPER, COMPARE, OPEN, ASK, TRIALS = "cheaper", "compare", "open", "ask", "trials"
"""Actions of buttons."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A question's kind, its request, its answer, the reference with which it is found again, and whether figures alone are said."""

    kind: str
    request: Body
    answer: Body
    reference: Reference
    figures_only: bool = False


def answer_question(chat: Conversation, text: str) -> Message:
    """The card of the answer, or what is asked back. Raises InvalidRequest where nothing is understood."""
    if len(text) > LONGEST_QUESTION:
        raise InvalidRequest(f"A question has at most {LONGEST_QUESTION:,} characters.")
    body = ask_body(chat.context, chat.who, text, with_answer=True)
    if body["problem"] is not None:
        return text_message(f"{body['understood']['echo']}\n{body['problem']['detail']}")
    if body["answer"] is None:
        return doubt(body["understood"]["echo"], body["unclear"], text)
    found = _asked(body, text)
    if not found.figures_only:
        found = kept(chat, found.kind, found.request, found.answer, text)
    return show(chat, found, reading=_reading(body["understood"]["echo"], body["unclear"]))


def _asked(body: Body, text: str) -> Answered:
    """What a question is answered with, its sentence with the figures that are asked for, found again by the question."""
    understood, answer = body["understood"], {**body["answer"], "summary": body["summary"]}
    return Answered(understood["kind"], understood["request"], answer, Reference(question=text), body["figures_only"])


def kept(chat: Conversation, kind: str, request: Body, answer: Body, question: str) -> Answered:
    """The answer, kept with a link where the channel may write and its kind can be kept."""
    reference = Reference(question=question)
    if kind in KINDS and chat.who.may("write"):
        asked = Question(kind, request, lambda _: answer, expires_in_days=KEPT_DAYS)
        made, token = keep(chat.context, chat.context, chat.who, asked), new_token()
        make_link(chat.context, chat.who, made.row.id, token, KEPT_DAYS)
        reference = Reference(made.row.id, token)
    return Answered(kind, request, answer, reference)


def find_answer(chat: Conversation, reference: Reference) -> Answered:
    """What a button refers to. Raises NotFound for a result that has expired or is another team's, and InvalidRequest."""
    if reference.result is not None:
        found = find_result(chat.context, chat.who, reference.result)
        return Answered(found.row.kind, found.request, found.answer, reference)
    if reference.scenario is not None:
        scenario = find_scenario(chat.context, chat.who, reference.scenario)
        if scenario.result is None:
            raise InvalidRequest("The scenario has no result.")
        return Answered("chance", scenario.request, scenario.result, reference)
    body = ask_body(chat.context, chat.who, reference.question or "", with_answer=True)
    if body["answer"] is None:
        raise InvalidRequest("This cannot be answered any more; ask again.")
    return _asked(body, reference.question or "")


def show(chat: Conversation, found: Answered, *, reading: str | None = None, shared: bool = False) -> Message:
    """The card of an answer; `reading`: what the question was read as."""
    card = make_card(found.kind, found.request, found.answer, reading)
    if found.figures_only:
        card = Card(card.sentence, reading=reading)
    return card_message(card, picture(chat, card), _buttons(chat, found, shared=shared), shared_by=chat.user if shared else None)


def picture(chat: Conversation, card: Card) -> str | None:
    """Address of the card's range; None where there is none, or where Slack cannot fetch it."""
    return None if card.usd is None else picture_address(chat.context, chat.server, card.usd, card.goal_usd)


def doubt(echo: str, unclear: list[Body], text: str) -> Message:
    """What was read and what is asked back, with a button for each candidate."""
    asked = [entry for entry in unclear if entry["blocking"]]
    lines = [echo, *(f"{entry['text']}: {entry['question']}" if entry["text"] else str(entry["question"]) for entry in asked)]
    choices = [(candidate, completed(text, entry["text"], candidate)) for entry in asked[:1] for candidate in entry["candidates"]]
    values = [(label, Reference(question=changed).value()) for label, changed in choices[:MOST_CANDIDATES] if changed is not None]
    buttons = [button(label, f"{ASK}:{place}", value) for place, (label, value) in enumerate(values) if value is not None]
    return text_message("\n".join(lines), buttons)


def _reading(echo: str, unclear: list[Body]) -> str:
    """What was read, and the words that the answer leaves out."""
    return " ".join([echo, *(f"{entry['text']}: {entry['question']}." for entry in unclear)])


def _buttons(chat: Conversation, found: Answered, *, shared: bool) -> list[ButtonElement]:
    value, result = found.reference.value(), found.reference.result
    if value is None:
        return []
    buttons = []
    if found.kind == "estimate" and not found.figures_only:
        buttons = [button("Cheaper ways", CHEAPER, value), button("Compare", COMPARE, value)]
    if found.kind == "chance" and "base" in found.request and found.reference.question is not None and chat.who.may("write"):
        buttons = [button("More trials", TRIALS, value)]
    if found.kind == "status":
        buttons = program_buttons(found.request["id"])
    if result is not None:
        buttons.append(link_button("Open", OPEN, f"{chat.server}/r/{result}?token={found.reference.token}"))
    last = [("Why", WHY)] if shared else [("Why", WHY), ("Share", SHARE)]
    return [*buttons, *(button(label, action, value) for label, action in last)]
