"""`outlay doctor`: what is wrong with this machine's service, or with the way to a server, and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from service.cli.terminal.options import json_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import server_options, stated_server
from service.cli.terminal.tables import columns, styled
from service.cli.terminal.waiting import waiting

if TYPE_CHECKING:
    from service.remote.transport import Server
    from service.usecases.diagnosis import Finding

COLOURS = {"good": "green", "warning": "yellow", "bad": "red"}


@click.command()
@json_option("The findings as JSON.")
@server_options
def doctor(*, as_json: bool) -> None:
    """Check configuration, database, Redis, price sources, clock and disk; exit 1 where something is bad."""
    server = stated_server()
    with waiting("checking"):
        findings = _findings_here() if server is None else _findings_of(server)
    show([asdict(finding) for finding in findings], lambda: _table(findings), as_json=as_json)
    if any(finding.state == "bad" for finding in findings):
        sys.exit(1)


def _findings_here() -> list[Finding]:
    """Of this process's settings, and, where these can be used, of everything they name."""
    from service.config import BadSetting, load_settings
    from service.container import build_context
    from service.usecases.diagnosis import Finding, diagnose

    try:
        context = build_context(load_settings(os.environ))
    except BadSetting as error:
        return [Finding("configuration", "bad", str(error), "correct the variable; the README lists all of them")]
    try:
        return [Finding("configuration", "good", "every OUTLAY_ variable can be used"), *diagnose(context)]
    finally:
        context.store.close()


def _findings_of(server: Server) -> list[Finding]:
    """Of a server: whether it answers and is ready, and whether it takes the key."""
    from service.remote.problems import RemoteProblem
    from service.usecases.diagnosis import Finding

    found = []
    for subject, path in (("server", "/healthz"), ("readiness", "/readyz"), ("key", "/v1/models?limit=1")):
        try:
            server.get(path)
            found.append(Finding(subject, "good", f"{server.url}{path} answers"))
        except RemoteProblem as problem:
            found.append(
                Finding(subject, "bad", problem.detail, "" if problem.status else "correct --server or OUTLAY_SERVER, or start it")
            )
            if not problem.status:
                break
    return found


def _table(findings: Sequence[Finding]) -> str:
    """A row a finding, with what to do below those that are not good."""
    rows = [(finding.state, finding.subject, finding.detail) for finding in findings]
    lines = columns(rows, fit=False).splitlines()
    shown = []
    for line, finding in zip(lines, findings, strict=True):
        shown.append(styled(line, COLOURS[finding.state]) if finding.state != "good" else line)
        shown += [f"    {finding.advice}"] if finding.advice else []
    bad, warnings = (sum(finding.state == state for finding in findings) for state in ("bad", "warning"))
    return "\n".join([*shown, f"{bad} bad, {warnings} warnings"])
