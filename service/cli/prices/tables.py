"""Price sources, and what came of asking them, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.cli.terminal.tables import clip, columns, grid

ROWS_NAMED = 5
"""Rejected and quarantined rows shown; `--json` has the first hundred of each."""


def refresh_table(results: Sequence[Mapping[str, Any]]) -> str:
    """What came of every refresh."""
    head = ("provider", "", "offers", "rejected", "quarantined", "")
    rows = [
        (
            result["provider"],
            next(word for word in ("error", "skipped", "new") if word in result) if result.get("new") is not False else "unchanged",
            *(str(result.get(count, "")) for count in ("offers", "rejected", "quarantined")),
            clip(str(result.get("error") or result.get("skipped") or result["snapshot"] or "")),
        )
        for result in results
    ]
    return columns([head, *rows])


def rows_named(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first rejected, quarantined and suspicious rows of each provider with the reason, and warnings."""
    from service.usecases.prices.providers import ROW_KINDS

    rows = [
        f"{result['provider']} {kind}: {row['row']}: {row['reason']}"
        for result in results
        for kind in ROW_KINDS
        for row in result.get(f"{kind}_rows", ())[:ROWS_NAMED]
    ]
    teams = [
        f"{result['provider']}: team {team} has {count} of its own" for result in results for team, count in result.get("teams", {}).items()
    ]
    return teams + rows + [f"{result['provider']} warning: {warning}" for result in results for warning in result.get("warnings", ())]


def source_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Price sources with their states."""
    return grid(
        entries,
        {
            "provider": "{name}",
            "state": "{state}",
            "offers": "{offers}",
            "rejected": "{rejected[count]}",
            "quarantined": "{quarantined[count]}",
            "last success": lambda entry: (entry["last_success_at"] or "")[:16],
            "next": lambda entry: (entry["next_refresh_at"] or "")[:16],
            "missing, last error or warning": lambda entry: clip(entry["missing"] or entry["last_error"] or "".join(entry["warnings"][:1])),
        },
    )
