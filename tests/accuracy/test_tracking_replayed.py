"""Published runs told to the service as events: what it says on the way holds how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import load_settings
from service.domain.tracking.records import LoggedEvent
from service.schemas.tracking.events import event_body
from service.serialization import to_builtins
from tests.support import replay
from tests.support.replay import published

NAMES = ("llama-3-405b", "opt-175b")
STAGES = (0.25, 0.5, 0.75)
USD_PER_ACCELERATOR_HOUR = 2.0
BATCH = 1000
BY_THE_SERVICE = ("position", "received_at")
Status = Callable[[str, datetime], dict[str, Any]]
events = cache(replay.events)


@pytest.fixture(scope="module")
def status(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Status]:
    """The state of a published run's program as of a moment; its whole run is told once."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("replay") / "data"), "OUTLAY_OFFLINE": "1"}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        client = app.test_client()
        told = cache(lambda name: replayed(client, name))

        def ask(name: str, as_of: datetime) -> dict[str, Any]:
            answer = client.get(f"/v1/track/programs/{told(name)}/status", query_string={"as_of": to_builtins(as_of)})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.get_json()
            return found

        yield ask


def replayed(client: FlaskClient, name: str) -> str:
    """The id of a program whose one run was told; it was planned at its source's pace, without a stop."""
    run = published(name)
    tokens, start = round(float(run.tokens[-1])), run.start.date().isoformat()
    wall_clock_hours = tokens / run.tokens_per_hour
    hours, finish = run.accelerators * wall_clock_hours, (run.start + timedelta(hours=wall_clock_hours)).date().isoformat()
    usd = hours * USD_PER_ACCELERATOR_HOUR
    program = made(client, "/v1/track/programs", {"name": name, "budget_usd": 2 * usd, "planned_tokens": tokens, "start": start})
    planned = {"tokens": tokens, "accelerator_hours": hours, "usd": usd, "start": start, "finish": finish}
    kept = made(client, f"/v1/track/programs/{program['id']}/runs", {"name": name, "planned": planned})
    bodies = [body_of(LoggedEvent(0, event, event.at)) for event in events(name)]
    for begin in range(0, len(bodies), BATCH):
        answer = client.post(f"/v1/track/runs/{kept['id']}/events", json={"events": bodies[begin : begin + BATCH]})
        assert (answer.status_code, answer.get_json()["rejected"]) == (200, [])
    return str(program["id"])


def body_of(logged: LoggedEvent) -> dict[str, Any]:
    """The event as a sender writes it."""
    return {name: value for name, value in event_body(logged).items() if name not in BY_THE_SERVICE}


def made(client: FlaskClient, url: str, body: dict[str, Any]) -> dict[str, Any]:
    """What was made."""
    answer = client.post(url, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def moment_of(name: str, stage: float) -> datetime:
    """When the run had first trained that share of its tokens."""
    whole = published(name).tokens[-1]
    return next(event.at for event in events(name) if event.type == "progress" and (event.tokens_done or 0) >= stage * whole)


def end_of(name: str) -> datetime:
    """When the run had trained all of them."""
    return max(event.at for event in events(name))


def holds(foretold: dict[str, Any], value: Any) -> bool:
    """Whether the range of p10 to p90 holds a value."""
    return bool(foretold["p10"] <= value <= foretold["p90"])


@pytest.mark.parametrize("stage", STAGES, ids=[f"{stage:.0%}" for stage in STAGES])
@pytest.mark.parametrize("name", NAMES)
class TestOnTheWay:
    """At a quarter, half and three quarters of the tokens."""

    def test_cost_and_finish_lie_in_the_forecast(self, status: Status, name: str, stage: float) -> None:
        """Finish by the day, cost and accelerator-hours, as they turned out."""
        run, now, end = published(name), moment_of(name, stage), end_of(name)
        found = status(name, now)
        hours = run.accelerators * float(run.hours[-1])
        assert holds(found["forecast"]["finish"], end.date().isoformat())
        assert holds(found["forecast"]["cost_usd"], hours * USD_PER_ACCELERATOR_HOUR)
        assert holds(found["forecast"]["remaining_accelerator_hours"], hours - found["spend"]["accelerator_hours"])

    def test_interruptions_by_then_are_counted_with_their_causes(self, status: Status, name: str, stage: float) -> None:
        """None of those that came later."""
        now = moment_of(name, stage)
        by_then = Counter(event.cause for event in events(name) if event.type == "interruption" and event.at <= now)
        found = status(name, now)["interruptions"]
        assert found["count"] == by_then.total()
        assert found["causes"] == by_then

    def test_tokens_and_spend_are_those_of_the_moment(self, status: Status, name: str, stage: float) -> None:
        """The share of the tokens as planned, the money that was spent on them."""
        found = status(name, moment_of(name, stage))
        last = [event for event in events(name) if event.type == "progress" and event.at <= moment_of(name, stage)][-1]
        assert found["spend"]["tokens"] == last.tokens_done
        assert found["spend"]["usd"] == pytest.approx((last.accelerator_hours or 0) * USD_PER_ACCELERATOR_HOUR)
        assert found["earned_value"]["tokens_share"] == pytest.approx(stage, abs=0.01)


def test_llama_3_shows_its_mfu_goodput_and_interruptions(status: Status) -> None:
    """41 % MFU, over 90 % effective training time, and 466 interruptions in 54 days."""
    found = status("llama-3-405b", end_of("llama-3-405b"))
    (run,) = found["runs"]
    assert run["utilisation"]["mfu"] == pytest.approx(0.41)
    assert run["utilisation"]["goodput"] == pytest.approx(0.9, abs=0.02)
    assert found["interruptions"]["count"] == 466
    assert run["state"] == "finished"


def test_opt_175b_shows_its_restarts(status: Status) -> None:
    """Some 90 of them; its sources tell no MFU, and none is made up."""
    found = status("opt-175b", end_of("opt-175b"))
    assert found["interruptions"]["count"] == 91
    assert found["runs"][0]["utilisation"]["mfu"] is None
