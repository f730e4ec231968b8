"""Where a plan may end, in words and as a table: the leaves of its gate tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.formats.documents.sections import DocumentTable
from service.formats.documents.text import usd
from service.formats.headline import money

Ending = Mapping[str, Any]
GO_ON = "continue"
HEAD = ("ends", "of all cases", "spent by then, USD")


def endings_left(endings: Sequence[Ending], decided: Mapping[str, str]) -> list[Ending]:
    """The endings that are still open, with their probabilities from now on. `decided`: what was decided at each gate, by its tier."""
    for ending in endings:
        if decided.get(ending["stopped_at"] or "", GO_ON) != GO_ON:
            return [{**ending, "probability": 1.0}]
    left = [ending for ending in endings if ending["stopped_at"] not in decided]
    whole = sum(ending["probability"] for ending in left)
    return [{**ending, "probability": ending["probability"] / whole} for ending in left] if whole else left


def ending_table(endings: Sequence[Ending]) -> DocumentTable:
    """The endings with their probability and what is spent by then; without rows where no gate can be failed."""
    rows = [(ending_words(ending), share_words(ending["probability"]), _spent(ending, usd)) for ending in endings]
    return DocumentTable(HEAD, rows if len(rows) > 1 else (), frozenset({1, 2}))


def tree_finding(endings: Sequence[Ending]) -> str:
    """What the gate tree shows, as a sentence: its likeliest ending before completion."""
    *early, last = endings
    most = max(early, key=lambda ending: ending["probability"])
    what = f"Go on with {most['pivot']}" if most["pivot"] else "Stop"
    found = f"{what} after {most['stopped_at']} in {share_words(most['probability'])} of cases"
    return f"{found}, complete in {share_words(last['probability'])}"


def ending_words(ending: Ending) -> str:
    """Completed, stop after a tier, a pivot after a tier."""
    if ending["stopped_at"] is None:
        return "completed"
    return f"{ending['pivot']} after {ending['stopped_at']}" if ending["pivot"] else f"stop after {ending['stopped_at']}"


def spent_words(ending: Ending) -> str:
    """What is spent by an ending."""
    return f"{_spent(ending, money)} spent{', the pivot included' if ending['pivot'] else ''}"


def share_words(probability: float) -> str:
    """A share of all cases; what is neither none nor all is not rounded to it."""
    if 0 < probability < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= probability < 1 else f"{probability:.0%}"


def _spent(ending: Ending, words: Any) -> str:
    return "an amount not known" if ending["usd"] is None else str(words(ending["usd"]))
