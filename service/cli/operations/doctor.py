"""`outlay doctor`: what is wrong with this machine's service, or with the way to a server, and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
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
    """Check configuration, database, Redis, price sources, clock and disk; exit 1 if something is bad."""
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
    """Of a server: whether it answers and is ready, whether it takes the key, and how fresh its prices are."""
    from service.remote.problems import RemoteProblem
    from service.usecases.diagnosis import Finding

    found: list[Finding] = []
    checks = (("server", _answering), ("readiness", _readiness), ("key", _sources))
    for subject, check in checks:
        try:
            found += check(server)
        except RemoteProblem as problem:
            advice = "" if problem.status else "correct --server or OUTLAY_SERVER, or start it"
            found.append(Finding(subject, "bad", problem.detail, advice))
            if not problem.status:
                break
    return found


def _answering(server: Server) -> Iterator[Finding]:
    from service.usecases.diagnosis import Finding

    server.get("/healthz")
    yield Finding("server", "good", f"{server.url} answers")


def _readiness(server: Server) -> Iterator[Finding]:
    """What is away there without stopping it."""
    from service.usecases.diagnosis import Finding

    degraded = server.get("/readyz")["degraded"]
    if degraded:
        advice = "`outlay doctor` on the service's machine says what to do"
        yield Finding("readiness", "warning", f"it works, but does not reach: {', '.join(degraded)}", advice)
    else:
        yield Finding("readiness", "good", "database, cache, queue and worker answer")


def _sources(server: Server) -> Iterator[Finding]:
    """Whether the key is taken, and the states of the price sources."""
    from service.usecases.diagnosis import Finding, price_findings

    entries = server.items("/v1/providers")
    yield Finding("key", "good", "it is taken" if server.key else "none is needed")
    yield from price_findings([(entry["name"], entry["state"]) for entry in entries])


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
