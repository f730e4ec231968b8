"""Commands about a tracked program: its report, its half-spend gate, and alerts about its budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from service.domain.errors import DomainError, InvalidRequest
from service.domain.tracking.quality import MetricQuality
from service.domain.tracking.records import ProgramRecord
from service.domain.tracking.status import RunStatus
from service.formats.headline import money
from service.formats.slack.blocks import Message, card_message, message, section, text_message
from service.formats.slack.cards import status_card
from service.schemas.tracking.presenters import status_body
from service.serialization import to_builtins
from service.slack.answers import doubt, picture
from service.slack.conversation import Conversation
from service.usecases.ask.read import read_question
from service.usecases.tracking.alerts import create_rule
from service.usecases.tracking.programs import find_program
from service.usecases.tracking.report import program_report
from service.usecases.tracking.status import program_status

MOST_RUNS = 10
WATCH = re.compile(r"(?P<program>.+?)\s+at\s+(?P<shares>[0-9][0-9.,%\s]*)", re.IGNORECASE | re.ASCII)
SHARES = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?", re.ASCII)
WATCH_FORM = "watch PROGRAM at 50,80,100%"


class NoWebhook(DomainError):
    """Alerts cannot be sent to the channel."""


def report(chat: Conversation, name: str) -> Message:
    """The program's health with figures, notes, cost drivers and runs."""
    return _about(chat, "report", name, partial(program_health, chat))


def gate(chat: Conversation, name: str) -> Message:
    """What is recommended at the half-spend gate, and why."""
    return _about(chat, "gate", name, partial(program_gate, chat))


def watch(chat: Conversation, words: str) -> Message:
    """A new alert rule for shares of the budget, with the channel as target. Raises InvalidRequest and NoWebhook."""
    found = WATCH.fullmatch(words)
    shares = [float(text) / 100 for text in SHARES.findall(found["shares"])] if found else []
    if found is None or not all(0 < share <= 10 for share in shares):
        raise InvalidRequest(f"Write the program and parts of its budget, such as: {WATCH_FORM}")
    _check_may_watch(chat)
    return _about(chat, "watch", found["program"], partial(_watch, chat, tuple(sorted(set(shares)))))


def _about(chat: Conversation, command: str, name: str, answer: Callable[[ProgramRecord], Message]) -> Message:
    """The answer about the program that the words name, or what is asked back."""
    if not name:
        raise InvalidRequest(f"Which program? Write its name, such as: {command} support-assistant 7B")
    reading = read_question(chat.context, chat.who, f"status {name}")
    if not reading.answerable or "id" not in reading.understood.request:
        return doubt(reading.understood.echo, to_builtins(reading.unclear), f"{command} {name}")
    return answer(find_program(chat.context, chat.who, reading.understood.request["id"]))


def program_health(chat: Conversation, program: ProgramRecord) -> Message:
    """The card of a program's status, with notes, what moves the cost, and runs."""
    found = program_report(chat.context, program)
    status = status_body(found.tracked)
    card = status_card(f"{program.body['name']}: {found.headline.text}", status, program.body.get("budget_usd"))
    parts = card_message(card, picture(chat, card), ())
    drivers = found.tracked.status.cost_drivers
    fallen = [_regressed(metric) for metric in found.tracked.status.quality if metric.state == "regressed"]
    lines = [*found.headline.notes, *fallen, *([drivers.headline] if drivers else []), *map(_run, found.tracked.status.runs[:MOST_RUNS])]
    details = message([section("\n".join(f"• {line}" for line in lines))], "")["blocks"] if lines else []
    return parts | {"blocks": [*parts["blocks"], *details]}


def _regressed(metric: MetricQuality) -> str:
    back = metric.going_back
    cost = "" if back is None or back.usd is None else f"; going back redoes {money(back.usd)}"
    return f"{metric.run}: {metric.metric} has dropped from {metric.level:.4g} to {metric.last:.4g} since {metric.since:%Y-%m-%d}{cost}"


def _run(run: RunStatus) -> str:
    spent = "spend not known" if run.spend.usd is None else f"{money(run.spend.usd)} spent"
    share = run.earned_value.tokens_share
    return f"{run.name}: {run.state}, {spent}" + ("" if share is None else f", {share:.0%} of the work done")


def program_gate(chat: Conversation, program: ProgramRecord) -> Message:
    """What the half-spend gate recommends, the ways on from it, and what gates of tiers recommend that are due."""
    status = program_status(chat.context, program).status
    found = status.gate
    when = "is due" if found.due else "is not due" + ("" if found.due_usd is None else f" before {money(found.due_usd)} are spent")
    decided = f" It was decided: {found.decided}." if found.decided else ""
    lines = [f"{program.body['name']}: the half-spend gate {when}; {found.recommendation} is recommended.{decided}"]
    ways = [] if found.decision is None else [f"• {branch.statement}" for branch in found.decision.branches]
    due = [
        f"The gate {gate.tier} is due; {gate.recommendation or 'nothing'} is recommended: {'; '.join(gate.reasons)}"
        for gate in status.tier_gates
        if gate.due
    ]
    return text_message("\n".join([*lines, *(f"• {reason}" for reason in found.reasons), *ways, *due]))


def _watch(chat: Conversation, shares: tuple[float, ...], program: ProgramRecord) -> Message:
    rule = {"kind": "budget", "shares": shares, "targets": [{"slack": chat.channel.webhook, "server": chat.server}]}
    create_rule(chat.context, program, rule, None)
    return text_message(f"{program.body['name']} is watched: this channel hears when {_listed(shares)} of its budget are spent.")


def _listed(shares: tuple[float, ...]) -> str:
    return ", ".join(f"{share * 100:g} %" for share in shares)


def _check_may_watch(chat: Conversation) -> None:
    if not chat.who.may("write"):
        raise InvalidRequest("This channel may only read: `outlay slack map` with --scope read,write lets it create alerts.")
    if chat.channel.webhook is None:
        raise NoWebhook("This channel has no incoming webhook that alerts can be sent to: `outlay slack map` takes it as --webhook.")
