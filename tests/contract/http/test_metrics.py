"""What /metrics shows, to whom, and that it is answered whatever hangs."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service import create_app
from service.api.http import metrics as page
from service.config import Settings, load_settings
from service.context import AppContext
from service.domain.metrics import KEYED_READINGS, METRICS, PROGRAM_FIGURES, REDIS_UP
from service.usecases.keys import make_key
from service.usecases.monitoring import program_figures
from service.usecases.monitoring.program_figures import compute_due_figures
from tests.contract.tracking import tracked_program
from tests.support.freezing_proxy import FreezingProxy
from tests.support.servers import wait_for

KEY = "a-key-for-metrics-0123456789"
BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def app(url: str, settings: Settings) -> Iterator[Flask]:
    """The service with a key for metrics, on each database."""
    settings.data_dir.mkdir(parents=True)
    made = create_app(replace(settings, database_url=url, metrics_key=KEY))
    with closing(made.extensions["context"].store) as store:
        store.migrate()
        yield made


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the service."""
    return app.test_client()


def context_of(app: Flask) -> AppContext:
    found: AppContext = app.extensions["context"]
    return found


def values(client: FlaskClient, **headers: str) -> dict[str, float]:
    """Every series of the answer by its name and labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    lines = (line for line in answer.get_data(as_text=True).splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def names(shown: dict[str, float]) -> set[str]:
    """Names of the metrics shown, without what histograms add to theirs."""
    return {re.sub(r"_(bucket|count|sum)$", "", series.partition("{")[0]) for series in shown}


def one(shown: dict[str, float], metric: str, /, **labels: str) -> float:
    """The only series of a metric with these labels."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    found = [value for series, value in shown.items() if series.partition("{")[0] == metric and all(text in series for text in wanted)]
    assert len(found) == 1, (metric, labels, found)
    return found[0]


def test_every_metric_of_the_catalogue_is_shown_and_no_other(app: Flask, client: FlaskClient) -> None:
    """Those of programs too, once a worker has computed them; Redis is shown where one is configured, jobs where this process ran some."""
    context = context_of(app)
    job = context.store.create_job("any", {}, context.clock())
    tracked_program.told(client)
    compute_due_figures(context)
    make_key(context, "a team", "reader", ["read"], "never")
    assert context.store.job(job.id) is not None
    shown = {name for name in names(values(client, **BEARER)) if not name.endswith("_created")}
    every = {metric.name for metric in METRICS}
    elsewhere = {REDIS_UP.name, "outlay_job_attempts_total", "outlay_job_duration_seconds", "outlay_price_age_seconds"}
    assert every - elsewhere <= shown <= every - {REDIS_UP.name}


def test_figures_of_a_program_are_those_of_its_status(app: Flask, client: FlaskClient) -> None:
    """Spend, budget, forecast, gate and drift, with team, program and name as labels."""
    program = tracked_program.told(client)
    compute_due_figures(context_of(app))
    status = client.get(f"/v1/track/programs/{program['id']}/status").get_json()
    shown = values(client, **BEARER)
    of = {"team": "default", "program": program["id"], "name": program["name"]}
    assert one(shown, "outlay_program_spend_usd", **of) == status["spend"]["usd"]
    assert one(shown, "outlay_program_budget_usd", **of) == tracked_program.PROGRAM["budget_usd"]
    assert one(shown, "outlay_program_eac_usd", **of) == pytest.approx(status["earned_value"]["eac_usd"], abs=0.01)
    for quantile, percentile in (("0.1", "p10"), ("0.5", "p50"), ("0.9", "p90")):
        forecast = one(shown, "outlay_program_forecast_cost_usd", quantile=quantile, **of)
        assert forecast == pytest.approx(status["forecast"]["cost_usd"][percentile], rel=1e-6)
    assert one(shown, "outlay_program_gate_due", **of) == status["gate"]["due"]
    assert one(shown, "outlay_program_gate_recommendation", recommendation=status["gate"]["recommendation"], **of) == 1


def test_without_the_key_nothing_names_a_team_or_a_program(app: Flask, client: FlaskClient) -> None:
    """What is open holds neither names nor figures of programs."""
    program = tracked_program.told(client)
    compute_due_figures(context_of(app))
    text = client.get("/metrics").get_data(as_text=True)
    assert not names(values(client)) & {metric.name for metric in KEYED_READINGS}
    assert program["id"] not in text
    assert program["name"] not in text
    assert "team=" not in text


@pytest.mark.parametrize("sent", ["Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer", "Bearer é"])
def test_a_wrong_key_is_refused(client: FlaskClient, sent: str) -> None:
    """401, so that a scraper with an old key is noticed and does not silently see less."""
    answer = client.get("/metrics", headers={"Authorization": sent})
    assert answer.status_code == 401
    assert answer.content_type == "application/problem+json"
    assert "Bearer" in answer.headers["WWW-Authenticate"]


def test_without_a_metrics_key_no_figures_are_computed_or_shown(app: Flask, client: FlaskClient) -> None:
    """Nobody could read them."""
    context = context_of(app)
    tracked_program.told(client)
    assert compute_due_figures(replace(context, settings=replace(context.settings, metrics_key=None))) == 0
    assert compute_due_figures(context) == 1


def test_figures_are_computed_again_when_there_are_new_events_or_time_has_passed(app: Flask, client: FlaskClient) -> None:
    """Not at every turn: a status costs more than a scrape should."""
    context = context_of(app)
    program = tracked_program.told(client)
    now = context.clock()

    def computed(after: Any) -> int:
        return compute_due_figures(replace(context, clock=lambda: now + after))

    assert [computed(0 * program_figures.AFTER_EVENTS), computed(program_figures.AFTER_EVENTS)] == [1, 0]
    run = client.get(f"/v1/track/programs/{program['id']}/runs").get_json()["items"][0]
    event = {"id": "another", "type": "note", "at": tracked_program.AS_OF, "text": "on"}
    assert client.post(f"/v1/track/runs/{run['id']}/events", json={"events": [event]}).status_code == 200
    assert computed(program_figures.AFTER_EVENTS / 2) == 0
    assert [computed(program_figures.AFTER_EVENTS), computed(2 * program_figures.AFTER_EVENTS)] == [1, 0]
    assert computed(program_figures.AFTER_EVENTS + program_figures.AT_LATEST) == 1


def test_the_number_of_programs_shown_is_bounded_and_closed_ones_are_not(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest are shown, and how many are not."""
    monkeypatch.setattr(program_figures, "MAX_PROGRAMS", 2)
    programs = [tracked_program.made(client, "/v1/track/programs", {"name": f"program {number}"}) for number in range(4)]
    compute_due_figures(context_of(app))
    shown = values(client, **BEARER)
    ids = {match for series in shown for match in re.findall('program="([^"]*)"', series)}
    assert ids == {program["id"] for program in programs[2:]}
    assert one(shown, "outlay_programs_omitted") == 2
    closed = client.patch(f"/v1/track/programs/{programs[3]['id']}", json={"state": "closed"}, headers={"If-Match": '"1"'})
    assert closed.status_code == 200, closed.text
    assert programs[3]["id"] not in client.get("/metrics", headers=BEARER).get_data(as_text=True)


def test_work_budgets_of_teams_are_shown_with_the_key_alone(app: Flask, client: FlaskClient) -> None:
    """A team's share of each budget, once it has a key."""
    token = make_key(context_of(app), "a team", "reader", ["read"], "never")[1]
    wait_for(lambda: client.get("/v1/accelerators").status_code == 401, "the first key to be known")
    assert client.get("/v1/accelerators", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    shown = values(client, **BEARER)
    assert one(shown, "outlay_team_work_used_ratio", team="a team", budget="estimates") == 0
    assert 0 < one(shown, "outlay_team_work_used_ratio", team="a team", budget="cpu-seconds") < 1
    assert "outlay_team_work_used_ratio" not in names(values(client))


def test_names_of_programs_cannot_forge_series(app: Flask, client: FlaskClient) -> None:
    """Quotes, backslashes and line breaks in a name stay inside its label."""
    name = 'x"} 1\\ {y="'
    tracked_program.made(client, "/v1/track/programs", {"name": name})
    compute_due_figures(context_of(app))
    lines = client.get("/metrics", headers=BEARER).get_data(as_text=True).splitlines()
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    assert all(f'name="{escaped}"' in line for line in lines if line.startswith("outlay_program_"))


def test_waiting_jobs_are_counted_by_state_with_the_age_of_the_oldest(app: Flask, client: FlaskClient) -> None:
    """Queued, running with a lease, and lost, whose lease has run out."""
    context = context_of(app)
    now = context.clock()
    for kind in ("a", "b", "c"):
        context.store.create_job(kind, {}, now)
    for job, lease_s in zip(context.store.open_jobs("a") + context.store.open_jobs("b"), (3600, -100), strict=True):
        assert context.store.claim_job(job.id, "worker/1", now, lease_s) is not None
    shown = values(client)
    assert [one(shown, "outlay_jobs", state=state) for state in ("queued", "running", "lost")] == [1, 1, 1]
    assert one(shown, "outlay_jobs_oldest_waiting_seconds") >= 100


def test_refused_keys_are_counted_by_reason(app: Flask, client: FlaskClient) -> None:
    """Missing ones and wrong ones."""
    make_key(context_of(app), "a team", "reader", ["read"], "never")
    before = values(client)
    wait_for(lambda: client.get("/v1/accelerators").status_code == 401, "the first key to be known")
    assert client.get("/v1/accelerators", headers={"Authorization": "Bearer outlay_no"}).status_code == 401
    after = values(client)
    name = "outlay_keys_refused_total"
    rise = {reason: one(after, name, reason=reason) - one(before, name, reason=reason) for reason in ("missing", "invalid")}
    assert rise == {"missing": 1, "invalid": 1}


def test_a_hung_database_is_told_with_what_was_read_before(postgres_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes; disk and counts are new, the rest is of an age that is told."""
    with closing(FreezingProxy.before(postgres_url)) as proxy:
        settings.data_dir.mkdir(parents=True)
        app = create_app(replace(settings, database_url=proxy.url(postgres_url), metrics_key=KEY))
        with closing(context_of(app).store) as store:
            store.migrate()
            client = app.test_client()
            wait_for(lambda: "outlay_jobs_oldest_waiting_seconds" in values(client), "a first reading")
            wait_for(lambda: one(values(client), "outlay_database_up") == 1, "an answer to the ping")
            monkeypatch.setattr(page, "DEADLINE_S", 0.1)
            proxy.freeze()
            shown = values(client, **BEARER)
            proxy.thaw()
    assert one(shown, "outlay_database_up") == 0
    assert one(shown, "outlay_jobs_oldest_waiting_seconds") == 0
    assert one(shown, "outlay_reading_age_seconds") > 0
    assert one(shown, "outlay_disk_free_bytes") > 0


def test_nothing_is_waited_for_while_the_database_does_not_answer(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long an answer may take; the last reading is shown."""
    store, hangs = context_of(app).store, threading.Event()
    client = app.test_client()
    wait_for(lambda: "outlay_jobs_oldest_waiting_seconds" in values(client), "a first reading")
    monkeypatch.setattr(store, "ping", lambda _timeout_s: False)
    monkeypatch.setattr(store, "last_beat", hangs.wait)
    monkeypatch.setattr(page, "DEADLINE_S", 3600.0)
    shown = values(client)
    hangs.set()
    assert one(shown, "outlay_database_up") == 0
    assert one(shown, "outlay_jobs_oldest_waiting_seconds") == 0


def test_program_figures_name_what_they_are_of() -> None:
    """Each has the program's labels first, so that they can be joined and hidden."""
    assert all(metric.labels[:3] == ("team", "program", "name") for metric in PROGRAM_FIGURES)
    assert load_settings({"OUTLAY_METRICS_KEY": KEY}).metrics_key == KEY
