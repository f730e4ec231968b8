"""`outlay plan`: the plan of a program from a file, as a table, as JSON, or as a document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.planning.watch import watch
from service.cli.terminal import tables
from service.cli.terminal.context import report_errors
from service.cli.terminal.options import FILE, IN_FILE, OUT_FILE, VERBOSE, settings_option
from service.cli.terminal.request_io import answer_to, build_request, is_standard_input, read_request, show, write_output
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH, DIFFERENCE_PATH = "/v1/estimate/program", "/v1/estimate/program/difference"
PLAN_FORMATS = ("table", "json", "md", "html", "xlsx", "ics", "csv", "focus")


@click.command()
@FILE
@settings_option("start=2027-02-01", "Any field of the program")
@click.option("--format", "form", type=click.Choice(PLAN_FORMATS), default="table", show_default=True, help="How the plan is written.")
@click.option("--json", "form", flag_value="json", help="The whole answer, as over HTTP.")
@click.option("--out", type=OUT_FILE, help="Write to this file; default: standard output.")
@click.option("--before", type=IN_FILE, help="Say only why FILE costs more than this one.")
@click.option("--watch", "watched", is_flag=True, help="Plan again after every change of FILE, and say what it costs; Ctrl-C ends it.")
@VERBOSE
@server_options
def plan(file: Path, settings: Sequence[str], *, form: str, out: Path | None, before: Path | None, watched: bool, verbose: bool) -> None:
    """Plan the whole training program of a JSON or YAML FILE as sent to POST /v1/estimate/program."""
    if before is not None:
        difference(before, file, as_json=form == "json")
        return
    if watched:
        if is_standard_input(file):
            raise click.UsageError("--watch needs a file: standard input does not change")
        watch(file, lambda: answer_to(PATH, build_request(file, settings), embedded))
        return
    answer = answer_to(PATH, build_request(file, settings), embedded)
    write_output(_written(answer, form, verbose=verbose), out)


def embedded() -> tuple[Schema, UseCase]:
    """The schema of a program's request, and its use case."""
    from service.schemas.programs.presenters import present_program
    from service.schemas.programs.request import ProgramRequestSchema
    from service.usecases.programs.plan import plan_program

    return ProgramRequestSchema(), lambda context, request: present_program(plan_program(context, request))


def _embedded_difference() -> tuple[Schema, UseCase]:
    from service.schemas.programs.request import ProgramDifferenceRequestSchema
    from service.usecases.programs.plan import compare_programs

    return ProgramDifferenceRequestSchema(), compare_programs


def difference(before: Path, after: Path, *, as_json: bool) -> None:
    """Print the difference of two programs' budgets by cause."""
    request = {"before": read_request(before), "after": read_request(after)}
    answer = answer_to(DIFFERENCE_PATH, request, _embedded_difference)
    show(answer, lambda: str(answer["headline"]), as_json=as_json)


def table(answer: Entry, *, verbose: bool) -> str:
    """Budget, tiers and gates, calendar, risks and warnings as text."""
    parts = [
        f"{answer['name']}",
        tables.summary(_summary(answer)),
        "",
        *([tables.columns([("USD", "line", "basis"), *_lines(answer)]), ""] if answer["lines"] else []),
        tables.columns([("tier", "runs USD", "accelerator-hours", "goodput", "cost to decide", "decided", "passes"), *_tiers(answer)]),
        *(f"  {tier['tier']}: {tier['gate']['statement']}" for tier in answer["tiers"] if tier["gate"]),
        *_decisions(answer),
        "",
        tables.columns([("from", "to", "what", "critical"), *_calendar(answer["schedule"])]),
        *_deadline_options(answer["schedule"]),
        *_risks(answer["risks"]),
    ]
    return tables.report(parts, answer, verbose=verbose)


def _summary(answer: Entry) -> list[tuple[str, str]]:
    outcome = answer["outcome"]
    return [
        *_budget(answer),
        ("outcome", _outcome(outcome) if outcome else ""),
        ("midpoint", _midpoint(answer["midpoint_gate"]) if answer["midpoint_gate"] else ""),
        ("finish", _finish(answer["schedule"])),
        ("burn", _burn(answer["burn_plan"]) if answer["burn_plan"] else ""),
        ("tokens", _tokens(answer["tokens"]) if answer["tokens"] else ""),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]


def _budget(answer: Entry) -> list[tuple[str, str]]:
    envelope = answer["envelope"]
    if envelope is None:
        return [("budget", tables.usd_text(None)), ("completed", f"with probability {answer['completion_probability']:.0%}")]
    return [
        ("budget", f"{_dollars(answer['total_usd']['p50'])} USD ({tables.spread(answer['total_usd'], tables.figure)})"),
        ("expected", f"{_dollars(answer['expected_usd'])} USD, completed with probability {answer['completion_probability']:.0%}"),
        ("exploration", f"{_dollars(envelope['exploration_usd'])} USD"),
        ("committed", f"{_dollars(envelope['committed_usd'])} USD"),
        ("reserve", f"{_dollars(envelope['reserve_usd'])} USD"),
    ]


