"""/v1/track over HTTP: programs, runs and events, each kept once, none lost, none edited in place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.contract.older_answers import without_newer_fields

EXAMPLES = Path(__file__).parents[3] / "examples"
AT = "2026-02-01T00:00:00Z"
PROGRAM = {"name": "7B", "budget_usd": 250000, "planned_tokens": "1T", "start": "2026-01-04", "deadline": "2026-06-30"}
Body = dict[str, Any]


@pytest.fixture
def app(tracking_app: Flask) -> Flask:
    """The service on each database."""
    return tracking_app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the service."""
    return app.test_client()


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A program made by hand."""
    return made(client, "/v1/track/programs", PROGRAM)


@pytest.fixture
def run(client: FlaskClient, program: Body) -> Body:
    """A run of the program."""
    return made(client, f"/v1/track/programs/{program['id']}/runs", {"name": "main", "tier": "production"})


def made(client: FlaskClient, url: str, body: Body) -> Body:
    """What was made."""
    answer = client.post(url, json=body)
    assert answer.status_code == 201, answer.get_data(as_text=True)
    found: Body = answer.get_json()
    return found


def event(number: int, **more: Any) -> Body:
    """A progress event."""
    return {"id": f"step-{number}", "type": "progress", "at": AT, "step": number, "tokens_done": number * 4000, **more}


def told(client: FlaskClient, run: Body, *events: Body) -> Body:
    """What became of the events."""
    answer = client.post(f"/v1/track/runs/{run['id']}/events", json={"events": list(events)})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    found: Body = answer.get_json()
    return found


def correction(name: str, of: str, **fields: Any) -> Body:
    """A correction of the event or correction of that id."""
    return {"id": name, "type": "correction", "at": AT, "supersedes": of, **fields}


class TestPrograms:
    """Made by hand or from a plan, changed under their version."""

    def test_a_program_made_by_hand_is_found_where_its_location_says(self, client: FlaskClient) -> None:
        """201, Location and ETag; the same body there."""
        answer = client.post("/v1/track/programs", json=PROGRAM)
        assert (answer.status_code, answer.headers["ETag"]) == (201, '"1"')
        found = client.get(answer.headers["Location"])
        assert found.get_json() == answer.get_json()
        assert client.get(answer.headers["Location"], headers={"If-None-Match": '"1"'}).status_code == 304

    @pytest.mark.parametrize("as_answer", [False, True])
    def test_a_program_made_of_a_plan_takes_budget_scope_dates_and_gate_from_it(self, client: FlaskClient, as_answer: bool) -> None:
        """The plan's request and its answer say the same."""
        request = json.loads((EXAMPLES / "program-1b-64.json").read_text())
        answer = client.post("/v1/estimate/program", json=request).get_json()
        program = made(client, "/v1/track/programs", {"name": "1B", "plan": answer if as_answer else request})
        assert program["budget_usd"] == answer["total_usd"]["p50"]
        assert program["planned_tokens"] == round(sum(tier["tokens"] for tier in answer["tiers"]))
        assert (program["start"], program["deadline"]) == (answer["schedule"]["start"], answer["schedule"]["deadline"])
        assert program["midpoint_gate"] == {name: value for name, value in answer["midpoint_gate"].items() if name != "decision"}
        assert program["price_snapshot"] == answer["price_snapshot"]
        tier, planned = "production", answer["tiers"][-1]["runs"][0]
        run = made(client, f"/v1/track/programs/{program['id']}/runs", {"name": planned["name"], "tier": tier, "planned": {"usd": 1000}})
        assert run["planned"]["tokens"] == planned["tokens"]
        assert run["planned"]["usd"] == 1000

    def test_before_there_is_data_the_end_is_that_of_the_plans_calendar(self, client: FlaskClient) -> None:
        """Not its deadline; a tracked start two weeks later moves it by as much."""
        request = json.loads((EXAMPLES / "program-1b-64.json").read_text())
        answer = client.post("/v1/estimate/program", json=request).get_json()
        for start, days in (("2027-01-04", 0), ("2027-01-18", 14)):
            program = made(client, "/v1/track/programs", {"name": "1B", "plan": answer, "start": start})
            status = client.get(f"/v1/track/programs/{program['id']}/status?as_of=2026-11-23T00:00:00Z").get_json()
            planned = {name: date.fromisoformat(day) + timedelta(days=days) for name, day in answer["schedule"]["finish"].items()}
            assert status["forecast"]["finish"] == {name: day.isoformat() for name, day in planned.items()}
            assert "calendar" in status["forecast"]["basis"]

    def test_another_start_moves_the_dates_of_the_plan_and_of_its_runs(self, client: FlaskClient) -> None:
        """Of runs that have the plan's dates, not of those whose start was stated; the burn plan moves too."""
        request = json.loads((EXAMPLES / "program-1b-64.json").read_text())
        answer = client.post("/v1/estimate/program", json=request).get_json()
        program = made(client, "/v1/track/programs", {"name": "1B", "plan": answer})
        url = f"/v1/track/programs/{program['id']}"
        first, second = program["planned_runs"][:2]
        follows = made(client, f"{url}/runs", first)
        stated = made(client, f"{url}/runs", {**second, "planned": {"start": "2027-02-01", "finish": "2027-02-20"}})
        later = (date.fromisoformat(program["start"]) + timedelta(days=14)).isoformat()
        before = client.get(f"{url}/status?as_of={later}T12:00:00Z").get_json()
        assert client.patch(url, json={"start": later}, headers={"If-Match": "*"}).status_code == 200
        found = client.get(f"/v1/track/runs/{follows['id']}").get_json()
        assert found["planned"]["start"] == (date.fromisoformat(follows["planned"]["start"]) + timedelta(days=14)).isoformat()
        assert client.get(f"/v1/track/runs/{stated['id']}").get_json()["planned"]["start"] == "2027-02-01"
        after = client.get(f"{url}/status?as_of={later}T12:00:00Z").get_json()
        assert before["burn_rate"]["planned"]["usd_per_day"] != after["burn_rate"]["planned"]["usd_per_day"] > 0

    def test_the_gate_follows_the_budget(self, client: FlaskClient) -> None:
        """Its amount is its share of the budget in force, its day the week in which the burn plan reaches that."""
        request = json.loads((EXAMPLES / "program-1b-64.json").read_text())
        answer = client.post("/v1/estimate/program", json=request).get_json()
        url = f"/v1/track/programs/{made(client, '/v1/track/programs', {'name': '1B', 'plan': answer})['id']}"

        def gate(budget: float) -> tuple[Any, ...]:
            changed = client.patch(url, json={"budget_usd": budget}, headers={"If-Match": "*"}).get_json()["midpoint_gate"]
            assert changed == client.get(url).get_json()["midpoint_gate"]
            return tuple(changed[name] for name in ("at_usd", "date", "tier"))

        planned = answer["total_usd"]["p50"]
        weeks = answer["burn_plan"]
        assert gate(100.0) == (50.0, weeks[0]["monday"], None)
        assert gate(2 * planned) == (planned, weeks[-1]["monday"], None)
        assert gate(4 * planned) == (2 * planned, None, None)
        assert gate(planned) == tuple(answer["midpoint_gate"][name] for name in ("at_usd", "date", "tier"))

    @pytest.mark.parametrize("as_answer", [True, False])
    def test_the_gate_is_on_a_working_day_whatever_the_budget(self, client: FlaskClient, as_answer: bool) -> None:
        """The Monday on which the plan's would be is a holiday, and a dollar more moves no day; a later start moves it."""
        request = json.loads((EXAMPLES / "program-1b-64.json").read_text())
        request["defaults"]["efficiency"] = {"mfu": 0.4}
        request["midpoint_gate"] |= {"at_spend_share": 0.23}
        answer = client.post("/v1/estimate/program", json=request).get_json()
        assert (answer["midpoint_gate"]["date"], answer["midpoint_gate"]["tier"]) == ("2027-01-19", "validation")
        plan = {"name": "1B", "plan": answer if as_answer else request}
        url = f"/v1/track/programs/{made(client, '/v1/track/programs', plan)['id']}"
        changed = client.patch(url, json={"budget_usd": answer["total_usd"]["p50"] + 1}, headers={"If-Match": "*"}).get_json()
        assert (changed["midpoint_gate"]["date"], changed["midpoint_gate"]["tier"]) == ("2027-01-19", None)
        for more in ({}, {"budget_usd": answer["total_usd"]["p50"] + 1}):
            late = made(client, "/v1/track/programs", plan | {"start": "2027-01-23"} | more)["midpoint_gate"]
            assert (late["date"], late["tier"]) == ("2027-01-25", None)

    def test_a_gate_without_its_share_is_at_half_of_the_budget(self, client: FlaskClient) -> None:
        """As a plan's, and one that was kept without it."""
        made_now = made(client, "/v1/track/programs", PROGRAM | {"midpoint_gate": {"continue_if": {"cpi_at_least": 0.9}}})
        kept = {"name": "7B", "state": "open", "midpoint_gate": {"continue_if": {"cpi_at_least": 0.9}}, "budget_usd": 250_000.0}
        store = client.application.extensions["context"].store
        made_before = store.create_program("default", kept, None, datetime(2026, 2, 1, tzinfo=UTC)).id
        assert store.program("default", made_now["id"]).body["midpoint_gate"]["at_spend_share"] == 0.5
        for program in (made_now["id"], made_before):
            url = f"/v1/track/programs/{program}"
            assert client.get(url).get_json()["midpoint_gate"]["at_spend_share"] == 0.5
            assert client.get(f"{url}/status").get_json()["gate"]["due_usd"] == 125_000
            assert client.get(f"{url}/report").status_code == 200

    def test_what_is_closed_has_nothing_left(self, client: FlaskClient, program: Body, run: Body) -> None:
        """A run given up half way, or all of a closed program: it ended with the last that was told, and costs what it cost."""
        told(client, run, event(1, cost_usd=100.0))
        url = f"/v1/track/programs/{program['id']}"
        client.patch(f"/v1/track/runs/{run['id']}", json={"planned": {"tokens": "1T"}}, headers={"If-Match": "*"})
        assert client.get(f"{url}/status").get_json()["runs"][0]["state"] == "silent"
        client.patch(url, json={"state": "closed"}, headers={"If-Match": "*"})
        status = client.get(f"{url}/status").get_json()
        assert status["runs"][0]["state"] == "closed"
        assert (status["forecast"]["remaining_usd"]["p90"], status["forecast"]["finish"]["p90"]) == (0, AT[:10])

    @pytest.mark.parametrize("wrong", [{"budget_usd": 0}, {"planned_tokens": 0}])
    def test_a_plan_of_nothing_is_refused(self, client: FlaskClient, program: Body, wrong: Body) -> None:
        """What is not planned is left out; 0 would be taken for that."""
        (name,) = wrong
        changed = client.patch(f"/v1/track/programs/{program['id']}", json=wrong, headers={"If-Match": "*"})
        for answer in (client.post("/v1/track/programs", json=PROGRAM | wrong), changed):
            assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, f"/{name}")
        for zero in ("tokens", "usd", "accelerator_hours"):
            answer = client.post(f"/v1/track/programs/{program['id']}/runs", json={"name": "x", "planned": {zero: 0}})
            assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, f"/planned/{zero}")

    def test_an_answer_kept_before_fields_were_there_is_a_plan_too(self, client: FlaskClient) -> None:
        """Each field that it lacks stands for its default: the program is that of the whole answer."""
        request = json.loads((EXAMPLES / "program-1b-64.json").read_text())
        answer = client.post("/v1/estimate/program", json=request).get_json()
        older = without_newer_fields(answer)
        assert len(json.dumps(older)) < len(json.dumps(answer)) - 1000
        found, whole = (made(client, "/v1/track/programs", {"name": "1B", "plan": plan}) for plan in (older, answer))
        changing = {"id", "created_at", "updated_at"} | {"midpoint_gate", "outcome", "guardrails"}
        assert {name: value for name, value in found.items() if name not in changing} == {
            name: value for name, value in whole.items() if name not in changing
        }
        assert found["guardrails"] == []
        for name in ("at_usd", "at_spend_share", "date", "continue_if", "stop_if", "committed_usd"):
            assert found["midpoint_gate"][name] == whole["midpoint_gate"][name]
        statuses = [client.get(f"/v1/track/programs/{program['id']}/status").get_json() for program in (found, whole)]
        assert statuses[0]["forecast"] == statuses[1]["forecast"]
        assert statuses[0]["reserve"] == statuses[1]["reserve"]

    def test_an_answer_that_lacks_what_was_always_there_is_refused(self, client: FlaskClient) -> None:
        """The burn plan and a run's tokens have no default."""
        answer = client.post("/v1/estimate/program", json=json.loads((EXAMPLES / "program-1b-64.json").read_text())).get_json()
        del answer["burn_plan"], answer["tiers"][0]["runs"][0]["tokens"]
        told = client.post("/v1/track/programs", json={"name": "1B", "plan": answer})
        assert told.status_code == 422
        assert {error["pointer"] for error in told.get_json()["errors"]} == {"/plan/burn_plan", "/plan/tiers/0/runs/0/tokens"}

    def test_a_plan_without_a_budget_says_what_to_state(self, client: FlaskClient) -> None:
        """Request or answer: nobody sells its accelerator, and spend is held against the budget."""
        estimate = {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"accelerator": "H800", "count": 64}}
        request = {"name": "x", "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": estimate}]}]}
        for plan in (request, client.post("/v1/estimate/program", json=request).get_json()):
            answer = client.post("/v1/track/programs", json={"name": "x", "plan": plan})
            (problem,) = answer.get_json()["errors"]
            assert (answer.status_code, problem["pointer"]) == (422, "/plan")
            assert "price.usd_per_accelerator_hour" in problem["message"]

    def test_a_plan_that_cannot_be_read_is_told_where(self, client: FlaskClient) -> None:
        """Pointers lead into the plan."""
        answer = client.post("/v1/track/programs", json={"name": "x", "plan": {"name": "x", "tiers": [{"tier": "nonsense", "runs": []}]}})
        pointers = {error["pointer"] for error in answer.get_json()["errors"]}
        assert answer.status_code == 422
        assert "/plan/tiers/0/tier" in pointers

    def test_a_deadline_before_the_start_is_refused(self, client: FlaskClient, program: Body) -> None:
        """When it is made as when it is changed."""
        answer = client.post("/v1/track/programs", json=PROGRAM | {"deadline": "2026-01-03"})
        assert answer.get_json()["errors"][0]["pointer"] == "/deadline"
        changed = client.patch(f"/v1/track/programs/{program['id']}", json={"start": "2027-01-01"}, headers={"If-Match": "*"})
        assert changed.status_code == 422

    def test_a_change_needs_the_newest_version(self, client: FlaskClient, program: Body) -> None:
        """428 without If-Match, 412 with an older one, 200 with the newest."""
        url = f"/v1/track/programs/{program['id']}"
        assert client.patch(url, json={"budget_usd": 1}).status_code == 428
        changed = client.patch(url, json={"budget_usd": 300000}, headers={"If-Match": '"1"'})
        assert (changed.status_code, changed.headers["ETag"], changed.get_json()["budget_usd"]) == (200, '"2"', 300000)
        assert client.patch(url, json={"budget_usd": 1}, headers={"If-Match": '"1"'}).status_code == 412
        assert client.get(url).get_json() == changed.get_json()

    def test_of_two_writers_at_once_one_is_told(self, app: Flask, program: Body) -> None:
        """Eight change the same version; one does."""

        def change(number: int) -> int:
            answer = app.test_client().patch(
                f"/v1/track/programs/{program['id']}", json={"budget_usd": number}, headers={"If-Match": '"1"'}
            )
            return answer.status_code

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(change, range(1, 9))) == [200] + [412] * 7

    def test_a_closed_program_takes_no_more_runs(self, client: FlaskClient, program: Body) -> None:
        """It says what to do."""
        url = f"/v1/track/programs/{program['id']}"
        client.patch(url, json={"state": "closed"}, headers={"If-Match": "*"})
        answer = client.post(f"{url}/runs", json={"name": "late"})
        assert answer.status_code == 422
        assert "open it" in answer.get_json()["detail"]

    def test_lists_are_paged_with_the_newest_first(self, client: FlaskClient) -> None:
        """Every program once, however small the pages."""
        names = [f"paged {n}" for n in range(7)]
        for name in names:
            made(client, "/v1/track/programs", {"name": name})
        found = [program["name"] for program in walked(client, "/v1/track/programs", 3)]
        assert found[:7] == names[::-1]
        assert len(found) == len(client.get("/v1/track/programs?limit=1000").get_json()["items"])

    def test_lists_can_be_of_open_or_of_closed_programs(self, client: FlaskClient) -> None:
        """By the state of their newest version."""
        ended, going = (made(client, "/v1/track/programs", {"name": name}) for name in ("ended", "going"))
        client.patch(f"/v1/track/programs/{ended['id']}", json={"state": "closed"}, headers={"If-Match": "*"})
        listed = {state: client.get(f"/v1/track/programs?state={state}&limit=1000").get_json()["items"] for state in ("open", "closed")}
        assert {program["state"] for program in listed["open"]} == {"open"}
        assert {program["state"] for program in listed["closed"]} == {"closed"}
        assert (listed["open"][0]["id"], listed["closed"][0]["id"]) == (going["id"], ended["id"])
        assert client.get("/v1/track/programs?state=done").status_code == 422

    def test_fifty_that_make_the_same_at_once_make_one(self, app: Flask) -> None:
        """With one Idempotency-Key every one of them gets the same answer, or is told to wait."""

        before = len(app.test_client().get("/v1/track/programs?limit=1000").get_json()["items"])

        def post(_: int) -> tuple[int, str | None]:
            answer = app.test_client().post("/v1/track/programs", json=PROGRAM, headers={"Idempotency-Key": "the-one"})
            return answer.status_code, (answer.get_json() or {}).get("id")

        with ThreadPoolExecutor(10) as pool:
            answers = set(pool.map(post, range(50)))
        assert len({found for status, found in answers if status == 201}) == 1
        assert {status for status, _ in answers} <= {201, 409}
        assert len(app.test_client().get("/v1/track/programs?limit=1000").get_json()["items"]) == before + 1


