"""Why an answer is as it is: what moves it, prices with their sources, assumptions, and the published run most like it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.domain.errors import NotFound
from service.domain.results import offers_in
from service.formats.documents.results.tables import summary_text
from service.formats.headline import money
from service.formats.slack.blocks import Message, message, section
from service.formats.slack.references import Reference
from service.slack.answers import Answered, find_answer
from service.slack.conversation import Conversation

Body = Mapping[str, Any]
MOST_SHOWN = 5


def explain(chat: Conversation, result_id: str) -> Message:
    """Why a kept result is as it is. Raises NotFound."""
    try:
        return reasons(find_answer(chat, Reference(result_id)))
    except NotFound:
        raise NotFound(f"There is no result {result_id}; its id is at the end of the address that Open leads to.") from None


def reasons(found: Answered) -> Message:
    """Drivers, prices, assumptions and the comparable run, each in a paragraph."""
    paragraphs = [text for text in (_drivers(found), _prices(found), _assumptions(found), _comparable(found)) if text]
    summary = summary_text(found.answer)
    return message(map(section, [summary, *paragraphs]), summary)


def _summary(found: Answered) -> Body:
    """The figures of the summary; none where the kind's summary is a sentence."""
    summary = found.answer["summary"]
    return summary if isinstance(summary, Mapping) else {}


def _drivers(found: Answered) -> str:
    return _paragraph("What moves it most", (f"{entry['field']}: {entry['effect']}" for entry in _summary(found).get("drivers") or ()))


def _prices(found: Answered) -> str:
    return _paragraph("Prices", map(_price, offers_in(found.answer)))


def _price(offer: Body) -> str:
    price = f"{offer.get('provider') or 'stated'} {offer.get('region') or ''} {money(float(offer['usd_per_accelerator_hour']))}"
    return f"{price}: {offer['source']}{', stale' if offer.get('stale') else ''}"


def _assumptions(found: Answered) -> str:
    return _paragraph(
        "Assumed", (f"{entry['field']} = {entry['value']}: {entry['source']}" for entry in found.answer.get("assumptions") or ())
    )


def _comparable(found: Answered) -> str:
    run = _summary(found).get("comparable")
    if run is None:
        return ""
    ratio = f"{run['planned_over_reported']:.2f} times the hours it took"
    return f"Most like it of published runs: {run['run']}, which is planned at {ratio} ({run['source']})."


def _paragraph(title: str, entries: Iterable[str]) -> str:
    listed = list(entries)
    left = len(listed) - MOST_SHOWN
    lines = [f"• {entry}" for entry in listed[:MOST_SHOWN]] + ([f"and {left} more"] if left > 0 else [])
    return "\n".join([f"{title}:", *lines]) if listed else ""
