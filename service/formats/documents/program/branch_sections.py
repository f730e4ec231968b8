"""Continue, pivot and stop at the gates of a plan, as text and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.formats.documents.sections import DocumentTable
from service.formats.documents.text import days, share, usd, usd_span

Answer = Mapping[str, Any]
HEAD = ("way on", "from here, USD", "expected, USD", "over on", "target reached", "expected of it, USD", "to state")
UNKNOWN = "not known"


def gate_decisions(answer: Answer) -> Iterator[tuple[str, Answer]]:
    """The gates with a decision: those of the tiers in their order, then the midpoint. Answers kept from earlier versions have none."""
    gates = [*((tier["tier"], tier["gate"]) for tier in answer["tiers"]), ("midpoint", answer["midpoint_gate"])]
    for name, gate in gates:
        if gate and gate.get("decision"):
            yield name, gate["decision"]


def decision_sentences(answer: Answer) -> tuple[str, ...]:
    """What is recommended at each gate, and why."""
    return tuple(f"At the gate {gate}: {decision['statement']}" for gate, decision in gate_decisions(answer))


def branch_table(decisions: Sequence[tuple[str, Answer]]) -> DocumentTable:
    """The ways on from each gate with their figures; what is spent by then is in none of them."""
    rows = [(gate, usd(decision["sunk_usd"]), *_branch(each)) for gate, decision in decisions for each in decision["branches"]]
    # Days may break between the median and its range: the table is wide.
    return DocumentTable(("gate", "spent by then, USD", *HEAD), rows, frozenset({1, 3, 4, 6, 7}))


def branch_name(branch: Answer) -> str:
    """Continue, pivot to a program, stop."""
    return f"pivot to {branch['program']}" if branch["program"] else str(branch["branch"])


def _branch(branch: Answer) -> tuple[str, ...]:
    cost, expected, value = (branch[name] for name in ("cost_usd", "expected_cost_usd", "expected_value_usd"))
    return (
        branch_name(branch),
        UNKNOWN if cost is None else usd_span(cost),
        UNKNOWN if expected is None else usd(expected),
        days(branch["finish"]) if branch["finish"] else UNKNOWN,
        share(branch["outcome_probability"]) or UNKNOWN,
        UNKNOWN if value is None else usd(value),
        "; ".join(branch["missing"]),
    )
