"""Judging programs by their rules, and getting what they tell to those it is for, whatever their servers do."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.deliveries import DeliveryRecord, DeliveryTarget
from service.domain.errors import InvalidRequest
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.events import Event
from service.domain.tracking.records import AlertRuleRecord, ProgramRecord, RunRecord
from service.runtime import webhooks
from service.usecases.delivery.deliver import MAX_ATTEMPTS, PAUSES_S, deliver_due, sign_headers
from service.usecases.tracking import alerts
from service.usecases.tracking.alert_messages import slack_message
from service.usecases.tracking.alerts import create_rule, evaluate_due, evaluate_program, try_rule
from tests.support.servers import wait_for
from tests.unit.providers.misbehaving_server import Server, in_turn, listening, redirect, reset

NOW = datetime(2027, 2, 1, tzinfo=UTC)
HUNG = "no answer within"
SECRET = "whsec_" + "A" * 32
HOUR = timedelta(hours=1)
SLACK = "https://hooks.slack.com/services/T0/B0/s3cr3t"


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at NOW."""
    return Clock()


@pytest.fixture
def context(settings: Settings, clock: Clock) -> Iterator[AppContext]:
    """A context on a migrated database, with that clock, which may deliver to this machine."""
    settings.data_dir.mkdir()
    made = replace(build_context(replace(settings, allow_private_webhooks=True)), clock=clock)
    made.store.migrate()
    yield made
    made.store.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A receiver on this machine."""
    with listening(Server()) as started:
        yield started


def new_program(context: AppContext, **more: Any) -> ProgramRecord:
    """A program of 1,000 USD and tokens."""
    body = {"name": "7B", "state": "open", "budget_usd": 1000.0, "planned_tokens": 1000, "start": "2027-01-01", "deadline": "2027-03-01"}
    return context.store.create_program(DEFAULT_TEAM, body | more, None, NOW)


def new_run(context: AppContext, program: ProgramRecord) -> RunRecord:
    """A run of all of it."""
    planned = {"tokens": 1000, "usd": 1000.0, "accelerator_hours": 500.0, "usd_per_accelerator_hour": 2.0}
    return context.store.create_run(program, "main", {"name": "main", "tier": None, "state": "open", "planned": planned}, NOW)


def progress(context: AppContext, run: RunRecord, at: datetime, usd: float, **more: Any) -> None:
    """The run has done so much at a moment; a token is a dollar, an accelerator-hour two."""
    event = Event(f"e-{at}", "progress", at, tokens_done=int(usd), cost_micro_usd=round(usd * 1e6), accelerator_hours=usd / 2, **more)
    context.store.append_events(run, [event], context.clock())


def new_rule(
    context: AppContext, program: ProgramRecord, kind: str = "drift", url: str = "https://example.com", **limits: Any
) -> AlertRuleRecord:
    """A rule with one webhook."""
    return create_rule(context, program, {"kind": kind, "targets": [{"webhook": url, "secret": SECRET}], **limits}, None)


def titles(context: AppContext, program: ProgramRecord) -> list[str]:
    """What was told, in short."""
    return [alert.body["title"] for alert, _, _ in context.store.alerts(program.id, 0, 100)]


class TestJudging:
    def test_silence_is_news_without_any_event(self, context: AppContext, clock: Clock) -> None:
        """A run that is heard of at NOW and no more is stalled six hours later; told once, and once more of the next stall."""
        program = new_program(context)
        run = new_run(context, program)
        new_rule(context, program, "stalled", hours=6)
        progress(context, run, NOW, 100.0)
        for _ in range(9):
            evaluate_due(context)
            clock.now += HOUR
        assert titles(context, program) == ["a run is stalled"]
        progress(context, run, clock.now, 200.0)
        for _ in range(9):
            evaluate_due(context)
            clock.now += HOUR
        assert titles(context, program) == ["a run is stalled"] * 2

    def test_an_event_is_judged_without_delay(self, context: AppContext, clock: Clock) -> None:
        """Not five minutes later."""
        program = new_program(context)
        run = new_run(context, program)
        new_rule(context, program, "budget", shares=[0.5])
        evaluate_due(context)
        progress(context, run, NOW, 600.0)
        clock.now += timedelta(seconds=1)
        evaluate_due(context)
        assert titles(context, program) == ["50% of the budget is spent"]

    def test_a_closed_program_is_not_judged(self, context: AppContext) -> None:
        """Nor does it keep the others waiting."""
        closed, program = (new_program(context, state=state) for state in ("closed", "open"))
        for each in (closed, program):
            progress(context, new_run(context, each), NOW, 600.0)
            new_rule(context, each, "budget", shares=[0.5])
        evaluate_due(context)
        assert (titles(context, closed), titles(context, program)) == ([], ["50% of the budget is spent"])
        assert context.store.due_evaluations(NOW - HOUR, 10) == []

    def test_a_worker_that_shuts_down_judges_no_more(self, context: AppContext) -> None:
        """What it has not judged stays due."""
        program = new_program(context)
        new_rule(context, program)
        evaluate_due(context, lambda: True)
        assert len(context.store.due_evaluations(NOW, 10)) == 1

    def test_a_gate_is_missed_by_the_days_it_has_been_due(self, context: AppContext, clock: Clock) -> None:
        """A decision ends it."""
        program = new_program(context)
        run = new_run(context, program)
        new_rule(context, program, "gate_missed", days=7)
        progress(context, run, NOW, 600.0)
        clock.now = NOW + timedelta(days=6)
        assert evaluate_program(context, program) == []
        clock.now = NOW + timedelta(days=8)
        assert [alert.subject for alert in evaluate_program(context, program)] == ["half-spend gate"]
        context.store.append_events(run, [Event("d", "decision", clock.now, gate="midpoint", verdict="continue")], clock.now)
        evaluate_program(context, program)
        ((alert, _, _),) = context.store.alerts(program.id, 0, 10)
        assert alert.ended_at == clock.now

    def test_caps_are_of_the_program_its_runs_and_the_team(self, context: AppContext) -> None:
        """The team's is over all its programs, and over no other team's."""
        program = new_program(context, caps={"program_usd": 500, "run_usd": 300})
        for usd in (300.0, 200.0):
            progress(context, new_run(context, program), NOW, usd)
        progress(context, new_run(context, new_program(context)), NOW, 400.0)
        new_rule(context, program, "cap", team_usd=900)
        assert [alert.body["figures"]["cap_usd"] for alert in evaluate_program(context, program)] == [500, 300, 900]

    def test_a_budget_that_is_raised_is_judged_anew(self, context: AppContext) -> None:
        """80 % of the old one is history."""
        program = new_program(context)
        progress(context, new_run(context, program), NOW, 850.0)
        new_rule(context, program, "budget", shares=[0.8])
        assert len(evaluate_program(context, program)) == 1
        raised = context.store.change_program(program, {**program.body, "budget_usd": 1050.0}, NOW, None)
        assert [alert.body["figures"]["budget_usd"] for alert in evaluate_program(context, raised)] == [1050.0]

    def test_a_program_has_a_limit_of_rules(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """All of them are judged every time."""
        monkeypatch.setattr(alerts, "MAX_RULES", 1)
        program = new_program(context)
        new_rule(context, program)
        with pytest.raises(InvalidRequest, match="has 1 rules"):
            new_rule(context, program)


class TestSignatures:
    def test_a_receiver_can_verify_them(self) -> None:
        """With the specification's own library; not with another body, id or secret."""
        now = datetime.now(UTC)
        headers = sign_headers(SECRET, "delivery-1", now, '{"a": 1}')
        assert Webhook(SECRET).verify('{"a": 1}', headers) == {"a": 1}
        for secret, body, changed in (
            (SECRET, '{"a": 2}', {}),
            (SECRET, '{"a": 1}', {"webhook-id": "delivery-2"}),
            ("whsec_" + "B" * 32, '{"a": 1}', {}),
        ):
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(body, headers | changed)

    def test_the_published_example_is_signed_as_published(self) -> None:
        """HMAC-SHA256 of id, time and body with dots between, in base64: computed with openssl."""
        at = datetime.fromtimestamp(1614265330, UTC)
        headers = sign_headers("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", at, '{"test": 2432232314}')
        assert headers["webhook-timestamp"] == "1614265330"
        assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def deliveries(context: AppContext, program: ProgramRecord) -> list[DeliveryRecord]:
    """All deliveries of a program."""
    return [delivery for _, _, sent in context.store.alerts(program.id, 0, 100) for delivery in sent]


