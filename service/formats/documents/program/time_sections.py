"""A plan in time as tables: who waits for whose accelerators, and what is spent in each month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.documents.text import number, usd

Answer = Mapping[str, Any]
WAITING_HEAD = ("run", "waits for", "days", "pool", "accelerators", "one more node saves, days", "to wait no more")


def waits_of(answer: Answer) -> Iterator[tuple[Answer, Answer]]:
    """Every pool with each of its waits, the longest first."""
    pairs = [(pool, wait) for pool in answer["schedule"]["pools"] for wait in pool["waits"]]
    yield from sorted(pairs, key=lambda pair: -pair[1]["days"])


def awaited(wait: Answer) -> str:
    """The runs that a run waits for, or the accelerators that are not there yet."""
    return ", ".join(wait["waits_for"]) or "accelerators of its pool that come later"


def waiting_section(answer: Answer) -> DocumentSection:
    """Who waits for whom, how long, and what more accelerators save; empty where each pool serves one run at a time."""
    pools = answer["schedule"]["pools"]
    rows = [
        (
            wait["run"],
            awaited(wait),
            number(wait["days"]),
            pool["pool"],
            f"{pool['accelerators']:,}",
            number(pool["one_more_node"]["days_saved"]) if pool["one_more_node"] else "",
            enough(pool),
        )
        for pool, wait in waits_of(answer)
    ]
    shared = [f"{pool['accelerators']:,} accelerators of {pool['pool']}" for pool in pools]
    none = (f"No run waits for another: the runs share {' and '.join(shared)}.",) if shared and not rows else ()
    return DocumentSection("waiting", "Who waits for whom", none, (DocumentTable(WAITING_HEAD, rows, frozenset({2, 4, 5})),))


def enough(pool: Answer) -> str:
    """The fewest accelerators more with which a run of the pool waits no more, and what they save."""
    least = pool["least_useful"]
    if least is None:
        return ""
    saved = least["days_saved"]
    return f"{least['added']:,} more accelerators: the end is {f'{number(saved)} days earlier' if saved > 0 else 'no earlier'}"


def months_section(answer: Answer) -> DocumentSection:
    """Planned spend by calendar month."""
    rows = [
        (month["month"], usd(month["usd"]), _spread(month["drawn_usd"]), usd(month["by_then_usd"]), _spread(month["drawn_by_then_usd"]))
        for month in answer.get("months", ())
    ]
    head = ("month", "planned, USD", "p10 to p90, USD", "planned by then, USD", "p10 to p90 by then, USD")
    how = "Planned spend adds up to the budget; ranges are of the calendar's draws: what starts later or lasts longer is spent later."
    return DocumentSection("months", "Spend by month", (how,) if rows else (), (DocumentTable(head, rows, frozenset({1, 2, 3, 4})),))


def _spread(drawn: Answer) -> str:
    return f"{drawn['p10']:,.0f} to {drawn['p90']:,.0f}"
