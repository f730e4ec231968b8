"""What the buttons of a card ask: cheaper ways, a comparison, why, share, and the question with another name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.tracking.records import ProgramRecord
from service.formats.headline import count, money
from service.formats.slack.blocks import Message, text_message
from service.formats.slack.references import GATE, PROGRESS, REPORT, SHARE, WHY, BadReference, read_reference
from service.schemas.results.kinds import KINDS
from service.slack.answers import ASK, CHEAPER, COMPARE, TRIALS, Answered, find_answer, kept, show
from service.slack.commands import answer_text
from service.slack.conversation import Conversation
from service.slack.programs import program_gate, program_health
from service.slack.reasons import reasons
from service.slack.scenarios import show_progress, start_trials
from service.usecases.tracking.programs import find_program

Body = Mapping[str, Any]
CHANGED = "This button is of an earlier version; ask again."
MOST_LEVERS = 5
LEAST_DAYS = 0.01
"""Shorter savings of time are not named."""
LEAST_SHORT = 10**8
"""Counts from this on are shown with three figures and a suffix."""
OF_THE_RUN_ALONE = ("hardware", "price", "levers")
"""Parts of an estimate's request that a comparison's workload does not have."""


def press(chat: Conversation, action: str, value: str) -> Message:
    """The answer to a pressed button. Raises DomainErrors."""
    try:
        reference = read_reference(value)
    except BadReference as error:
        raise InvalidRequest(CHANGED) from error
    name = action.partition(":")[0]
    if name == ASK:
        return answer_text(chat, reference.question or "")
    if name in _OF_PROGRAMS:
        return _OF_PROGRAMS[name](chat, find_program(chat.context, chat.who, reference.program or ""))
    if name == PROGRESS:
        return show_progress(chat, reference.scenario or "")
    if name not in _ACTIONS:
        raise InvalidRequest(CHANGED)
    return _ACTIONS[name](chat, find_answer(chat, reference))


def _cheaper(chat: Conversation, found: Answered) -> Message:
    """Single changes that save something, by estimates of the whole run."""
    kind = KINDS["estimate"]
    levers = kind.answer(chat.context, kind.schema.load({**found.request, "levers": True})).get("levers") or []
    if not levers:
        return text_message("No single change of this run saves more than 1 % of it.")
    return text_message("\n".join(["Single changes that save, each by an estimate of its own:", *map(_lever, levers[:MOST_LEVERS])]))


def _lever(lever: Body) -> str:
    change = ", ".join(f"{path} = {value}" for path, value in _changed("", lever["change"]))
    title = f"{lever['title']} ({change})" if change else lever["title"]
    days = f" and {lever['saves_days']:.3g} days" if lever["saves_days"] >= LEAST_DAYS else ""
    return f"• {title}: saves {money(lever['saves_usd'])}{days}. Risk: {lever['risk']}"


def _changed(path: str, change: Any) -> Iterator[tuple[str, str]]:
    """Each changed field with its value, large counts with a suffix."""
    if isinstance(change, Mapping):
        for name, below in change.items():
            yield from _changed(f"{path}.{name}" if path else name, below)
    elif change is not None:
        yield path, count(change) if isinstance(change, int) and change >= LEAST_SHORT else str(change)


def _compare(chat: Conversation, found: Answered) -> Message:
    """The same run on all offers, with as many accelerators."""
    workload = {name: part for name, part in found.request.items() if name not in OF_THE_RUN_ALONE}
    request = {"workload": workload, "candidates": {"counts": [found.request["hardware"]["count"]]}}
    kind = KINDS["compare"]
    answer = kind.answer(chat.context, kind.schema.load(request))
    return show(chat, kept(chat, "compare", request, answer, found.reference.question or ""))


def _why(chat: Conversation, found: Answered) -> Message:
    del chat
    return reasons(found)


def _share(chat: Conversation, found: Answered) -> Message:
    return show(chat, found, shared=True)


_ACTIONS: Mapping[str, Callable[[Conversation, Answered], Message]] = {
    CHEAPER: _cheaper,
    COMPARE: _compare,
    WHY: _why,
    SHARE: _share,
    TRIALS: start_trials,
}
_OF_PROGRAMS: Mapping[str, Callable[[Conversation, ProgramRecord], Message]] = {REPORT: program_health, GATE: program_gate}