class TestEvents:
    """Sent late, twice or out of order; kept once."""

    def test_the_contracts_event_is_accepted_once(self, client: FlaskClient, run: Body) -> None:
        """The second time it is a duplicate."""
        one = event(1000, tokens_done=4194304000, accelerator_hours=512.0, cost_usd=1280.0, loss=2.91)
        assert told(client, run, one) == {"accepted": 1, "duplicates": 0, "rejected": []}
        assert told(client, run, one) == {"accepted": 0, "duplicates": 1, "rejected": []}
        kept = client.get(f"/v1/track/runs/{run['id']}/events").get_json()["items"]
        assert [{name: logged[name] for name in one} for logged in kept] == [one]

    def test_another_event_under_the_same_id_is_told(self, client: FlaskClient, run: Body) -> None:
        """Nothing is edited in place."""
        told(client, run, event(1))
        answer = told(client, run, event(1, loss=9.0), event(2))
        assert (answer["accepted"], answer["rejected"][0]["id"]) == (1, "step-1")
        assert "correction" in answer["rejected"][0]["reason"]

    def test_a_correction_with_fields_of_another_type_is_told(self, client: FlaskClient, run: Body) -> None:
        """Which fields its event takes; through other corrections too, and in the same batch as their event."""
        note = {"id": "note", "type": "note", "at": AT, "text": "x"}
        answer = told(client, run, event(1), note, correction("a", "step-1", text="x", usd=3), correction("b", "step-1", loss=2.0))
        assert (answer["accepted"], [refused["id"] for refused in answer["rejected"]]) == (3, ["a"])
        assert answer["rejected"][0]["reason"] == (
            "text, usd: not taken by an event of type progress, which takes"
            " accelerator_hours, accelerators, cost_usd, loss, mfu, step, tokens_done"
        )
        again = told(client, run, correction("c", "b", verdict="stop"), correction("d", "note"), correction("e", "d", text="y"))
        assert (again["accepted"], [refused["id"] for refused in again["rejected"]]) == (2, ["c"])
        assert "of type progress" in again["rejected"][0]["reason"]

    def test_every_event_is_counted_once_whatever_becomes_of_it(self, client: FlaskClient, run: Body) -> None:
        """One that shares its id with a refused correction is kept, the same refusal twice is two."""
        wrong = {"id": "step-2", "type": "correction", "at": AT, "supersedes": "step-1", "cause": "gpu"}
        far = {"id": "far", "type": "correction", "at": "2999-01-01T00:00:00Z", "supersedes": "far"}
        found = told(client, run, event(1), wrong, wrong, event(2), event(2), far)
        assert (found["accepted"], found["duplicates"], [one["id"] for one in found["rejected"]]) == (2, 1, ["far", "step-2", "step-2"])

    def test_a_correction_is_held_against_the_first_event_of_an_id(self, client: FlaskClient, run: Body) -> None:
        """That is the one that is kept."""
        second = {"id": "step-1", "type": "note", "at": AT, "text": "another"}
        fix = {"id": "fix", "type": "correction", "at": AT, "supersedes": "step-1", "loss": 2.0}
        found = told(client, run, event(1), second, fix)
        assert (found["accepted"], [one["id"] for one in found["rejected"]]) == (2, ["step-1"])

    def test_a_correction_that_is_kept_stays_a_duplicate(self, client: FlaskClient, run: Body) -> None:
        """It came before its event, whose type nobody knew then: sent again, it is still what it was."""
        early = correction("a", "step-1", text="x")
        assert told(client, run, early)["accepted"] == 1
        told(client, run, event(1))
        assert told(client, run, early) == {"accepted": 0, "duplicates": 1, "rejected": []}

    def test_a_clock_may_run_ahead_by_a_day_and_back_by_any_time(self, client: FlaskClient, run: Body) -> None:
        """What lies further ahead is refused by its id; the others of the batch are kept."""
        answer = told(client, run, event(1, at="1999-01-01T00:00:00Z"), event(2, at="2999-01-01T00:00:00Z"))
        assert (answer["accepted"], [refused["id"] for refused in answer["rejected"]]) == (1, ["step-2"])

    def test_amounts_come_back_to_the_micro_dollar(self, client: FlaskClient, run: Body) -> None:
        """Sums of tenths do not drift."""
        told(client, run, event(1, cost_usd=1280.1), {"id": "s", "type": "cost", "at": AT, "usd": -0.000001, "line": "storage"})
        kept = client.get(f"/v1/track/runs/{run['id']}/events").get_json()["items"]
        assert (kept[0]["cost_usd"], kept[1]["usd"]) == (1280.1, -0.000001)

    @pytest.mark.parametrize("loss", ["nan", "inf", "-inf", 2.5])
    def test_a_loss_may_be_no_number(self, client: FlaskClient, run: Body, loss: Any) -> None:
        """It comes back as it was sent."""
        told(client, run, event(1, loss=loss))
        assert client.get(f"/v1/track/runs/{run['id']}/events").get_json()["items"][0]["loss"] == loss

    @pytest.mark.parametrize(
        ("wrong", "pointer"),
        [
            ({"type": "note", "at": AT, "text": "x", "loss": 3}, "/events/0/loss"),
            ({"type": "progress", "at": AT}, "/events/0"),
            ({"type": "rollback", "at": AT, "to_step": 3}, "/events/0/tokens_done"),
            ({"type": "progress", "at": "2026-02-01", "step": 1}, "/events/0/at"),
            ({"type": "progress", "at": AT, "step": -1}, "/events/0/step"),
            ({"type": "progress", "at": AT, "tokens_done": 1.5}, "/events/0/tokens_done"),
            ({"type": "progress", "at": AT, "cost_usd": -1}, "/events/0/cost_usd"),
            ({"type": "progress", "at": AT, "loss": "big"}, "/events/0/loss"),
            ({"type": 3, "at": AT}, "/events/0/type"),
            ({"id": "", "type": "party", "at": AT}, "/events/0/id"),
            ({"type": "decision", "at": AT, "gate": "midpoint", "verdict": "maybe"}, "/events/0/verdict"),
            ({"type": "note", "at": AT, "text": "x", "colour": "red"}, "/events/0/colour"),
        ],
    )
    def test_what_is_no_event_is_refused_with_its_place(self, client: FlaskClient, run: Body, wrong: Body, pointer: str) -> None:
        """The whole batch: nothing of it is kept."""
        answer = client.post(f"/v1/track/runs/{run['id']}/events", json={"events": [{"id": "x", **wrong}, event(1)]})
        assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, pointer)
        assert client.get(f"/v1/track/runs/{run['id']}/events").get_json()["items"] == []

    def test_an_event_of_an_unknown_type_is_rejected_alone(self, client: FlaskClient, run: Body) -> None:
        """With its id and the types there are: a later client may send more kinds. The others are kept."""
        answer = told(client, run, {"id": "x", "type": "party", "at": AT, "guests": 3}, event(1))
        (rejected,) = answer["rejected"]
        assert (answer["accepted"], answer["duplicates"], rejected["id"]) == (1, 0, "x")
        assert "type: must be one of progress, " in rejected["reason"]
        assert told(client, run, {"id": "y", "type": "party", "at": AT})["rejected"][0]["id"] == "y"
        assert [kept["id"] for kept in client.get(f"/v1/track/runs/{run['id']}/events").get_json()["items"]] == [event(1)["id"]]

    def test_a_batch_has_one_to_a_thousand_events(self, client: FlaskClient, run: Body) -> None:
        """A thousand are taken."""
        url = f"/v1/track/runs/{run['id']}/events"
        assert client.post(url, json={"events": []}).status_code == 422
        assert client.post(url, json={"events": [event(n) for n in range(1001)]}).status_code == 422
        assert told(client, run, *(event(n) for n in range(1000)))["accepted"] == 1000

    def test_the_log_is_paged_while_it_grows(self, client: FlaskClient, run: Body) -> None:
        """What comes meanwhile comes after; nothing is missed or doubled."""
        told(client, run, *(event(n, at="2026-03-01T00:00:00Z") for n in range(50)))
        grown = iter(range(100, 160))

        def grow() -> None:
            told(client, run, *(event(number) for number in islice(grown, 10)))

        seen = [logged["id"] for logged in walked(client, f"/v1/track/runs/{run['id']}/events", 25, grow)]
        assert len(seen) == len(set(seen)) == client.get(f"/v1/track/runs/{run['id']}").get_json()["events"]
        assert len(seen) > 50

    def test_what_does_not_exist_is_not_found(self, client: FlaskClient, program: Body) -> None:
        """For every address with an id."""
        for method, url in (
            ("get", "/v1/track/programs/none"),
            ("get", "/v1/track/runs/none"),
            ("get", "/v1/track/runs/none/events"),
            ("get", f"/v1/track/runs/{program['id']}"),
            ("get", "/v1/track/programs/none/runs"),
        ):
            assert getattr(client, method)(url).status_code == 404, url
        assert client.post("/v1/track/runs/none/events", json={"events": [event(1)]}).status_code == 404
        assert client.post("/v1/track/programs/none/runs", json={"name": "x"}).status_code == 404


def walked(client: FlaskClient, url: str, limit: int, between: Callable[[], None] = lambda: None) -> Iterator[Body]:
    """All items of a list, page by page."""
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(url, query_string={"limit": limit} | ({"cursor": cursor} if cursor else {})).get_json()
        yield from page["items"]
        cursor = page["next_cursor"]
        between() if cursor else None
