"""Sends a program in its second month to a service, with its runs and their events, and prints its id."""

import json
import os
from pathlib import Path
from urllib.request import Request, urlopen

SERVER = os.environ.get("OUTLAY_SERVER", "http://127.0.0.1:8080")
FILE = Path(__file__).parents[1] / "tracking" / "program-1b-64.json"


def post(path: str, body: dict) -> dict:
    """The answer of the service."""
    request = Request(f"{SERVER}/v1/track{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)


story = json.loads(FILE.read_text(encoding="utf-8"))
plan = json.loads((FILE.parent / story["plan"]).read_text(encoding="utf-8"))
program = post("/programs", {**story["program"], "plan": plan})["id"]
for run in story["runs"]:
    tracked = post(f"/programs/{program}/runs", {"name": run["name"], "tier": run["tier"]})["id"]
    post(f"/runs/{tracked}/events", {"events": run["events"]})
print(program)
