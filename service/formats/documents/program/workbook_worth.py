"""Sheets of what mitigations and gates are worth, and of the ways on from each gate: fixed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from service.formats.documents.cells import FIRST_ROW, Book, Column
from service.formats.documents.program.branch_sections import branch_name

Answer = Mapping[str, Any]
MITIGATION_COLUMNS = (
    *(Column("mitigation of", 40, "wrapped"), Column("taken", 8), Column("owner", 16, "wrapped"), Column("state", 10)),
    *(
        Column("costs, USD", 14, "usd"),
        Column("avoids, USD", 16, "usd"),
        Column("avoids, days", 12, "number"),
        Column("net, USD", 16, "usd"),
    ),
    Column("why", 60, "wrapped"),
)
GATE_COLUMNS = (
    *(Column("deciding after", 14), Column("going on is right", 12, "share"), Column("costs, USD", 16, "usd")),
    *(Column("going on wrongly, USD", 18, "usd"), Column("stopping wrongly, USD", 18, "usd"), Column("is worth, USD", 16, "usd")),
    Column("why", 60, "wrapped"),
)
BRANCH_COLUMNS = (
    *(Column("gate", 14), Column("spent by then, USD", 16, "usd"), Column("way on", 28, "wrapped")),
    *(Column(head, 16, "usd") for head in ("from here, USD", "p10, USD", "p90, USD", "expected, USD")),
    *(Column("over on", 12, "date"), Column("target reached", 12, "share"), Column("expected of it, USD", 18, "usd")),
    Column("in words", 70, "wrapped"),
)


def write_branches(book: Book, decisions: Sequence[tuple[str, Answer]]) -> None:
    """A sheet of continue, pivot and stop at each gate, and of what is recommended there."""
    if not decisions:
        return
    caption = "What is spent by the gate is in no other column. It does not follow changes."
    sheet, row = book.sheet("Branches", ("Continue, pivot, stop", caption), BRANCH_COLUMNS), FIRST_ROW
    for gate, decision in decisions:
        for branch in decision["branches"]:
            cost = branch["cost_usd"] or dict.fromkeys(("p50", "p10", "p90"))
            day = date.fromisoformat(branch["finish"]["p50"]) if branch["finish"] else None
            figures = (cost["p50"], cost["p10"], cost["p90"], branch["expected_cost_usd"], day, branch["outcome_probability"])
            sheet.row(row, (gate, decision["sunk_usd"], branch_name(branch), *figures, branch["expected_value_usd"], branch["statement"]))
            row += 1
        sheet.row(row, (gate, None, "recommended: " + (decision["recommendation"] or "nothing"), *[None] * 7, decision["statement"]))
        row += 1


def write_mitigations(book: Book, answer: Answer) -> None:
    """A sheet of the mitigations, where there are any."""
    risks = [risk for risk in answer["risks"] if risk["effect"]]
    if not risks:
        return
    caption = "Expected losses and days with and without each. It does not follow changes."
    sheet = book.sheet("Mitigations", ("Mitigations", caption), MITIGATION_COLUMNS)
    for row, risk in enumerate(risks, FIRST_ROW):
        effect, taken = risk["effect"], "yes" if risk["mitigation"]["taken"] else "no"
        figures = (risk["mitigation"]["usd"], effect["loss_avoided_usd"], effect["days_avoided"], effect["net_usd"])
        sheet.row(row, (risk["name"], taken, risk["owner"] or "", risk["state"], *figures, effect["statement"]))


def write_gate_worth(book: Book, answer: Answer) -> None:
    """A sheet of what deciding at each gate is worth, where the outcome has a worth."""
    gates = [(tier["tier"], tier["gate"]["information"]) for tier in answer["tiers"] if tier["gate"]]
    known = [(tier, found) for tier, found in gates if found and found["value_usd"] is not None]
    if not known:
        return
    sheet = book.sheet("Gate worth", ("What deciding at each gate is worth", "It does not follow changes."), GATE_COLUMNS)
    for row, (tier, found) in enumerate(known, FIRST_ROW):
        figures = (found[name] for name in ("success_probability", "decide_usd", "wrong_go_usd", "wrong_stop_usd", "value_usd"))
        sheet.row(row, (tier, *figures, found["statement"]))
