"""Alert rules and alerts. An alert and its deliveries are stored in one commit."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, and_, func, insert, or_, select, update

from service.domain.audit import Change
from service.domain.deliveries import DeliveryRecord
from service.domain.idempotency import IdempotencyRecord
from service.domain.tracking.alerts import TEST, AlertChanges, AlertFinding, PreviousAlert
from service.domain.tracking.records import AlertRecord, AlertRuleRecord, ProgramRecord
from service.store.audit import record_change
from service.store.database import columns_of
from service.store.deliveries import add_delivery, rules_by_id
from service.store.idempotency import store_response
from service.store.secrets import SecretRows, with_targets
from service.store.tables import deliveries
from service.store.tracking.programs import PROGRAM, lock, next_number
from service.store.tracking.tables import alert_rules, alerts, track_programs, track_runs

Body = Mapping[str, Any]
Decide = Callable[[Sequence[PreviousAlert]], AlertChanges]
"""Changes by a rule's findings, given its previous alerts."""
ENDED = "the rule was ended"


@dataclass(frozen=True, slots=True)
class DueEvaluation:
    """A program to evaluate: its number of events, and the time of the last evaluation."""

    program: ProgramRecord
    events: int
    judged_at: datetime | None


_RULE, _ALERT = columns_of(alert_rules, AlertRuleRecord), columns_of(alerts, AlertRecord)
_DELIVERY = columns_of(deliveries, DeliveryRecord)


class AlertRows(SecretRows):
    """Storage of alert rules and alerts."""

    def create_rule(
        self, program: ProgramRecord, body: Body, now: datetime, idempotency: IdempotencyRecord | None = None
    ) -> AlertRuleRecord:
        """A new rule of a program, which is then evaluated at once. Raises IdempotentReplay and IdempotencyKeyReused for a known
        idempotency key."""
        with self._write() as connection:
            remembered = store_response(connection, idempotency, self._sealing(connection))
            lock(connection, track_programs, track_programs.c.id == program.id)
            made = self._add_rule(connection, program.team, program.id, body, now)
            remembered(made)
        return made

    def replace_rule(self, rule: AlertRuleRecord, body: Body, now: datetime) -> AlertRuleRecord | None:
        """A new rule in the place of another of its program, which ends; None where that has ended already."""
        with self._write() as connection:
            lock(connection, track_programs, track_programs.c.id == rule.program)
            return self._add_rule(connection, rule.team, rule.program, body, now) if _end_rule(connection, rule, now) else None

    def _add_rule(self, connection: Connection, team: str, program_id: str, body: Body, now: datetime) -> AlertRuleRecord:
        """The new rule of a program that is locked."""
        number = next_number(connection, alert_rules.c.number, alert_rules.c.program == program_id)
        made = AlertRuleRecord(str(uuid.uuid4()), team, program_id, number, dict(body), now, None)
        sealed = with_targets(made.body, partial(self._seal, connection))
        connection.execute(insert(alert_rules).values(asdict(made) | {"body": sealed}))
        connection.execute(update(track_programs).where(track_programs.c.id == program_id).values(judged_at=None))
        record_change(connection, Change(made.team, "alert_rule.create", made.id, None, asdict(made)), now)
        return made

    def rule(self, team: str, rule_id: str) -> AlertRuleRecord | None:
        """An active rule of a team, None where the team has none of that id."""
        query = select(*_RULE).where(alert_rules.c.id == rule_id, alert_rules.c.team == team, alert_rules.c.ended_at.is_(None))
        return self._find(self._rule, query)

    def rules(self, program_id: str, after: int = 0, limit: int | None = None) -> list[AlertRuleRecord]:
        """Active rules of a program in the order of creation, those after a number."""
        query = select(*_RULE).where(alert_rules.c.program == program_id, alert_rules.c.number > after, alert_rules.c.ended_at.is_(None))
        return self._list(self._rule, query.order_by(alert_rules.c.number).limit(limit))

    def end_rule(self, rule: AlertRuleRecord, now: datetime) -> None:
        """End a rule and drop its pending deliveries. Its alerts stay."""
        with self._write() as connection:
            _end_rule(connection, rule, now)

    def due_evaluations(self, before: datetime, limit: int) -> list[DueEvaluation]:
        """Programs with rules that have new events or were not evaluated since `before`; the longest waiting first."""
        events = select(func.coalesce(func.sum(track_runs.c.position), 0)).where(track_runs.c.program == track_programs.c.id)
        count, judged = events.scalar_subquery(), track_programs.c.judged_at
        ruled = select(alert_rules.c.id).where(alert_rules.c.program == track_programs.c.id, alert_rules.c.ended_at.is_(None)).exists()
        due = or_(judged.is_(None), judged <= before, count > track_programs.c.judged_events)
        query = select(*PROGRAM, judged, count.label("events")).where(ruled, due).order_by(judged.is_not(None), judged).limit(limit)
        return self._list(
            lambda judged_at, events, **program: DueEvaluation(ProgramRecord(**program), int(events), judged_at),
            query,
        )

    def claim_evaluation(self, judgement: DueEvaluation, now: datetime) -> bool:
        """Whether the caller may evaluate: of several concurrent callers one may."""
        held = track_programs.c.judged_at == judgement.judged_at if judgement.judged_at else track_programs.c.judged_at.is_(None)
        claim = update(track_programs).where(track_programs.c.id == judgement.program.id, held)
        return self._change(claim.values(judged_at=now, judged_events=judgement.events)) == 1

    def record_alerts(self, rule: AlertRuleRecord, decide: Decide, now: datetime, since: datetime) -> list[AlertRecord]:
        """Store the new alerts of a rule with a delivery to each target, and the ends of others; returns the new alerts.

        `decide` gets the alerts that are active, or ended after `since`. It runs under a lock on the program, so that of two concurrent
        evaluations the second sees the alerts of the first.
        """
        with self._read() as connection:
            if not decide(_previous_alerts(connection, rule, since)):
                return []
        with self._write() as connection:
            lock(connection, track_programs, track_programs.c.id == rule.program)
            changes = decide(_previous_alerts(connection, rule, since))
            _end(connection, rule, changes.ended, now)
            _end(connection, rule, changes.resumed, None)
            return [_insert(connection, rule, finding.subject, asdict(finding), now) for finding in changes.new]

    def record_test_alert(self, rule: AlertRuleRecord, finding: AlertFinding, now: datetime) -> AlertRecord:
        """Store a test alert with a delivery to each target of the rule; it ends at once."""
        with self._write() as connection:
            lock(connection, track_programs, track_programs.c.id == rule.program)
            record_change(connection, Change(rule.team, "alert_rule.test", rule.id, asdict(rule), asdict(rule)), now)
            return _insert(connection, rule, TEST, asdict(finding), now, now)

    def pending_tests(self, rule: AlertRuleRecord) -> int:
        """Number of deliveries of the rule's test alerts that are still to be made."""
        of_rule = deliveries.join(alerts, alerts.c.id == deliveries.c.alert)
        waiting = and_(alerts.c.rule == rule.id, alerts.c.subject == TEST, deliveries.c.state == "pending")
        return int(self._scalar(select(func.count()).select_from(of_rule).where(waiting)))

    def alerts(self, program_id: str, after: int, limit: int) -> list[tuple[AlertRecord, AlertRuleRecord, list[DeliveryRecord]]]:
        """A program's alerts in the order of creation, those after a number, each with its rule and deliveries."""
        query = select(*_ALERT).where(alerts.c.program == program_id, alerts.c.number > after).order_by(alerts.c.number).limit(limit)
        with self._snapshot() as connection:
            found = [AlertRecord(**row) for row in connection.execute(query).mappings()]
            rules = rules_by_id(connection, {alert.rule for alert in found}, self._rule)
            sent = _deliveries_of(connection, program_id, after, found)
            return [(alert, rules[alert.rule], sent[alert.id]) for alert in found]

    def reseal_rules(self, *, plain_only: bool) -> int:
        """Seal the secrets of rules under the newest key, with `plain_only` those that are not sealed; returns the number of rules changed.

        Raises SecretsUnavailable.
        """
        change = partial(with_targets, change=self._resealing(plain_only=plain_only))
        with self._write() as connection:
            return self._reseal_column(connection, alert_rules, alert_rules.c.body, change)


