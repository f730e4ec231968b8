"""A portfolio as sections of text and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.formats.documents.sections import DocumentSection, DocumentTable, filled_sections
from service.formats.documents.text import days, number, share, text, usd, usd_span

Answer = Mapping[str, Any]
UNKNOWN = "not known"


def sections(answer: Answer) -> tuple[DocumentSection, ...]:
    """The portfolio in the order of reading; empty sections are left out."""
    return filled_sections(
        DocumentSection("summary", "Summary", tables=(DocumentTable(("", ""), tuple(_summary(answer))),)),
        DocumentSection("warnings", "Warnings", listed=tuple(answer["warnings"])),
        DocumentSection("programs", "Programs", tables=(_programs(answer),)),
        DocumentSection("contention", "Who waits for whom", tables=(_contention(answer),)),
        DocumentSection("options", "What to delay and what to rent", tables=(_options(answer),)),
        DocumentSection("pools", "Pools", tables=(_pools(answer),)),
        DocumentSection("months", "Spend by month", tables=(_months(answer),)),
        DocumentSection("calendar", "Calendar", tables=(_calendar(answer),)),
        DocumentSection("assumptions", "Assumptions", tables=(_assumptions(answer),)),
    )


def run_names(runs: Iterable[Answer]) -> str:
    """Runs with their programs, in one line."""
    return ", ".join(f"{run['program']} {run['run']}" for run in runs)


def _summary(answer: Answer) -> Iterable[tuple[str, str]]:
    total = answer["total_usd"]
    yield "Budgets of all programs, USD", UNKNOWN if total is None else usd(total)
    yield "First day", answer["start"]
    yield "All done", days(answer["finish"])


def _programs(answer: Answer) -> DocumentTable:
    head = ("program", "priority", "USD", "done", "done alone", "days later", "deadline", "met", "met alone")
    return DocumentTable(head, [_program(program) for program in answer["programs"]], frozenset({1, 2, 5, 7, 8}), frozenset({3, 4, 6}))


def _program(program: Answer) -> tuple[str, ...]:
    return (
        program["name"],
        str(program["priority"]),
        UNKNOWN if program["total_usd"] is None else usd_span(program["total_usd"]),
        days(program["finish"]),
        days(program["finish_alone"]),
        number(program["delay_days"]),
        program["deadline"] or "",
        share(program["deadline_probability"]),
        share(program["deadline_probability_alone"]),
    )


def _contention(answer: Answer) -> DocumentTable:
    rows = [
        (wait["program"], wait["run"], number(wait["days"]), run_names(wait["waits_for"]), wait["pool"]) for wait in answer["contention"]
    ]
    return DocumentTable(("program", "run", "days", "waits for", "pool"), rows, frozenset({2}))


def _options(answer: Answer) -> DocumentTable:
    rows = [
        (option["kind"], option["change"], "" if option["usd"] is None else usd(option["usd"]), _effects(option))
        for option in answer["options"]
    ]
    return DocumentTable(("kind", "change", "USD", "days earlier"), rows, frozenset({2}))


def _effects(option: Answer) -> str:
    return ", ".join(f"{effect['program']} {effect['days_earlier']:+,.1f}" for effect in option["effects"])


def _pools(answer: Answer) -> DocumentTable:
    rows = [
        (
            pool["pool"],
            number(pool["accelerators"]),
            share(min(pool["used_share"], 1.0)),
            number(max((week["wanted"] for week in pool["weeks"]), default=0.0)),
        )
        for pool in answer["pools"]
    ]
    return DocumentTable(("pool", "accelerators", "in use", "wanted in the fullest week"), rows, frozenset({1, 2, 3}))


def _months(answer: Answer) -> DocumentTable:
    own = {program["name"]: {month["month"]: month["usd"] for month in program["months"]} for program in answer["programs"]}
    rows = [
        (month["month"], usd(month["usd"]), *(usd(spent.get(month["month"], 0.0)) for spent in own.values())) for month in answer["months"]
    ]
    return DocumentTable(("month", "all", *own), rows, frozenset(range(1, len(own) + 2)))


def _calendar(answer: Answer) -> DocumentTable:
    rows = [
        (program["name"], entry["what"], entry["kind"], entry["pool"] or "", entry["start"], entry["finish"])
        for program in answer["programs"]
        for entry in program["calendar"]
    ]
    return DocumentTable(("program", "what", "kind", "pool", "start", "finish"), rows, dated=frozenset({4, 5}))


def _assumptions(answer: Answer) -> DocumentTable:
    rows = [(entry["field"], text(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    return DocumentTable(("field", "value", "source"), rows)
