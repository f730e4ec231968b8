"""How the cheapest price of each provider moved: what is drawn, which of them matter, and the finding in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.formats.documents.sections import DocumentTable
from service.formats.headline import day, money

Change = Mapping[str, Any]
MOST_NAMED = 4
"""Providers whose lines have a colour and a label: the cheapest ones now, and the one that moved most."""


@dataclass(frozen=True, slots=True)
class ProviderHistory:
    """The cheapest price of one provider: from when on it was how much [USD per accelerator-hour], None: nothing is sold any more."""

    provider: str
    steps: tuple[tuple[str, float | None], ...]

    @property
    def first_usd(self) -> float:
        """The first price."""
        return next(usd for _, usd in self.steps if usd is not None)

    @property
    def last_usd(self) -> float:
        """The last price, also of what is not sold any more."""
        return next(usd for _, usd in reversed(self.steps) if usd is not None)

    @property
    def is_sold(self) -> bool:
        """Whether there still is a price."""
        return self.steps[-1][1] is not None

    @property
    def move(self) -> float:
        """Change of the price since the first one, as a share of it [1]."""
        return self.last_usd / self.first_usd - 1


def provider_histories(changes: Sequence[Change]) -> list[ProviderHistory]:
    """Of all providers, those that sell first, the cheapest first. `changes`: provider, of what, time, price [USD] or None."""
    steps: dict[str, list[tuple[str, float | None]]] = {}
    for row in cheapest_over_time(changes):
        steps.setdefault(row["provider"], []).append((row["at"], row["usd"]))
    found = (ProviderHistory(provider, tuple(taken)) for provider, taken in steps.items())
    return sorted(found, key=lambda history: (not history.is_sold, history.last_usd))


def cheapest_over_time(changes: Sequence[Change]) -> Iterator[dict[str, Any]]:
    """A row whenever a provider's cheapest price is another, None where nothing is sold any more, in the order of the changes."""
    current: dict[str, dict[str, float]] = {}
    last: dict[str, float | None] = {}
    for change in changes:
        of_provider = current.setdefault(change["provider"], {})
        if change["usd"] is None:
            of_provider.pop(change["of"], None)
        else:
            of_provider[change["of"]] = change["usd"]
        cheapest = min(of_provider.values(), default=None)
        if cheapest != last.get(change["provider"]):
            last[change["provider"]] = cheapest
            yield {"provider": change["provider"], "at": change["at"], "usd": cheapest}


def named_histories(histories: Sequence[ProviderHistory]) -> list[ProviderHistory]:
    """Those that matter: the cheapest ones, and the one that moved most."""
    moved = most_moved(histories)
    cheapest = [history for history in histories if history is not moved][: MOST_NAMED - (1 if moved else 0)]
    return [history for history in histories if history in cheapest or history is moved]


def most_moved(histories: Sequence[ProviderHistory]) -> ProviderHistory | None:
    """The one whose price moved most; None where none has moved."""
    most = max(histories, key=lambda history: abs(history.move), default=None)
    return most if most and most.move else None


def history_finding(histories: Sequence[ProviderHistory]) -> str:
    """Who is cheapest now, and whose price moved most since when; empty without any history."""
    if not histories:
        return ""
    first, moved = histories[0], most_moved(histories)
    now = f"{first.provider} is cheapest at {money(first.last_usd)}" if first.is_sold else "Nobody sells it any more"
    if moved is None:
        return f"{now}; no price has moved since {_day(min(history.steps[0][0] for history in histories))}"
    return f"{now}; {moved.provider} moved most, {moved.move:+.0%} since {_day(moved.steps[0][0])}"


def history_table(histories: Sequence[ProviderHistory]) -> DocumentTable:
    """The first and the last price of each provider."""
    rows = [
        (
            *(history.provider, history.steps[0][0][:10], f"{history.first_usd:.2f}", history.steps[-1][0][:10]),
            *(f"{history.last_usd:.2f}" if history.is_sold else "not sold", f"{history.move:+.0%}"),
        )
        for history in histories
    ]
    head = ("provider", "first read on", "USD per accelerator-hour", "last change on", "since then", "change")
    return DocumentTable(head, rows, frozenset({2, 4, 5}), frozenset({1, 3}))


def _day(at: str) -> str:
    return day(datetime.fromisoformat(at))
