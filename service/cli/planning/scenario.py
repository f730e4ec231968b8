"""`outlay scenario`: long evaluations on the database itself. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from service.cli.planning.scenario_result import render_result
from service.cli.terminal.context import make_database, member_of, opened_context, report_errors
from service.cli.terminal.options import FILE, json_option, settings_option, team_option
from service.cli.terminal.request_io import build_request, load_request
from service.cli.terminal.server import report_problems, server_options, stated_server

if TYPE_CHECKING:
    from service.context import AppContext
    from service.domain.teams import Principal
    from service.remote.transport import Server

PATH = "/v1/scenarios"
POLL_S, REMOTE_POLL_S = 0.2, 0.5
Body = dict[str, Any]
TEAM = team_option("The team whose scenario it is.")
JSON = json_option("Print the answer of GET /v1/scenarios/{id}.")


@click.group("scenario")
def scenario() -> None:
    """Run Monte Carlo, sensitivity, sweeps and optimisation, on the background workers, or here if there are none."""


@scenario.command("run")
@FILE
@settings_option("trials=1e6 or base.hardware.count=512", "Any field")
@TEAM
@JSON
@server_options
def run(file: Path, settings: tuple[str, ...], team: str, *, as_json: bool) -> None:
    """Evaluate a JSON or YAML FILE as for POST /v1/scenarios, and show the result. Ctrl-C leaves the scenario open."""
    request, server = build_request(file, settings), stated_server()
    if server is None:
        _run_here(request, team, as_json=as_json)
        return
    with report_problems():
        scenario_id = server.post(PATH, request)["id"]
        click.echo(f"scenario {scenario_id}", err=True)
        _follow_at(server, scenario_id, as_json=as_json)


def _run_here(request: Body, team: str, *, as_json: bool) -> None:
    from service.schemas.scenarios.request import ScenarioRequestSchema
    from service.schemas.scenarios.request import build_request as build_scenario
    from service.usecases.scenarios.scenarios import submit

    loaded = load_request(ScenarioRequestSchema(), request)
    if "notify" in loaded:
        raise click.ClickException("notify: a message is sent by a running service; name it with --server, or leave notify out")
    with opened_context() as context, report_errors():
        make_database(context)
        who = member_of(context, team)
        made = submit(context, who, build_scenario(loaded), request)
        click.echo(f"scenario {made.id}", err=True)
        _follow(context, who, made.id, as_json=as_json)


@scenario.command("watch")
@click.argument("scenario_id", metavar="ID")
@TEAM
@JSON
@server_options
def watch(scenario_id: str, team: str, *, as_json: bool) -> None:
    """Show a scenario's progress until it ends, and its result."""
    server = stated_server()
    if server is not None:
        with report_problems():
            _follow_at(server, scenario_id, as_json=as_json)
        return
    with _existing_database(team) as (context, who):
        _follow(context, who, scenario_id, as_json=as_json)


@scenario.command("cancel")
@click.argument("scenario_id", metavar="ID")
@TEAM
@server_options
def cancel(scenario_id: str, team: str) -> None:
    """Cancel a scenario; one that has ended is not changed."""
    server = stated_server()
    if server is not None:
        with report_problems():
            state = json.loads(server.send("DELETE", _address(scenario_id)))["state"]
    else:
        from service.usecases.scenarios import scenarios as usecase

        with _existing_database(team) as (context, who):
            state = usecase.cancel_scenario(context, who, scenario_id).row.state
    click.echo(f"scenario {scenario_id} is {state}")


@contextmanager
def _existing_database(team: str) -> Iterator[tuple[AppContext, Principal]]:
    """The context of an existing database, and the caller; errors are printed as one line."""
    with opened_context() as context, report_errors():
        if context.store.absent():
            raise click.ClickException("there are no scenarios here yet; `outlay scenario run` or POST /v1/scenarios begins one")
        yield context, member_of(context, team)


def _follow(context: AppContext, who: Principal, scenario_id: str, *, as_json: bool) -> None:
    """Wait for the end of a scenario, and evaluate it where no worker is alive. Raises NotFound, and ClickException where it has failed."""
    from service.schemas.scenarios.presenters import scenario_body
    from service.usecases.scenarios.scenarios import find_scenario

    with _local_worker(context):
        found = _wait_for_end(lambda: scenario_body(find_scenario(context, who, scenario_id)), POLL_S)
    _show(found, as_json=as_json)


def _follow_at(server: Server, scenario_id: str, *, as_json: bool) -> None:
    """Wait for the end of a server's scenario. Raises RemoteProblem, and ClickException where it has failed."""
    _show(_wait_for_end(lambda: server.get(_address(scenario_id)), REMOTE_POLL_S), as_json=as_json)


def _address(scenario_id: str) -> str:
    return f"{PATH}/{quote(scenario_id, safe='')}"


def _show(found: Body, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif found["result"] is not None:
        click.echo(render_result(found["result"]))
    if found["state"] != "succeeded":
        raise click.ClickException(f"scenario {found['id']} is {found['state']}{_reason(found)}")


def _reason(found: Body) -> str:
    return f": {found['error']}" if found["error"] else ""


def _wait_for_end(read: Callable[[], Body], poll_s: float) -> Body:
    """The scenario when it has ended, with a progress bar."""
    from service.domain.jobs import OPEN_STATES

    found = read()
    done = found["progress"]["done"]
    with click.progressbar(length=found["progress"]["total"], label=found["kind"], file=sys.stderr) as bar:
        bar.update(done)
        while found["state"] in OPEN_STATES:
            time.sleep(poll_s)
            before, found = found["progress"]["done"], read()
            bar.update(found["progress"]["done"] - before)
    return found


@contextmanager
def _local_worker(context: AppContext) -> Iterator[None]:
    """Run a thread that evaluates scenarios while no worker is alive; it gives its work back when the block ends."""
    over = threading.Event()
    thread = threading.Thread(target=_work_until, args=(context, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _work_until(context: AppContext, over: threading.Event) -> None:
    """Run scenario jobs until `over`. Asks each time whether a worker is alive: one may have stopped, or started, since."""
    from service.job_kinds import JOB_KINDS
    from service.usecases.jobs import WORKER_TIMEOUT, Worker, run_job
    from service.usecases.scenarios.worker import KIND, maintain_scenarios

    # Without "/process" in its name this owner leaves no heartbeat: the next command would wait for a worker that is gone.
    me = Worker(f"command line:{uuid.uuid4()}", over.is_set)
    while not over.wait(POLL_S):
        if context.store.workers_alive(context.clock() - WORKER_TIMEOUT):
            continue
        maintain_scenarios(context)
        for job in context.store.open_jobs(KIND):
            run_job(context, job.id, JOB_KINDS, me)
