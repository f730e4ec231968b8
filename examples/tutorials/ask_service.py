"""An estimate, a scenario that is waited for, and an error, with outlay-sdk."""

import json
from pathlib import Path

from outlay_sdk import InvalidRequest, Outlay

run = json.loads((Path(__file__).parent / "run.json").read_text(encoding="utf-8"))

with Outlay() as outlay:
    estimate = outlay.estimate(run)
    print(estimate.summary.text)
    print(f"{estimate.throughput.mfu.p50:.0%} MFU, limited by {estimate.throughput.bound_by}")

    done = outlay.scenario({"kind": "monte_carlo", "base": run, "trials": 2000, "seed": 1}, timeout_s=120)
    print(done.result["summary"]["text"])

    try:
        outlay.estimate(run | {"hardwares": 8})
    except InvalidRequest as error:
        for problem in error.problem.errors:
            print(f"{error.status} at {problem.pointer}: {problem.message}")
