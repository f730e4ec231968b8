"""Starts the first two runs of a tracked program and reports them as their training scripts do. Usage: report_runs.py PROGRAM [SCORE]"""

import json
import os
import sys
from datetime import UTC, datetime
from urllib.request import Request, urlopen

from outlay_client import Tracker

SERVER = os.environ.get("OUTLAY_SERVER", "http://127.0.0.1:8080")
KEY = os.environ.get("OUTLAY_API_KEY")


def start_run(program: str, name: str, tier: str) -> str:
    """The id of a new run: what the service plans for it comes from the program's plan, by tier and name."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {KEY}"} if KEY else {})}
    body = json.dumps({"name": name, "tier": tier}).encode()
    with urlopen(Request(f"{SERVER}/v1/track/programs/{program}/runs", body, headers)) as answer:
        run_id: str = json.load(answer)["id"]
    print(f"{tier}, {name}: run {run_id}")
    return run_id


def january(day: int, hour: int = 0) -> datetime:
    """A time of this story, which happens in January 2025."""
    return datetime(2025, 1, day, hour, tzinfo=UTC)


def main(program: str, score: float) -> None:
    """Two runs: one as planned, one that costs more and ends with a score."""
    with Tracker(SERVER, start_run(program, "data mixtures", "prototype"), KEY, launch=False) as run:
        run.progress(tokens_done=0, accelerator_hours=0, cost_usd=0, at=january(6))
        run.progress(tokens_done=80_000_000_000, accelerator_hours=136, cost_usd=340, at=january(6, 5))
        run.evaluation("helpdesk-eval", 0.43, samples=2000, at=january(6, 6))
        run.decision("prototype", "continue", "mixture C is best", at=january(7))

    with Tracker(SERVER, start_run(program, "scale check", "validation"), KEY, launch=False) as run:
        run.progress(tokens_done=0, accelerator_hours=0, cost_usd=0, loss=11.0, at=january(7))
        run.progress(tokens_done=40_000_000_000, accelerator_hours=208, cost_usd=520, loss=2.9, at=january(8, 2))
        run.interruption("hardware", at=january(8, 3))
        run.restart("node replaced", at=january(8, 7))
        run.rollback(38_000_000_000, cause="hardware", at=january(8, 7))
        run.progress(tokens_done=100_000_000_000, accelerator_hours=530, cost_usd=1325, loss=2.6, at=january(10))
        run.evaluation("helpdesk-eval", score, samples=2000, at=january(10, 1))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.49)
