"""Alert rules, alerts, and the outbox of deliveries. An alert and its deliveries are stored in one commit, then sent."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, insert, or_, select, update

from service.domain.audit import Change
from service.domain.idempotency import IdempotencyRecord
from service.domain.tracking.alerts import TEST, AlertChanges, AlertFinding, DeliveryState, PreviousAlert
from service.domain.tracking.records import AlertRecord, AlertRuleRecord, DeliveryRecord, ProgramRecord
from service.store.audit import record_change
from service.store.database import Database, columns_of, sanitize_text
from service.store.idempotency import store_response
from service.store.tracking.programs import PROGRAM, lock, next_number
from service.store.tracking.tables import alert_deliveries, alert_rules, alerts, track_programs, track_runs

Body = Mapping[str, Any]
Decide = Callable[[Sequence[PreviousAlert]], AlertChanges]
"""Changes by a rule's findings, given its previous alerts."""
ENDED = "the rule was ended"
LOST = "the process that sent it was lost"
MAX_ERROR_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A claimed delivery with its alert and rule."""

    delivery: DeliveryRecord
    alert: AlertRecord
    rule: AlertRuleRecord


@dataclass(frozen=True, slots=True)
class DueEvaluation:
    """A program to evaluate: its number of events, and the time of the last evaluation."""

    program: ProgramRecord
    events: int
    judged_at: datetime | None


_RULE, _ALERT = columns_of(alert_rules, AlertRuleRecord), columns_of(alerts, AlertRecord)
_DELIVERY = columns_of(alert_deliveries, DeliveryRecord)


class AlertRows(Database):
    """Storage of alert rules, alerts and deliveries."""

    def create_rule(
        self, program: ProgramRecord, body: Body, now: datetime, idempotency: IdempotencyRecord | None = None
    ) -> AlertRuleRecord:
        """A new rule of a program, which is then evaluated at once. Raises IdempotentReplay and IdempotencyKeyReused for a known
        idempotency key."""
        with self._write() as connection:
            remembered = store_response(connection, idempotency)
            lock(connection, track_programs, track_programs.c.id == program.id)
            number = next_number(connection, alert_rules.c.number, alert_rules.c.program == program.id)
            made = AlertRuleRecord(str(uuid.uuid4()), program.team, program.id, number, dict(body), now, None)
            connection.execute(insert(alert_rules).values(asdict(made)))
            connection.execute(update(track_programs).where(track_programs.c.id == program.id).values(judged_at=None))
            record_change(connection, Change(made.team, "alert_rule.create", made.id, None, asdict(made)), now)
            remembered(made)
        return made

    def rule(self, team: str, rule_id: str) -> AlertRuleRecord | None:
        """An active rule of a team, None where the team has none of that id."""
        query = select(*_RULE).where(alert_rules.c.id == rule_id, alert_rules.c.team == team, alert_rules.c.ended_at.is_(None))
        return self._find(AlertRuleRecord, query)

    def rules(self, program_id: str, after: int = 0, limit: int | None = None) -> list[AlertRuleRecord]:
        """Active rules of a program in the order of creation, those after a number."""
        query = select(*_RULE).where(alert_rules.c.program == program_id, alert_rules.c.number > after, alert_rules.c.ended_at.is_(None))
        return self._list(AlertRuleRecord, query.order_by(alert_rules.c.number).limit(limit))

    def end_rule(self, rule: AlertRuleRecord, now: datetime) -> None:
        """End a rule and drop its pending deliveries. Its alerts stay."""
        alert_ids = select(alerts.c.id).where(alerts.c.rule == rule.id)
        waiting = and_(alert_deliveries.c.state == "pending", alert_deliveries.c.alert.in_(alert_ids))
        with self._write() as connection:
            ended = update(alert_rules).where(alert_rules.c.id == rule.id, alert_rules.c.ended_at.is_(None)).values(ended_at=now)
            if not connection.execute(ended).rowcount:
                return
            record_change(connection, Change(rule.team, "alert_rule.end", rule.id, asdict(rule), None), now)
            connection.execute(update(alert_deliveries).where(waiting).values(state="failed", last_error=ENDED, claimed_until=None))

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
        of_rule = alert_deliveries.join(alerts, alerts.c.id == alert_deliveries.c.alert)
        waiting = and_(alerts.c.rule == rule.id, alerts.c.subject == TEST, alert_deliveries.c.state == "pending")
        return int(self._scalar(select(func.count()).select_from(of_rule).where(waiting)))

    def alerts(self, program_id: str, after: int, limit: int) -> list[tuple[AlertRecord, AlertRuleRecord, list[DeliveryRecord]]]:
        """A program's alerts in the order of creation, those after a number, each with its rule and deliveries."""
        query = select(*_ALERT).where(alerts.c.program == program_id, alerts.c.number > after).order_by(alerts.c.number).limit(limit)
        with self._snapshot() as connection:
            found = [AlertRecord(**row) for row in connection.execute(query).mappings()]
            rules = _rules_of(connection, {alert.rule for alert in found})
            sent = _deliveries_of(connection, program_id, after, found)
            return [(alert, rules[alert.rule], sent[alert.id]) for alert in found]

    def claim_deliveries(self, now: datetime, lease: timedelta, most: int, most_attempts: int) -> list[ClaimedDelivery]:
        """Claim due deliveries until the lease ends; an attempt is counted for each. Teams take turns, each its longest due first.

        A delivery whose last attempt was lost with its process has failed.
        """
        free = and_(alert_deliveries.c.state == "pending", _unclaimed(now))
        due = and_(free, alert_deliveries.c.due_at <= now)
        turn = func.row_number().over(partition_by=alert_rules.c.team, order_by=alert_deliveries.c.due_at)
        owned = alert_deliveries.join(alerts, alerts.c.id == alert_deliveries.c.alert).join(alert_rules, alert_rules.c.id == alerts.c.rule)
        wanted = select(alert_deliveries.c.id).select_from(owned).where(due).order_by(turn, alert_deliveries.c.due_at).limit(most)
        with self._read() as connection:
            ids = list(connection.scalars(wanted))
        if not ids:
            return []
        given_up = update(alert_deliveries).where(alert_deliveries.c.id.in_(ids), due, alert_deliveries.c.attempts >= most_attempts)
        claim = update(alert_deliveries).where(alert_deliveries.c.id.in_(ids), due)
        values = {"claimed_until": now + lease, "attempts": alert_deliveries.c.attempts + 1}
        with self._write() as connection:
            connection.execute(given_up.values(state="failed", last_error=LOST, claimed_until=None))
            rows = connection.execute(claim.values(values).returning(*_DELIVERY)).mappings().all()
            return _outgoing(connection, [DeliveryRecord(**row) for row in rows])

    def settle_delivery(
        self, delivery: DeliveryRecord, state: DeliveryState, now: datetime, *, error: str | None = None, due_at: datetime | None = None
    ) -> bool:
        """Store the result of an attempt, unless the delivery was claimed by another process or its rule has ended."""
        ours = and_(
            alert_deliveries.c.id == delivery.id,
            alert_deliveries.c.state == "pending",
            alert_deliveries.c.attempts == delivery.attempts,
        )
        last_error = error and sanitize_text(error)[:MAX_ERROR_CHARACTERS]
        outcome = {"state": state, "last_error": last_error, "sent_at": now if state == "sent" else None}
        settle = update(alert_deliveries).where(ours).values(**outcome, claimed_until=None, due_at=due_at or delivery.due_at)
        return self._change(settle) == 1


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
        delivery = DeliveryRecord(str(uuid.uuid4()), made.id, target, "pending", 0, now, None, None, None)
        connection.execute(insert(alert_deliveries).values(asdict(delivery)))
    return made


