"""How long commands take from the shell: what needs no engine, an estimate of a running service, and one on this machine."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from bench.harness import ROOT, SERVICE, gunicorn, report, timed

RUN = ("--model", "llama-2-7b", "--tokens", "1T", "--accelerator", "H100", "--count", "256")
TIMES = 5


def command_line() -> None:
    """The median of five of each, after one that is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OUTLAY_DATA_DIR": folder, "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "warning", "OUTLAY_SERVER": ""}
        report("outlay_help", _median_s(environment, "--help"), "s")
        report("outlay_models", _median_s(environment, "models"), "s")
        report("outlay_estimate", _median_s(environment, "estimate", *RUN), "s, without a database")
        with gunicorn(SERVICE, environment, 1) as (_, port):
            server = ("--server", f"http://127.0.0.1:{port}")
            report("outlay_estimate_of_a_server", _median_s(environment, "estimate", *RUN, *server), "s")


def _median_s(environment: dict[str, str], *arguments: str) -> float:
    command = [sys.executable, "-m", "service.cli", *arguments]

    def run() -> object:
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)

    run()
    return statistics.median(timed(run)[0] for _ in range(TIMES))


if __name__ == "__main__":
    command_line()
