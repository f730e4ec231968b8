"""A portfolio as one CSV table (RFC 4180): a row for each program, wait, option, week of a pool, month and activity; `section` is its kind.

The rows of section `program` add up to the `total`, and so do those of section `month` of all programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.formats.documents.csv_table import write_csv
from service.formats.documents.portfolio.sections import run_names

COLUMNS = (
    *("section", "program", "name", "pool", "usd", "usd_p10", "usd_p90", "accelerators", "wanted", "days", "probability"),
    *("start", "finish", "finish_p10", "finish_p90", "basis"),
)
Answer = Mapping[str, Any]
Row = dict[str, Any]


def write(answer: Answer) -> bytes:
    """The table in UTF-8."""
    parts = (_total, _programs, _contention, _options, _pools, _months, _calendar, _notes)
    return write_csv(COLUMNS, (row for part in parts for row in part(answer)))


def _total(answer: Answer) -> Iterable[Row]:
    yield {"section": "total", "usd": _cents(answer["total_usd"]), "start": answer["start"]} | _finish(answer["finish"])


def _programs(answer: Answer) -> Iterable[Row]:
    for program in answer["programs"]:
        usd = program["total_usd"] or dict.fromkeys(("p10", "p50", "p90"))
        yield {
            "section": "program",
            "program": program["name"],
            "usd": _cents(usd["p50"]),
            "usd_p10": _cents(usd["p10"]),
            "usd_p90": _cents(usd["p90"]),
            "days": program["delay_days"],
            "probability": program["deadline_probability"],
            "start": program["start"],
            "basis": f"priority {program['priority']}, deadline {program['deadline'] or 'not stated'}",
        } | _finish(program["finish"])


def _contention(answer: Answer) -> Iterable[Row]:
    for wait in answer["contention"]:
        named = {"section": "wait", "program": wait["program"], "name": wait["run"], "pool": wait["pool"]}
        yield named | {"days": wait["days"], "basis": f"waits for {run_names(wait['waits_for'])}"}


def _options(answer: Answer) -> Iterable[Row]:
    for option in answer["options"]:
        of = {"section": option["kind"], "name": option["change"], "pool": option["pool"], "accelerators": option["accelerators"]}
        for effect in option["effects"]:
            moved = {"program": effect["program"], "days": effect["days_earlier"], "probability": effect["deadline_probability"]}
            yield of | moved | {"usd": _cents(option["usd"]), "start": option["first"], "finish": option["last"]}


def _pools(answer: Answer) -> Iterable[Row]:
    for pool in answer["pools"]:
        for week in pool["weeks"]:
            used = {"accelerators": week["used"], "wanted": week["wanted"], "basis": f"of {week['held']:g}"}
            yield {"section": "pool", "name": week["week"], "pool": pool["pool"], "start": week["monday"]} | used


def _months(answer: Answer) -> Iterable[Row]:
    for program in answer["programs"]:
        for month in program["months"]:
            yield {"section": "month", "program": program["name"], "name": month["month"], "usd": _cents(month["usd"])}


def _calendar(answer: Answer) -> Iterable[Row]:
    for program in answer["programs"]:
        for entry in program["calendar"]:
            named = {
                "section": "calendar",
                "program": program["name"],
                "name": entry["what"],
                "pool": entry["pool"],
                "basis": entry["kind"],
            }
            yield named | {"accelerators": entry["accelerators"], "start": entry["start"], "finish": entry["finish"]}


def _notes(answer: Answer) -> Iterable[Row]:
    for warning in answer["warnings"]:
        yield {"section": "warning", "basis": warning}
    for entry in answer["assumptions"]:
        yield {"section": "assumption", "name": entry["field"], "basis": f"{entry['value']}: {entry['source']}"}


def _finish(dates: Mapping[str, str]) -> Row:
    return {"finish": dates["p50"], "finish_p10": dates["p10"], "finish_p90": dates["p90"]}


def _cents(amount: float | None) -> str:
    return "" if amount is None else f"{amount:.2f}"