def _unclaimed(now: datetime) -> ColumnElement[bool]:
    return or_(alert_deliveries.c.claimed_until.is_(None), alert_deliveries.c.claimed_until <= now)


def _outgoing(connection: Connection, claimed: Sequence[DeliveryRecord]) -> list[ClaimedDelivery]:
    wanted = {delivery.alert for delivery in claimed}
    found = {row["id"]: AlertRecord(**row) for row in connection.execute(select(*_ALERT).where(alerts.c.id.in_(wanted))).mappings()}
    rules = _rules_of(connection, {alert.rule for alert in found.values()})
    return [ClaimedDelivery(delivery, found[delivery.alert], rules[found[delivery.alert].rule]) for delivery in claimed]


def _rules_of(connection: Connection, ids: set[str]) -> dict[str, AlertRuleRecord]:
    rows: Sequence[RowMapping] = connection.execute(select(*_RULE).where(alert_rules.c.id.in_(ids))).mappings().all()
    return {row["id"]: AlertRuleRecord(**row) for row in rows}


def _deliveries_of(connection: Connection, program_id: str, after: int, found: Sequence[AlertRecord]) -> dict[str, list[DeliveryRecord]]:
    """Deliveries of a page of alerts, by alert."""
    upto = found[-1].number if found else after
    page = select(alerts.c.id).where(alerts.c.program == program_id, alerts.c.number > after, alerts.c.number <= upto)
    query = select(*_DELIVERY).where(alert_deliveries.c.alert.in_(page)).order_by(alert_deliveries.c.target)
    deliveries: dict[str, list[DeliveryRecord]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        deliveries[row["alert"]].append(DeliveryRecord(**row))
    return deliveries
