"""How a tracked program stands, for pages: verdict, spend, what it is forecast to cost, its gates. A minute old at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from service.api.http.auth import app_context
from service.domain.programs.branches import MIDPOINT
from service.domain.tracking.records import ProgramRecord
from service.formats.headline import counted, money
from service.schemas.tracking.presenters import report_body
from service.serialization import to_builtins
from service.usecases.tracking.headline import Headline, headline
from service.usecases.tracking.programs import list_runs
from service.usecases.tracking.report import program_report
from service.usecases.tracking.status import program_status
from service.web.asking import at_hand

Body = dict[str, Any]
VERDICTS: Mapping[str, tuple[str, str]] = {
    "on_track": ("good", "on track"),
    "at_risk": ("warning", "at risk"),
    "off_track": ("bad", "off track"),
    "unknown": ("", "not known yet"),
}
"""A program's health as its class, which gives the shape, and in words."""


def standings(programs: Iterable[ProgramRecord]) -> list[Body]:
    """How each program stands: verdict, sentence, spend, forecast, budget [USD] and the next gate."""
    return [_standing(program) for program in programs]


def report_at_hand(program: ProgramRecord, as_of: datetime | None = None) -> Body:
    """The program's report, by default as of now, without projected losses, which take up to 1 s a run."""
    context = app_context()
    what = f"report {_version(program)} {as_of or ''}"
    return at_hand(what, lambda: report_body(program_report(context, program, as_of, with_loss_projections=False)))


def gates_of(status: Mapping[str, Any]) -> list[Body]:
    """The gates of a status that are known, with a title: those of the tiers, then the half-spend gate."""
    tiers = [{**gate, "name": gate["tier"], "title": f"Gate after {gate['tier']}"} for gate in status["tier_gates"]]
    return [*tiers, {**status["gate"], "name": MIDPOINT, "title": "Half-spend gate"}]


def in_turn(gates: Iterable[Body]) -> list[Body]:
    """Gates as they are wanted: those that are due, those to come, those decided."""
    return sorted(gates, key=lambda gate: (bool(gate["decided"]), not gate["due"]))


def _standing(program: ProgramRecord) -> Body:
    return {
        "id": program.id,
        "name": program.body["name"],
        "is_open": program.body["state"] == "open",
        "budget_usd": program.body.get("budget_usd"),
        "deadline": program.body.get("deadline"),
        **at_hand(f"standing {_version(program)}", lambda: _found(program)),
    }


def _found(program: ProgramRecord) -> Body:
    result = program_status(app_context(), program)
    said = headline(result.baseline, result.status)
    shape, words = VERDICTS[said.health]
    status: Body = to_builtins(result.status)
    return {
        "shape": shape,
        "words": f"{words}: {reason}" if (reason := _reason(said)) else words,
        "sentence": said.text,
        "spent_usd": status["spend"]["usd"],
        "share": status["spend"]["share_of_budget"],
        "forecast_usd": status["forecast"]["cost_usd"],
        "next_gate": _next_gate(gates_of(status)),
    }


def _reason(said: Headline) -> str:
    """What puts a program off its track, in figures; empty where nothing does."""
    over = [f"{money(said.over_usd)} over the budget"] if said.over_usd and said.over_usd > 0 else []
    late = [f"{counted(int(said.late_days), 'day')} late"] if said.late_days and said.late_days > 0 else []
    return ", ".join([*over, *late])


def _version(program: ProgramRecord) -> str:
    """Changes with the program, its runs and their events."""
    runs = [(run.key, run.version, run.position) for run in list_runs(app_context(), program)]
    return f"{program.team} {program.id} {program.version} {runs}"


def _next_gate(gates: Iterable[Body]) -> str:
    """The first gate that is due, else the first that is not decided."""
    undecided = [gate for gate in gates if not gate["decided"]]
    due = next((gate for gate in undecided if gate["due"]), None)
    if due is not None:
        return f"{due['title']} is due: {due['recommendation'] or 'nothing'} is recommended"
    following = next(iter(undecided), None)
    if following is None:
        return "All gates are decided"
    at = following.get("due_usd")
    return str(following["title"]) if at is None else f"{following['title']} at {money(at)} spent"