def _end_rule(connection: Connection, rule: AlertRuleRecord, now: datetime) -> bool:
    """Whether the rule was in force until now."""
    ended = update(alert_rules).where(alert_rules.c.id == rule.id, alert_rules.c.ended_at.is_(None)).values(ended_at=now)
    if not connection.execute(ended).rowcount:
        return False
    alert_ids = select(alerts.c.id).where(alerts.c.rule == rule.id)
    waiting = and_(deliveries.c.state == "pending", deliveries.c.alert.in_(alert_ids))
    record_change(connection, Change(rule.team, "alert_rule.end", rule.id, asdict(rule), None), now)
    connection.execute(update(deliveries).where(waiting).values(state="failed", last_error=ENDED, claimed_until=None))
    return True


def _previous_alerts(connection: Connection, rule: AlertRuleRecord, since: datetime) -> list[PreviousAlert]:
    recent = or_(alerts.c.ended_at.is_(None), alerts.c.ended_at > since)
    query = select(alerts.c.subject, alerts.c.ended_at).where(alerts.c.rule == rule.id, recent).order_by(alerts.c.episode)
    return [PreviousAlert(**row) for row in connection.execute(query).mappings()]


def _end(connection: Connection, rule: AlertRuleRecord, subjects: Sequence[str], at: datetime | None) -> None:
    """Set the end of each subject's newest alert; None: it is active again."""
    other = alerts.alias()
    newest = select(func.max(other.c.episode)).where(other.c.rule == rule.id, other.c.subject == alerts.c.subject).scalar_subquery()
    for subject in subjects:
        one = and_(alerts.c.rule == rule.id, alerts.c.subject == subject, alerts.c.episode == newest)
        connection.execute(update(alerts).where(one).values(ended_at=at))


def _insert(
    connection: Connection, rule: AlertRuleRecord, subject: str, body: Body, now: datetime, ended_at: datetime | None = None
) -> AlertRecord:
    number = next_number(connection, alerts.c.number, alerts.c.program == rule.program)
    episode = next_number(connection, alerts.c.episode, and_(alerts.c.rule == rule.id, alerts.c.subject == subject))
    made = AlertRecord(str(uuid.uuid4()), rule.program, number, rule.id, subject, episode, body, now, ended_at)
    connection.execute(insert(alerts).values(asdict(made)))
    for target in range(len(rule.body["targets"])):
        add_delivery(connection, rule.team, now, alert=made.id, target=target)
    return made


def _deliveries_of(connection: Connection, program_id: str, after: int, found: Sequence[AlertRecord]) -> dict[str, list[DeliveryRecord]]:
    """Deliveries of a page of alerts, by alert."""
    upto = found[-1].number if found else after
    page = select(alerts.c.id).where(alerts.c.program == program_id, alerts.c.number > after, alerts.c.number <= upto)
    query = select(*_DELIVERY).where(deliveries.c.alert.in_(page)).order_by(deliveries.c.target)
    by_alert: dict[str, list[DeliveryRecord]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        by_alert[row["alert"]].append(DeliveryRecord(**row))
    return by_alert
