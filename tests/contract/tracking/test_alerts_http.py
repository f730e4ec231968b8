"""Alert rules over HTTP: made, shown without their secrets, tried, ended; what they told, and how it got through."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.api.resources.programs import EXAMPLE
from service.domain.tracking.alerts import RULE_FIELDS
from service.usecases.tracking import alerts as usecase
from service.usecases.tracking.alerts import evaluate_program

Body = dict[str, Any]
HOOK = "https://hooks.example.com:8443/in/s3cr3t-path?token=s3cr3t-query"
SLACK = "https://hooks.slack.com/services/T0/B0/s3cr3t-slack"
SECRET = "whsec_" + "A" * 32
LIMITS: Body = {"shares": [0.8, 0.5, 0.5], "percentile": "p50", "hours": 6, "days": 7, "team_usd": 1e6}
PROGRAM = {"name": "7B", "budget_usd": 1000, "planned_tokens": 1000, "start": "2026-01-05", "deadline": "2026-01-15"}
BUDGET: Body = {"kind": "budget", "shares": [0.5, 1.0], "targets": [{"webhook": HOOK}]}


@pytest.fixture
def client(tracking_app: Flask) -> FlaskClient:
    """A client of the service on each database."""
    return tracking_app.test_client()


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A program of 1,000 USD."""
    made: Body = client.post("/v1/track/programs", json=PROGRAM).get_json()
    return made


def create(client: FlaskClient, program: Body, rule: Body) -> Body:
    """A rule that is made."""
    answer = client.post(f"/v1/track/programs/{program['id']}/alert-rules", json=rule)
    assert answer.status_code == 201, answer.get_data(as_text=True)
    found: Body = answer.get_json()
    return found


def refused(client: FlaskClient, program: Body, rule: Body) -> list[tuple[str, str]]:
    """Pointers and messages of a rule that is refused."""
    answer = client.post(f"/v1/track/programs/{program['id']}/alert-rules", json=rule)
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return [(error["pointer"], error["message"]) for error in answer.get_json()["errors"]]


def of_kind(kind: str, **more: Any) -> Body:
    """A good rule of a kind, with what it needs."""
    fields = RULE_FIELDS[kind]
    return {"kind": kind, "targets": [{"slack": SLACK}]} | {name: LIMITS[name] for name in (*fields.required, *fields.optional)} | more


def spend(app: Flask, program: Body, usd: float) -> None:
    """Tell that a run of the program has cost so much, and have the program judged."""
    client = app.test_client()
    run = client.post(f"/v1/track/programs/{program['id']}/runs", json={"name": "main"}).get_json()["id"]
    event = {"id": "1", "type": "progress", "at": "2026-01-06T00:00:00Z", "tokens_done": 10, "cost_usd": usd, "accelerator_hours": 1.0}
    assert client.post(f"/v1/track/runs/{run}/events", json={"events": [event]}).get_json()["accepted"] == 1
    judged(app, program)


def judged(app: Flask, program: Body) -> int:
    """How many alerts a judgement tells."""
    context = app.extensions["context"]
    row = context.store.program("default", program["id"])
    assert row is not None
    return len(evaluate_program(context, row))


def alerts(client: FlaskClient, program: Body) -> list[Body]:
    """What the program has told."""
    items: list[Body] = client.get(f"/v1/track/programs/{program['id']}/alerts").get_json()["items"]
    return items


