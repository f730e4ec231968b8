"""Rules, alerts and the outbox on every database: told once, delivered by one, nothing of another team's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.domain.deliveries import DeliveryRecord
from service.domain.tracking.alerts import AlertChanges, AlertFinding, PreviousAlert
from service.domain.tracking.events import Event
from service.domain.tracking.records import AlertRuleRecord, ProgramRecord
from service.engine.tracking.alert_rules import REARM_AFTER, diff_alerts
from service.store import Store

NOW = datetime(2027, 2, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=60)
BODY = {"kind": "drift", "targets": [{"url": "https://a.example"}, {"url": "https://b.example"}]}


@pytest.fixture
def program(store: Store) -> ProgramRecord:
    """A program of the default team."""
    return store.create_program("default", {"name": "7B", "state": "open"}, None, NOW)


@pytest.fixture
def rule(store: Store, program: ProgramRecord) -> AlertRuleRecord:
    """A rule of it with two targets."""
    return store.create_rule(program, BODY, NOW)


def finding(subject: str) -> AlertFinding:
    """Something to tell."""
    return AlertFinding(subject, "title", "text", {"a": 1.5})


def judged(store: Store, rule: AlertRuleRecord, now: datetime, *subjects: str) -> list[str]:
    """The subjects that are told when these are found."""
    found = [finding(subject) for subject in subjects]

    def decide(told: Sequence[PreviousAlert]) -> AlertChanges:
        return diff_alerts("drift", found, told, now)

    return [alert.subject for alert in store.record_alerts(rule, decide, now, now - REARM_AFTER)]


def claim(store: Store, now: datetime = NOW, most: int = 10) -> list[DeliveryRecord]:
    """The deliveries that the caller gets; the eighth attempt is the last."""
    return [outgoing.delivery for outgoing in store.claim_deliveries(now, LEASE, most, 8)]


def deliveries(store: Store, program: ProgramRecord) -> list[DeliveryRecord]:
    """All deliveries of a program."""
    return [delivery for _, _, sent in store.alerts(program.id, 0, 100) for delivery in sent]


def test_teams_take_turns(store: Store) -> None:
    """Two hundred due deliveries of one team do not keep another team's alert waiting."""
    busy_team, quiet_team = (store.team(name, NOW).id for name in ("busy", "quiet"))
    busy, quiet = (store.create_program(team, {"name": "7B", "state": "open"}, None, NOW) for team in (busy_team, quiet_team))
    busy_rule = store.create_rule(busy, BODY, NOW)
    for _ in range(100):
        store.record_test_alert(busy_rule, finding("test"), NOW)
    assert store.pending_tests(busy_rule) == 200
    judged(store, store.create_rule(quiet, BODY, NOW), NOW + SECOND, "a")
    claimed = store.claim_deliveries(NOW + 2 * SECOND, LEASE, 16, 8)
    assert [outgoing.rule.team for outgoing in claimed].count(quiet_team) == 2
    assert len(claimed) == 16


