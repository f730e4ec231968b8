"""Scenarios asked from Slack: more trials of a chance, by workers, whose end changes the message."""

from __future__ import annotations

from functools import partial

from service.domain.deliveries import DeliveryTarget
from service.domain.errors import InvalidRequest
from service.domain.jobs import OPEN_STATES
from service.formats.slack.blocks import Message
from service.formats.slack.scenarios import ended_message, running_message
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.slack.answers import Answered
from service.slack.conversation import Conversation
from service.usecases.ask.read import read_question
from service.usecases.scenarios.scenarios import find_scenario, submit
from service.usecases.slack.addresses import picture_address

TRIALS = 1_000_000
"""Ten times as many as a chance is answered by in the request itself."""


def start_trials(chat: Conversation, found: Answered) -> Message:
    """Start a scenario of more trials; its end replaces this message. Raises DomainErrors."""
    if not chat.who.may("write"):
        raise InvalidRequest("This channel may only read, and a scenario is kept: `outlay slack map` with --scope read,write lets it.")
    reading = read_question(chat.context, chat.who, found.reference.question or "").understood.echo
    request = {**found.request, "trials": TRIALS, "early_stop": False}
    notify = DeliveryTarget("slack_response", chat.response_url, server=chat.server, reading=reading)
    row = submit(chat.context, chat.who, build_request(ScenarioRequestSchema().load(request)), request, notify=notify)
    return running_message(row, reading)


def show_progress(chat: Conversation, scenario_id: str) -> Message:
    """How far a scenario is, or its card. Raises NotFound."""
    found = find_scenario(chat.context, chat.who, scenario_id)
    reading = (found.target or {}).get("reading")
    if found.row.state in OPEN_STATES:
        return running_message(found.row, reading)
    return ended_message(found.row, found.result, reading, partial(picture_address, chat.context, chat.server))
