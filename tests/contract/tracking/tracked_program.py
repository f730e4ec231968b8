"""A program's story told over HTTP: two runs, a failure, a rollback, notes and a decision, whatever its names are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flask.testing import FlaskClient

Body = dict[str, Any]
BEGUN = datetime(2025, 8, 1, tzinfo=UTC)
AS_OF = "2025-08-31T00:00:00Z"
DAYS = 30
TOKENS_A_DAY = 20_000_000_000
USD_A_DAY = 3000.0
PROGRAM: Body = {
    "name": "support-assistant 7B",
    "budget_usd": 150000,
    "planned_tokens": "1T",
    "start": "2025-08-01",
    "deadline": "2025-09-30",
    "midpoint_gate": {"at_spend_share": 0.5, "continue_if": {"cpi_at_least": 0.9}, "stop_if": {"cpi_below": 0.7}, "pivot_to": "3B"},
}
MAIN: Body = {
    "name": "main",
    "tier": "production",
    "planned": {"tokens": "990B", "accelerator_hours": 48500, "usd": 145000, "start": "2025-08-01", "finish": "2025-09-28", "loss": 2.0},
}
SMALL: Body = {"name": "ablations", "tier": "prototype", "planned": {"tokens": "10B", "accelerator_hours": 500, "usd": 5000}}


def made(client: FlaskClient, url: str, body: Body) -> Body:
    """What was made."""
    answer = client.post(url, json=body)
    assert answer.status_code in (200, 201), answer.text
    found: Body = answer.get_json()
    return found


def told(client: FlaskClient, names: Mapping[str, str] | None = None) -> Body:
    """The program after a month, every name in it replaced where `names` has another: program, main, cause, text, line, metric."""
    called = {
        "program": PROGRAM["name"],
        "main": MAIN["name"],
        "cause": "hardware",
        "text": "two switches replaced",
        "line": "storage",
        "metric": "helpdesk",
    }
    called |= names or {}
    program = made(client, "/v1/track/programs", PROGRAM | {"name": called["program"]})
    main = made(client, f"/v1/track/programs/{program['id']}/runs", MAIN | {"name": called["main"]})
    small = made(client, f"/v1/track/programs/{program['id']}/runs", SMALL)
    for run, events in ((main, _main(called)), (small, _small())):
        taken = made(client, f"/v1/track/runs/{run['id']}/events", {"events": events})
        assert taken == {"accepted": len(events), "duplicates": 0, "rejected": []}
    return program


def _at(days: float) -> str:
    return (BEGUN + timedelta(days=days)).isoformat()


def _main(called: Mapping[str, str]) -> list[Body]:
    """A day's work is told every day; on day 12 the run is down for six hours, on day 20 it goes back a day."""
    progress = [_progress(day) for day in range(1, DAYS)]
    return [
        *progress,
        {"id": "stop", "type": "interruption", "at": _at(12.1), "cause": called["cause"]},
        {"id": "again", "type": "restart", "at": _at(12.35)},
        {"id": "back", "type": "rollback", "at": _at(20.5), "to_step": 4750, "tokens_done": 19 * TOKENS_A_DAY, "cause": "loss spike"},
        {"id": "kept", "type": "checkpoint", "at": _at(21.0), "bytes": 84_000_000_000},
        {"id": "said", "type": "note", "at": _at(22.0), "text": called["text"]},
        {"id": "decided", "type": "decision", "at": _at(2.0), "gate": "prototype", "verdict": "continue", "text": called["text"]},
        *(
            {"id": f"evaluated-{place}", "type": "evaluation", "at": _at(22.5 + place), "metric": called["metric"], "value": value}
            for place, value in enumerate((0.7, 0.71, 0.45))
        ),
        {"id": "disks", "type": "cost", "at": _at(15.0), "usd": 1200.5, "line": called["line"]},
    ]


def _progress(day: int) -> Body:
    tokens = (day if day <= 20 else day - 1) * TOKENS_A_DAY
    spent = {"accelerator_hours": day * 1000.0, "cost_usd": day * USD_A_DAY}
    return {"id": f"day-{day}", "type": "progress", "at": _at(day), "tokens_done": tokens, "loss": 1.8 + 1.5 * day**-0.4, **spent}


def _small() -> list[Body]:
    """A day of an hour's work every hour, to its planned tokens."""
    return [
        {"id": f"hour-{hour}", "type": "progress", "at": _at(hour / 24), "loss": 5.0 - hour / 24, **_share_of_small(hour / 24)}
        for hour in range(25)
    ]


def _share_of_small(share: float) -> Body:
    return {"tokens_done": round(share * 10_000_000_000), "accelerator_hours": share * 450.0, "cost_usd": share * 4500.0}