class TestRules:
    def test_a_rule_is_read_as_it_was_made(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """Numbered within its program."""
        assert store.rule("default", rule.id) == rule
        assert (rule.number, store.create_rule(program, BODY, NOW).number) == (1, 2)
        assert [found.number for found in store.rules(program.id, 1)] == [2]

    def test_no_other_team_has_it(self, store: Store, rule: AlertRuleRecord) -> None:
        """Whatever its id."""
        assert store.rule("others", rule.id) is None

    def test_one_that_is_ended_is_gone_and_its_alerts_stay(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """What was on its way is not sent any further; what was sent stays sent."""
        judged(store, rule, NOW, "a")
        store.settle_delivery(claim(store, most=1)[0], "sent", NOW)
        store.end_rule(rule, NOW)
        assert (store.rule("default", rule.id), store.rules(program.id)) == (None, [])
        assert sorted((one.state, one.last_error) for one in deliveries(store, program)) == [
            ("failed", "the rule was ended"),
            ("sent", None),
        ]
        assert claim(store) == []

    def test_one_that_is_replaced_ends_with_its_successor(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """In one commit; of two replacements at once one finds nothing to replace."""
        judged(store, rule, NOW, "a")
        made = store.replace_rule(rule, BODY | {"kind": "loss"}, NOW)
        assert made is not None
        assert ([one.id for one in store.rules(program.id)], made.number, made.body["kind"]) == ([made.id], 2, "loss")
        assert {one.last_error for one in deliveries(store, program)} == {"the rule was ended"}
        assert store.replace_rule(rule, BODY, NOW) is None
        assert len(store.rules(program.id)) == 1

    def test_eight_made_at_once_have_numbers_of_their_own(self, store: Store, program: ProgramRecord) -> None:
        """Without gaps."""
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: store.create_rule(program, BODY, NOW), range(8)))
        assert sorted(rule.number for rule in made) == list(range(1, 9))


class TestTelling:
    def test_what_is_found_is_kept_with_a_delivery_to_each_target(
        self, store: Store, program: ProgramRecord, rule: AlertRuleRecord
    ) -> None:
        """In the order in which it was told."""
        assert judged(store, rule, NOW, "a", "b") == ["a", "b"]
        kept = store.alerts(program.id, 0, 10)
        assert [(alert.number, alert.subject, alert.episode, alert.at, alert.ended_at) for alert, _, _ in kept] == [
            (1, "a", 1, NOW, None),
            (2, "b", 1, NOW, None),
        ]
        assert kept[0][0].body == {"subject": "a", "title": "title", "text": "text", "figures": {"a": 1.5}}
        assert [(one.target, one.state, one.attempts, one.due_at) for one in kept[1][2]] == [(0, "pending", 0, NOW), (1, "pending", 0, NOW)]
        assert [alert.number for alert, _, _ in store.alerts(program.id, 1, 10)] == [2]
        assert [alert.number for alert, _, _ in store.alerts(program.id, 0, 1)] == [1]

    def test_it_is_told_once_as_long_as_it_lasts(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """And again as another episode when it was over for a day; a break of an hour is none."""
        hour = timedelta(hours=1)
        told = [
            judged(store, rule, NOW + at, *subjects) for at, subjects in ((0 * hour, "a"), (hour, "a"), (2 * hour, ""), (3 * hour, "a"))
        ]
        assert told == [["a"], [], [], []]
        assert store.alerts(program.id, 0, 10)[0][0].ended_at is None
        assert judged(store, rule, NOW + 4 * hour) == []
        assert judged(store, rule, NOW + 30 * hour, "a") == ["a"]
        assert [(alert.episode, alert.ended_at) for alert, _, _ in store.alerts(program.id, 0, 10)] == [(1, NOW + 4 * hour), (2, None)]

    def test_of_eight_judgements_at_once_one_tells(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """All of them find the same."""
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: judged(store, rule, NOW, "a", "b"), range(8)))
        assert sorted(told) == [[]] * 7 + [["a", "b"]]
        assert len(deliveries(store, program)) == 4

    def test_rules_tell_for_themselves(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """The same subject is news to each."""
        other = store.create_rule(program, BODY, NOW)
        assert [judged(store, each, NOW, "a") for each in (rule, other)] == [["a"], ["a"]]

    def test_a_test_is_told_every_time_and_disturbs_nothing(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """It is over at once."""
        judged(store, rule, NOW, "a")
        tests = [store.record_test_alert(rule, finding("test"), NOW) for _ in range(2)]
        assert [(test.episode, test.ended_at) for test in tests] == [(1, NOW), (2, NOW)]
        assert judged(store, rule, NOW, "a") == []
        assert len(deliveries(store, program)) == 6


class TestJudgements:
    def due(self, store: Store, now: datetime) -> list[str]:
        """Ids of the programs to judge, five minutes after the last time at the latest."""
        return [one.program.id for one in store.due_evaluations(now - timedelta(minutes=5), 10)]

    def test_a_program_is_due_with_its_first_rule_with_new_events_and_after_a_while(
        self, store: Store, program: ProgramRecord, rule: AlertRuleRecord
    ) -> None:
        """And not without a rule."""
        run = store.create_run(program, "main", {"name": "main"}, NOW)
        store.create_program("default", {"name": "unwatched", "state": "open"}, None, NOW)
        (first,) = store.due_evaluations(NOW, 10)
        assert (first.program, first.events, first.judged_at) == (program, 0, None)
        assert store.claim_evaluation(first, NOW)
        assert self.due(store, NOW + SECOND) == []
        store.append_events(run, [Event("a", "note", NOW, text="x"), Event("b", "note", NOW, text="y")], NOW)
        (second,) = store.due_evaluations(NOW - LEASE, 10)
        assert (second.events, store.claim_evaluation(second, NOW + SECOND)) == (2, True)
        assert self.due(store, NOW + 2 * SECOND) == []
        assert self.due(store, NOW + timedelta(minutes=6)) == [program.id]
        store.create_rule(program, BODY, NOW)
        assert self.due(store, NOW + 2 * SECOND) == [program.id]
        for each in store.rules(program.id):
            store.end_rule(each, NOW)
        assert self.due(store, NOW + timedelta(days=1)) == []

    def test_of_eight_that_ask_one_may_judge(self, store: Store, rule: AlertRuleRecord) -> None:
        """The first time as later."""
        for now in (NOW, NOW + timedelta(hours=1)):
            (due,) = store.due_evaluations(now, 10)
            with ThreadPoolExecutor(8) as pool:
                got = list(pool.map(lambda _, due=due, now=now: store.claim_evaluation(due, now), range(8)))
            assert sorted(got) == [False] * 7 + [True]

    def test_judging_is_no_change_of_the_program(self, store: Store, program: ProgramRecord, rule: AlertRuleRecord) -> None:
        """Its version stays."""
        assert store.claim_evaluation(store.due_evaluations(NOW, 10)[0], NOW)
        assert store.program("default", program.id) == program


class TestOutbox:
    @pytest.fixture(autouse=True)
    def told(self, store: Store, rule: AlertRuleRecord) -> None:
        """An alert is on its way to two targets."""
        judged(store, rule, NOW, "a")

    def test_of_eight_that_claim_one_gets_each(self, store: Store, open_store: Callable[[str], Store], url: str) -> None:
        """Together they get all."""
        with ThreadPoolExecutor(8) as pool:
            got = [delivery for claimed in pool.map(lambda _: claim(store), range(8)) for delivery in claimed]
        assert sorted((one.target, one.attempts, one.claimed_until) for one in got) == [(0, 1, NOW + LEASE), (1, 1, NOW + LEASE)]
        assert claim(open_store(url)) == []

    def test_what_is_claimed_comes_with_what_is_to_be_sent(self, store: Store, rule: AlertRuleRecord) -> None:
        """The rule is told even when it has ended meanwhile."""
        (outgoing, _) = store.claim_deliveries(NOW, LEASE, 10, 8)
        assert (outgoing.alert.subject, outgoing.rule) == ("a", rule)

    def test_what_is_sent_is_over(self, store: Store, program: ProgramRecord) -> None:
        """Nobody gets it again."""
        for delivery in claim(store):
            assert store.settle_delivery(delivery, "sent", NOW + SECOND)
        assert [(one.state, one.sent_at, one.claimed_until) for one in deliveries(store, program)] == [("sent", NOW + SECOND, None)] * 2
        assert claim(store, NOW + timedelta(days=9)) == []

    def test_what_failed_comes_back_when_it_is_due(self, store: Store, program: ProgramRecord) -> None:
        """With its error, without what no database takes."""
        (delivery, _) = claim(store)
        store.settle_delivery(delivery, "pending", NOW, error="answered\0 500" + "x" * 3000, due_at=NOW + 5 * SECOND)
        kept = deliveries(store, program)[delivery.target]
        assert (kept.state, kept.attempts, str(kept.last_error)[:12], len(str(kept.last_error))) == ("pending", 1, "answered 500", 2000)
        assert claim(store, NOW + 4 * SECOND) == []
        assert [one.attempts for one in claim(store, NOW + 5 * SECOND)] == [2]

    def test_what_a_lost_process_held_comes_back_with_its_lease(self, store: Store, program: ProgramRecord) -> None:
        """And what that process says of it later, it says in vain."""
        held = claim(store)
        assert claim(store, NOW + LEASE - SECOND) == []
        again = claim(store, NOW + LEASE)
        assert [one.attempts for one in again] == [2, 2]
        assert not store.settle_delivery(held[0], "failed", NOW + LEASE, error="late")
        assert store.settle_delivery(again[0], "sent", NOW + LEASE)
        assert not store.settle_delivery(again[0], "failed", NOW + LEASE)

    def test_one_whose_last_attempt_was_lost_has_failed(self, store: Store, program: ProgramRecord) -> None:
        """Eight processes died of it."""
        for attempt in range(8):
            assert len(claim(store, NOW + attempt * LEASE)) == 2
        assert claim(store, NOW + 8 * LEASE) == []
        assert [(one.state, one.attempts) for one in deliveries(store, program)] == [("failed", 8)] * 2
        assert {one.last_error for one in deliveries(store, program)} == {"the process that sent it was lost"}

    def test_the_longest_due_comes_first(self, store: Store, rule: AlertRuleRecord) -> None:
        """One that fails again and again keeps nobody waiting."""
        (delivery,) = claim(store, most=1)
        store.settle_delivery(delivery, "pending", NOW, due_at=NOW + 5 * SECOND)
        (second,) = claim(store, NOW + 9 * SECOND, most=1)
        assert second.id != delivery.id
        assert replace(second, claimed_until=None).due_at == NOW