def on_its_way(context: AppContext, url: str) -> ProgramRecord:
    """A program with a test on its way to an address."""
    program = new_program(context)
    try_rule(context, new_rule(context, program, url=url))
    return program


def no_jitter() -> float:
    """Pauses as they stand in the table."""
    return 0.0


class TestDelivery:
    def test_what_is_told_arrives_signed_and_once(self, context: AppContext, server: Server, clock: Clock) -> None:
        """The body says what, the headers that it is ours."""
        clock.now = datetime.now(UTC)  # the receiver's library looks at the time
        program = new_program(context)
        progress(context, new_run(context, program), clock.now - HOUR, 600.0)
        rule = new_rule(context, program, "budget", server.serving(b"", 204), shares=[0.5])
        (alert,) = evaluate_program(context, program)
        assert [deliver_due(context) for _ in range(3)] == [1, 0, 0]
        ((_, _, headers, body),) = server.seen
        told = Webhook(SECRET).verify(body, headers)
        assert told["type"] == "alert.budget"
        assert told["data"]["text"] == alert.body["text"]
        assert (told["data"]["id"], told["data"]["rule"], told["data"]["program"]) == (alert.id, rule.id, program.id)
        (delivery,) = deliveries(context, program)
        assert (delivery.state, delivery.sent_at, delivery.attempts) == ("sent", clock.now, 1)

    def test_a_server_that_fails_and_recovers_gets_the_same_message_again(self, context: AppContext, server: Server, clock: Clock) -> None:
        """Under the same id, so that it knows a repeat; no third time."""
        url = server.on(in_turn(lambda handler: handler.answer(b"no", 500), lambda handler: handler.answer(b"")))
        program = on_its_way(context, url)
        for _ in range(9):
            deliver_due(context)
            clock.now += HOUR
        first, second = server.seen
        assert first[3] == second[3]
        assert first[2]["webhook-id"] == second[2]["webhook-id"] == deliveries(context, program)[0].id
        assert [one.state for one in deliveries(context, program)] == ["sent"]

    def test_pauses_grow_and_end_after_a_day(self, context: AppContext, server: Server, clock: Clock) -> None:
        """Eight attempts in 28 hours, each not before it is due; then it has failed, with its reason."""
        program = on_its_way(context, server.serving(b"", 503))
        seen = []
        while (delivery := deliveries(context, program)[0]).state == "pending":
            clock.now = delivery.due_at - timedelta(seconds=1)
            assert deliver_due(context, jitter=no_jitter) == 0
            clock.now = delivery.due_at
            assert deliver_due(context, jitter=no_jitter) == 1
            seen.append(clock.now)
        assert [(later - earlier).total_seconds() for earlier, later in pairwise(seen)] == list(PAUSES_S)
        assert len(server.seen) == MAX_ATTEMPTS == 8
        assert timedelta(hours=24) < seen[-1] - seen[0] < timedelta(hours=30)
        assert (delivery.state, delivery.last_error) == ("failed", f"{server.host}: answered 503")

    def test_jitter_lengthens_a_pause_by_a_fifth_at_most(self, context: AppContext, server: Server) -> None:
        """Those that failed together do not come back together."""
        program = on_its_way(context, server.serving(b"", 503))
        deliver_due(context, jitter=lambda: 1.0)
        assert deliveries(context, program)[0].due_at == NOW + timedelta(seconds=PAUSES_S[0] * 1.2)

    @pytest.mark.parametrize(
        ("script", "state", "error"),
        [
            (lambda handler: handler.answer(b"", 410), "failed", "answered 410, it wants no more of these"),
            (redirect("http://169.254.169.254/latest/meta-data/", 307), "pending", "answered 307, a redirect, which is not followed"),
            (lambda handler: handler.server.over.wait(60), "pending", HUNG),
            (reset, "pending", "the connection failed: Connection reset by peer"),
        ],
    )
    def test_what_servers_do_is_told(
        self, context: AppContext, server: Server, script: Any, state: str, error: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One request each, and what came of it."""
        if error == HUNG:
            monkeypatch.setattr(webhooks, "TOTAL_S", 0.3)
        program = on_its_way(context, server.on(script))
        deliver_due(context)
        (delivery,) = deliveries(context, program)
        wait_for(lambda: server.seen, "the request, which may be given up before the server looks at it")
        assert (delivery.state, len(server.seen)) == (state, 1)
        assert str(delivery.last_error).startswith(f"{server.host}: {error}")

    def test_one_that_hangs_keeps_no_other_waiting(self, context: AppContext, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are tried side by side: all are at the server before the first one is over."""
        for wait in ("TOTAL_S", "READ_S"):  # one after the other, eight would take minutes
            monkeypatch.setattr(webhooks, wait, 40.0)

        def script(handler: Any) -> None:
            while len(server.seen) < 8 and not server.over.wait(0.01):
                continue
            handler.answer(b"")

        url = server.on(script)
        programs = [on_its_way(context, url) for _ in range(8)]
        assert deliver_due(context) == 8
        assert {one.state for program in programs for one in deliveries(context, program)} == {"sent"}

    def test_an_address_that_is_allowed_no_more_is_not_asked(self, context: AppContext, server: Server) -> None:
        """A rule was made while private networks were allowed."""
        program = on_its_way(context, server.serving(b""))
        deliver_due(replace(context, settings=replace(context.settings, allow_private_webhooks=False)))
        assert server.seen == []
        assert "https" in str(deliveries(context, program)[0].last_error)

    def test_no_secret_is_logged_or_kept_with_a_failure(
        self, context: AppContext, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Neither what signs nor the path, which may be one."""
        caplog.set_level(logging.DEBUG, "service")
        program = on_its_way(context, server.on(lambda handler: handler.answer(b"", 410), "/s3cr3t"))
        deliver_due(context)
        kept = f"{caplog.text}{deliveries(context, program)[0].last_error}"
        assert "was not delivered" in kept
        assert not [hidden for hidden in ("s3cr3t", SECRET) if hidden in kept]


class TestSlack:
    def test_slack_is_told_in_plain_text(self, context: AppContext) -> None:
        """Names mention nobody and are no links; it is not signed."""
        program = new_program(context, name="<!channel> & <https://evil.example|7B>")
        progress(context, new_run(context, program), NOW, 600.0)
        create_rule(context, program, {"kind": "budget", "shares": [0.5], "targets": [{"slack": SLACK}]}, None)
        evaluate_program(context, program)
        posted: list[tuple[str, Any, Mapping[str, str]]] = []
        deliver_due(context, lambda url, body, headers, *, private: posted.append((url, json.loads(body), headers)))
        ((url, told, headers),) = posted
        assert url == SLACK
        assert told["text"].startswith("&lt;!channel&gt; &amp; &lt;https://evil.example|7B&gt;: 600 USD of 1,000 USD are spent")
        assert {block["text"]["type"] for block in told["blocks"]} == {"plain_text"}
        assert not [name for name in headers if name.startswith("webhook")]

    def test_what_is_too_long_for_slack_is_cut(self, context: AppContext) -> None:
        """It answers 400 to longer ones."""
        program = new_program(context)
        rule = new_rule(context, program)
        try_rule(context, rule)
        (outgoing,) = context.store.claim_deliveries(NOW, HOUR, 1, 8)
        long = replace(outgoing, alert=replace(outgoing.alert, body={"title": "t" * 999, "text": "x" * 9999, "figures": {}}))
        assert [len(block["text"]["text"]) for block in slack_message(context, DeliveryTarget("slack", SLACK), long)["blocks"]] == [
            150,
            3000,
        ]
