"""A plan as one CSV table (RFC 4180): a row for each line, tier, run, gate, risk, activity, wait, month and week; `section` is its kind.

The rows of section `line` add up to the `total`, and so do those of `month` and of `burn_plan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.formats.documents.csv_table import write_csv
from service.formats.documents.program.branch_sections import branch_name, gate_decisions
from service.formats.documents.program.evaluation_sections import how, needed
from service.formats.documents.program.time_sections import awaited, waits_of

COLUMNS = (
    *("section", "name", "tier", "usd", "usd_p10", "usd_p90", "share", "accelerator_hours", "tokens", "checkpoints"),
    *("start", "finish", "finish_p10", "finish_p90", "basis"),
)
Answer = Mapping[str, Any]
Row = dict[str, Any]


def write(answer: Answer) -> bytes:
    """The table in UTF-8."""
    parts = (_totals, _lines, _tiers, _branches, _evaluation, _risks, _calendar, _waiting, _months, _weeks, _notes)
    return write_csv(COLUMNS, (row for part in parts for row in part(answer)))


def _totals(answer: Answer) -> Iterable[Row]:
    for name, field in (("budget", "total_usd"), ("without contingency", "without_contingency_usd")):
        if usd := answer.get(field):
            cells = {f"usd{suffix}": _cents(usd[point]) for suffix, point in (("", "p50"), ("_p10", "p10"), ("_p90", "p90"))}
            yield {"section": "total", "name": name} | cells
    yield {"section": "expected", "name": "mean over the gates", "usd": _cents(answer["expected_usd"])}
    for name, amount in answer["envelope"].items():
        yield {"section": "envelope", "name": name.removesuffix("_usd"), "usd": _cents(amount)}


def _lines(answer: Answer) -> Iterable[Row]:
    for line in answer["lines"]:
        yield {"section": "line", "name": line["line"], "usd": _cents(line["usd"]), "basis": line["basis"]}
    for overhead in answer["overhead"]:
        named = {"section": "overhead", "name": overhead["line"], "tier": overhead["tier"] or "", "basis": overhead["basis"]}
        yield named | {"usd": _cents(overhead["usd"]), "share": overhead["share"]}


def _tiers(answer: Answer) -> Iterable[Row]:
    for tier in answer["tiers"]:
        of = {"tier": tier["tier"]}
        hours = tier["accelerator_hours"]["p50"]
        yield {"section": "tier", "name": tier["tier"], "usd": _cents(tier["cost_usd"]), "accelerator_hours": f"{hours:.2f}"} | of
        for run in tier["runs"]:
            yield {
                "section": "run",
                "name": run["name"],
                "usd": _cents(run["cost_usd"]),
                "basis": f"{run['run_equivalents']:g} whole runs' worth",
            } | of
        if tier["gate"]:
            yield _gate(tier["gate"]) | of


def _gate(gate: Answer) -> Row:
    cost, evidence = _cents(gate["cost_to_decide_usd"]), gate["evidence"] or ""
    row = {"section": "gate", "name": gate["decides"], "usd": cost, "share": gate["pass_probability"], "basis": evidence}
    return row | {"finish": gate["date"]["p50"]} | _ends(gate["date"])


def _branches(answer: Answer) -> Iterable[Row]:
    """The ways on from each gate; `share` is the probability that the target is reached."""
    for gate, decision in gate_decisions(answer):
        for branch in decision["branches"]:
            cost = branch["cost_usd"] or {}
            costs = {column: _cents(cost[name]) for column, name in (("usd", "p50"), ("usd_p10", "p10"), ("usd_p90", "p90")) if cost}
            row = {"section": "branch", "name": branch_name(branch), "tier": gate, "share": branch["outcome_probability"]}
            ends = {"finish": branch["finish"]["p50"]} | _ends(branch["finish"]) if branch["finish"] else {}
            yield row | costs | ends | {"basis": branch["statement"]}
        named = {"section": "decision", "name": decision["recommendation"] or "", "tier": gate}
        yield named | {"usd": _cents(decision["sunk_usd"]), "basis": decision["statement"]}


def _evaluation(answer: Answer) -> Iterable[Row]:
    """Suites, and what each can see; checks and sign-offs are lines."""
    evaluation = answer["evaluation"] or {"suites": (), "detection": ()}
    for suite in evaluation["suites"]:
        named = {"section": "evaluation", "name": suite["suite"], "tier": suite["tier"], "usd": _cents(suite["usd"])}
        used = {"accelerator_hours": f"{suite['accelerator_hours']['p50']:.2f}", "tokens": suite["tokens"]}
        yield named | used | {"basis": f"{suite['evaluations']:g} x {suite['samples']} samples, {how(suite)}"}
    for found in evaluation["detection"]:
        basis = f"difference {found['difference']:.3g} with {found['samples']} samples and {found['seeds']} seeds: {needed(found)}"
        yield {"section": "detection", "name": found["suite"], "share": found["power"], "basis": basis}


def _risks(answer: Answer) -> Iterable[Row]:
    for risk in answer["risks"]:
        loss = {
            "usd": _cents(risk["expected_loss_usd"]),
            "share": risk["planned_probability"],
            "basis": f"{risk['loss_usd']:.2f} USD where it happens"
            + (f"; mitigation {risk['effect']['statement']}" if risk["effect"] else ""),
        }
        yield {"section": "risk", "name": risk["name"], "tier": risk["tier"] or ""} | loss


def _calendar(answer: Answer) -> Iterable[Row]:
    schedule = answer["schedule"]
    for entry in schedule["calendar"]:
        named = {"section": "calendar", "name": entry["what"], "tier": entry["tier"] or "", "basis": entry["kind"]}
        yield named | {"start": entry["start"], "finish": entry["finish"]} | _ends(entry["finish_range"])
    yield {"section": "finish", "name": "program", "start": schedule["start"], "finish": schedule["finish"]["p50"]} | _ends(
        schedule["finish"]
    )


def _waiting(answer: Answer) -> Iterable[Row]:
    for pool, wait in waits_of(answer):
        saved = pool["one_more_node"] and pool["one_more_node"]["days_saved"]
        words = f"{wait['days']:g} days for {awaited(wait)}; pool {pool['pool']}, one more node saves {saved:g} days"
        yield {"section": "waiting", "name": wait["run"], "basis": words}


def _months(answer: Answer) -> Iterable[Row]:
    for month in answer.get("months", ()):
        drawn = month["drawn_usd"]
        spread = {"usd_p10": _cents(drawn["p10"]), "usd_p90": _cents(drawn["p90"])}
        yield {"section": "month", "name": month["month"], "start": f"{month['month']}-01", "usd": _cents(month["usd"])} | spread


def _ends(dates: Mapping[str, str]) -> Row:
    return {"finish_p10": dates["p10"], "finish_p90": dates["p90"]}


def _weeks(answer: Answer) -> Iterable[Row]:
    for week in answer["burn_plan"]:
        used = {name: week[name] for name in ("accelerator_hours", "tokens", "checkpoints")}
        yield {"section": "burn_plan", "name": week["week"], "start": week["monday"], "usd": _cents(week["usd"])} | used


def _notes(answer: Answer) -> Iterable[Row]:
    for warning in answer["warnings"]:
        yield {"section": "warning", "basis": warning}
    for entry in answer["assumptions"]:
        yield {"section": "assumption", "name": entry["field"], "basis": f"{entry['value']}: {entry['source']}"}


def _cents(amount: float) -> str:
    return f"{amount:.2f}"