def _outcome(outcome: Entry) -> str:
    goal = f"{outcome['metric']} from {outcome['baseline']:g} to {outcome['target']:g}"
    worth = "" if outcome["value_usd"] is None else f", worth {_dollars(outcome['value_usd'])} USD"
    if not outcome["points"]:
        return f"{goal}{worth}"
    return f"{goal}{worth}: {_figure(outcome['usd_per_point'])} USD and {outcome['flops_per_point']:.3g} FLOPs a point"


def _midpoint(gate: Entry) -> str:
    if gate["date"] is None:
        return f"when {gate['at_spend_share']:.0%} of the budget are spent"
    return f"{gate['date']}, when {_dollars(gate['at_usd'])} USD are spent, in {gate['tier']}"


def _finish(schedule: Entry) -> str:
    finish, probability = schedule["finish"], schedule["deadline_probability"]
    days = f"{finish['p50']} ({finish['p10']} - {finish['p90']}), begun {schedule['start']}"
    return days if probability is None else f"{days}; {schedule['deadline']} is met with probability {probability:.0%}"


def _burn(weeks: Sequence[Entry]) -> str:
    peak = max(weeks, key=lambda week: week["usd"])
    return f"{len(weeks)} weeks, at most {tables.figure(peak['usd'])} USD in {peak['week']}"


def _tokens(tokens: Entry) -> str:
    flow, suggested = tokens["flow"], tokens["suggested"]
    steps = ("raw", "filtered", "deduplicated", "trained", "effective")
    known = ", ".join(f"{tables.scaled(flow[name])} {name}" for name in steps) if flow else ""
    target = f"a first target is {tables.scaled(suggested['p50'])}" if suggested else ""
    return "; ".join(text for text in (known, target) if text)


def _lines(answer: Entry) -> list[tuple[str, str, str]]:
    rows = [(_dollars(line["usd"]), line["line"], tables.clip(line["basis"], 80)) for line in answer["lines"]]
    return [*rows, (_dollars(answer["total_usd"]["p50"]), "total", "")]


def _tiers(answer: Entry) -> list[tuple[str, ...]]:
    return [
        (
            tier["tier"],
            _dollars(tier["cost_usd"]),
            tables.spread(tier["accelerator_hours"], tables.figure),
            f"{tier['failures']['goodput']:.1%}",
            *_gate(tier["gate"]),
        )
        for tier in answer["tiers"]
    ]


def _gate(gate: Entry | None) -> tuple[str, str, str]:
    if gate is None:
        return "-", "-", "-"
    return _dollars(gate["cost_to_decide_usd"]), gate["date"]["p50"], f"{gate['pass_probability']:.0%}"


def _decisions(answer: Entry) -> list[str]:
    """What is recommended at each gate; with a pivot each way on too."""
    from service.formats.documents.program.branch_sections import gate_decisions

    found = [pair for pair in gate_decisions(answer) if pair[1]["recommendation"] or len(pair[1]["branches"]) > 2]
    return [f"  {gate}: {text}" for gate, decision in found for text in (*_ways(decision), decision["statement"])]


def _ways(decision: Entry) -> list[str]:
    return [branch["statement"] for branch in decision["branches"]] if len(decision["branches"]) > 2 else []


def _calendar(schedule: Entry) -> list[tuple[str, str, str, str]]:
    return [(entry["start"], entry["finish"], entry["what"], f"{entry['criticality']:.0%}") for entry in schedule["calendar"]]


def _deadline_options(schedule: Entry) -> list[str]:
    cells: tables.Cells = {
        "deadline with": "{change}",
        "probability": "{probability:.0%}",
        "price USD": lambda option: _figure(option["price_usd"]),
    }
    options = schedule["deadline_options"]
    return ["", tables.grid(options, cells)] if options else []


def _risks(risks: Sequence[Entry]) -> list[str]:
    cells: tables.Cells = {
        "risk": "{name}",
        "probability": "{probability:.0%}",
        "loss USD": lambda risk: _figure(risk["loss_usd"]),
        "expected": lambda risk: _figure(risk["expected_loss_usd"]),
    }
    return ["", tables.grid(risks, cells)] if risks else []


def _dollars(usd: float | None) -> str:
    return "-" if usd is None else f"{usd:,.2f}"


def _figure(usd: float | None) -> str:
    return "-" if usd is None else tables.figure(usd)


def _written(answer: Entry, form: str, *, verbose: bool) -> bytes:
    if form == "table":
        return f"{table(answer, verbose=verbose)}\n".encode()
    if form == "json":
        return f"{json.dumps(answer, indent=2)}\n".encode()
    from service.formats.documents.render import render

    with report_errors():
        content, _ = render("program", dict(answer), form)
    return content
