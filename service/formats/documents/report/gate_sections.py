"""The gates of a tracked program's tiers, and the ways on from gates that are undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Report = Mapping[str, Any]


def tier_gate_sentences(status: Report) -> Iterator[str]:
    """Where the gate of each tier stands; the reasons of those that are due."""
    for gate in status["tier_gates"]:
        if gate["decided"]:
            yield f"Gate {gate['tier']}: {'; '.join(gate['reasons'])}."
        elif gate["due"]:
            yield f"Gate {gate['tier']} is due: {gate['recommendation'] or 'nothing'} is recommended."
            yield from gate["reasons"]
        else:
            yield f"Gate {gate['tier']} is not due."


def open_decisions(status: Report) -> list[tuple[str, Report]]:
    """The ways on from each gate that is undecided, with its name."""
    gates = [("half-spend", status["gate"]["decision"]), *((gate["tier"], gate["decision"]) for gate in status["tier_gates"])]
    return [(name, decision) for name, decision in gates if decision]