class TestRules:
    @pytest.mark.parametrize("kind", RULE_FIELDS)
    def test_a_rule_of_every_kind_is_made_and_found_where_its_location_says(self, client: FlaskClient, program: Body, kind: str) -> None:
        """With its limits in order, and those that it does not take null."""
        answer = client.post(f"/v1/track/programs/{program['id']}/alert-rules", json=of_kind(kind))
        found = client.get(answer.headers["Location"]).get_json()
        assert (answer.status_code, found) == (201, answer.get_json())
        fields = RULE_FIELDS[kind]
        expected = dict.fromkeys(LIMITS) | {name: LIMITS[name] for name in (*fields.required, *fields.optional)}
        expected["shares"] = [0.5, 0.8] if "shares" in fields.required else []
        assert {name: found[name] for name in LIMITS} == expected
        assert found["targets"] == [{"kind": "slack", "host": "hooks.slack.com"}]

    @pytest.mark.parametrize("kind", RULE_FIELDS)
    def test_a_rule_without_its_limit_or_with_anothers_is_refused(self, client: FlaskClient, program: Body, kind: str) -> None:
        """Each error names the field."""
        fields = RULE_FIELDS[kind]
        for name in LIMITS:
            good = of_kind(kind)
            if name in fields.required:
                assert refused(client, program, {key: good[key] for key in good if key != name})[0][0] == f"/{name}"
            elif name not in fields.optional:
                assert refused(client, program, good | {name: LIMITS[name]})[0][0] == f"/{name}"

    def test_the_secret_is_shown_once_and_the_address_never(self, client: FlaskClient, program: Body) -> None:
        """Paths and queries of webhooks are secrets too."""
        targets = [{"webhook": HOOK}, {"webhook": HOOK, "secret": SECRET}, {"slack": SLACK}]
        made = create(client, program, BUDGET | {"targets": targets})
        assert made["targets"][0]["secret"].startswith("whsec_")
        assert [target.get("secret") for target in made["targets"][1:]] == [SECRET, None]
        base = f"/v1/track/programs/{program['id']}"
        client.post(f"/v1/track/alert-rules/{made['id']}/test")
        shown = "".join(client.get(path).text for path in (f"{base}/alert-rules", f"/v1/track/alert-rules/{made['id']}", f"{base}/alerts"))
        assert "hooks.example.com:8443" in shown
        assert not [hidden for hidden in ("s3cr3t", "whsec_") if hidden in shown]

    def test_generated_secrets_differ(self, client: FlaskClient, program: Body) -> None:
        """Each target has its own."""
        made = create(client, program, BUDGET | {"targets": [{"webhook": HOOK}] * 3})
        assert len({target["secret"] for target in made["targets"]}) == 3

    @pytest.mark.parametrize(
        ("target", "pointer"),
        [
            ({"webhook": "http://example.com/"}, "/targets/0/webhook"),
            ({"webhook": "https://127.0.0.1/"}, "/targets/0/webhook"),
            ({"webhook": "https://[::ffff:10.0.0.1]/"}, "/targets/0/webhook"),
            ({"webhook": "https://169.254.169.254/"}, "/targets/0/webhook"),
            ({"webhook": "https://0x7f.1/"}, "/targets/0/webhook"),
            ({"webhook": "https://192.168.1.7:8443/"}, "/targets/0/webhook"),
            ({"webhook": "https://localhost/"}, "/targets/0/webhook"),
            ({"webhook": "https://Metadata.Google.Internal/"}, "/targets/0/webhook"),
            ({"webhook": "https://printer.local/"}, "/targets/0/webhook"),
            ({"webhook": "https://intranet/"}, "/targets/0/webhook"),
            ({"webhook": "https://user:password@example.com/"}, "/targets/0/webhook"),
            ({"slack": "https://hooks.slack.com.example.com/services/x"}, "/targets/0/slack"),
            ({"slack": "https://example.com/hooks.slack.com"}, "/targets/0/slack"),
            ({"slack": "https://hooks.slack.com:8443/services/x"}, "/targets/0/slack"),
            ({"slack": "http://hooks.slack.com/services/x"}, "/targets/0/slack"),
            ({"slack": SLACK, "secret": SECRET}, "/targets/0/secret"),
            ({"webhook": HOOK, "secret": "a password of many characters"}, "/targets/0/secret"),
            ({"webhook": HOOK, "secret": "whsec_" + "A" * 30}, "/targets/0/secret"),
            ({"webhook": HOOK, "secret": "whsec_" + "A" * 88}, "/targets/0/secret"),
            ({"webhook": HOOK, "secret": "A" * 32}, "/targets/0/secret"),
            ({"webhook": HOOK, "secret": "whsec_" + "!" * 32}, "/targets/0/secret"),
            ({"webhook": HOOK, "slack": SLACK}, "/targets/0"),
            ({"secret": SECRET}, "/targets/0"),
        ],
    )
    def test_what_alerts_may_not_go_to_is_told_where(self, client: FlaskClient, program: Body, target: Body, pointer: str) -> None:
        """When the rule is made, not when it is needed."""
        assert refused(client, program, BUDGET | {"targets": [target]})[0][0] == pointer

    def test_a_program_has_no_more_rules_than_are_judged(self, client: FlaskClient, program: Body, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error says what to do; ending one makes room."""
        monkeypatch.setattr(usecase, "MAX_RULES", 3)
        made = [create(client, program, BUDGET) for _ in range(3)]
        assert "end one" in refused_detail(client, program)
        assert client.delete(f"/v1/track/alert-rules/{made[0]['id']}").status_code == 204
        create(client, program, BUDGET)

    def test_the_same_request_twice_makes_one_rule(self, client: FlaskClient, program: Body) -> None:
        """And its answer is the first one, secret and all."""
        url, headers = f"/v1/track/programs/{program['id']}/alert-rules", {"Idempotency-Key": f"rule-{program['id']}"}
        first, second = (client.post(url, json=BUDGET, headers=headers) for _ in range(2))
        assert (second.status_code, second.get_json()) == (201, first.get_json())
        assert len(client.get(url).get_json()["items"]) == 1

    def test_lists_are_paged(self, client: FlaskClient, program: Body) -> None:
        """Every rule once."""
        made = [create(client, program, BUDGET)["id"] for _ in range(5)]
        url, found, cursor = f"/v1/track/programs/{program['id']}/alert-rules?limit=2", [], ""
        while cursor is not None:
            page = client.get(url + (f"&cursor={cursor}" if cursor else "")).get_json()
            found += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
        assert found == made

    def test_a_rule_that_is_ended_is_not_there(self, client: FlaskClient, program: Body) -> None:
        """Nor can it be ended or tried again."""
        url = f"/v1/track/alert-rules/{create(client, program, BUDGET)['id']}"
        assert client.delete(url).status_code == 204
        assert {client.delete(url).status_code, client.get(url).status_code, client.post(f"{url}/test").status_code} == {404}


def refused_detail(client: FlaskClient, program: Body) -> str:
    """What is said of one rule too many."""
    answer = client.post(f"/v1/track/programs/{program['id']}/alert-rules", json=BUDGET)
    assert answer.status_code == 422
    return str(answer.get_json()["detail"])


class TestAlerts:
    def test_what_is_found_is_listed_with_its_deliveries(self, tracking_app: Flask, client: FlaskClient, program: Body) -> None:
        """Each to come, none attempted."""
        rule = create(client, program, BUDGET)
        spend(tracking_app, program, 600.0)
        (alert,) = alerts(client, program)
        assert (alert["rule"], alert["kind"], alert["title"], alert["ended_at"]) == (
            rule["id"],
            "budget",
            "50% of the budget is spent",
            None,
        )
        assert alert["figures"] == {"share": 0.5, "spent_usd": 600.0, "budget_usd": 1000}
        (delivery,) = alert["deliveries"]
        expected = {"target": 0, "kind": "webhook", "host": "hooks.example.com:8443", "state": "pending", "attempts": 0, "last_error": None}
        assert {name: delivery[name] for name in expected} == expected

    def test_it_is_told_once_however_often_it_is_judged(self, tracking_app: Flask, client: FlaskClient, program: Body) -> None:
        """The next share is news."""
        create(client, program, BUDGET)
        spend(tracking_app, program, 600.0)
        assert [judged(tracking_app, program) for _ in range(3)] == [0, 0, 0]
        spend(tracking_app, program, 400.0)
        assert [(alert["title"][:4], alert["ended_at"] is None) for alert in alerts(client, program)] == [("50% ", False), ("100%", True)]

    def test_a_test_goes_to_every_target(self, client: FlaskClient, program: Body) -> None:
        """202, and where to look how it went."""
        rule = create(client, program, BUDGET | {"targets": [{"webhook": HOOK}, {"slack": SLACK}]})
        answer = client.post(f"/v1/track/alert-rules/{rule['id']}/test")
        assert answer.status_code == 202
        (alert,) = client.get(answer.headers["Location"]).get_json()["items"]
        assert (alert["id"], alert["kind"], len(alert["deliveries"])) == (answer.get_json()["alert"], "test", 2)

    def test_tests_that_are_not_delivered_do_not_pile_up(self, client: FlaskClient, program: Body, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error says where to look; other rules may still be tested."""
        monkeypatch.setattr(usecase, "MAX_PENDING_TESTS", 2)
        url = f"/v1/track/alert-rules/{create(client, program, BUDGET)['id']}/test"
        answers = [client.post(url) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [202, 202, 422]
        assert "the program's alerts" in answers[2].get_json()["detail"]
        assert client.post(f"/v1/track/alert-rules/{create(client, program, BUDGET)['id']}/test").status_code == 202

    def test_pages_stay_while_alerts_come(self, client: FlaskClient, program: Body) -> None:
        """Every alert once."""
        url = f"/v1/track/alert-rules/{create(client, program, BUDGET)['id']}/test"
        for _ in range(3):
            client.post(url)
        page = client.get(f"/v1/track/programs/{program['id']}/alerts?limit=2").get_json()
        client.post(url)
        rest = client.get(f"/v1/track/programs/{program['id']}/alerts?cursor={page['next_cursor']}").get_json()
        found = [alert["id"] for alert in page["items"] + rest["items"]]
        assert (len(found), rest["next_cursor"]) == (len(set(found)), None)
        assert len(found) == 4

    def test_ended_rules_alerts_stay(self, client: FlaskClient, program: Body) -> None:
        """With what became of their deliveries."""
        url = f"/v1/track/alert-rules/{create(client, program, BUDGET)['id']}"
        client.post(f"{url}/test")
        client.delete(url)
        (alert,) = alerts(client, program)
        assert (alert["deliveries"][0]["state"], alert["deliveries"][0]["last_error"]) == ("failed", "the rule was ended")
        assert alert["deliveries"][0]["due_at"] is None


def test_a_plans_guardrails_are_watched(client: FlaskClient, tracking_app: Flask) -> None:
    """Of its request and of its answer: told when it is broken, once for as long as it is."""
    outcome = {**EXAMPLE["outcome"], "guardrails": [{"metric": "safety", "floor": 0.9}]}
    request = {**EXAMPLE, "outcome": outcome}
    for plan in (request, client.post("/v1/estimate/program", json=request).get_json()):
        program = client.post("/v1/track/programs", json={"name": "guarded", "plan": plan}).get_json()
        assert program["guardrails"] == [{"metric": "safety", "floor": 0.9}]
        create(client, program, of_kind("guardrail"))
        run = client.post(f"/v1/track/programs/{program['id']}/runs", json={"name": "main", "tier": "production"}).get_json()["id"]
        for day, (value, told) in enumerate([(0.95, 0), (0.88, 1), (0.87, 0)], start=1):
            evaluation = {"id": f"{day}", "type": "evaluation", "at": f"2026-02-{day:02}T00:00:00Z", "metric": "safety", "value": value}
            answer = client.post(f"/v1/track/runs/{run}/events", json={"events": [evaluation]}).get_json()
            assert answer["accepted"] == 1, answer
            assert judged(tracking_app, program) == told, (day, value)
        (alert,) = alerts(client, program)
        assert "safety of run main is 0.88, below its guardrail, 0.9" in alert["text"]
