"""The outbox: deliveries of alerts and of scenarios' ends. They are stored in one commit with what they tell, then sent."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, insert, or_, select, update

from service.domain.deliveries import DeliveryRecord, DeliveryState
from service.domain.scenarios import ScenarioRecord
from service.domain.tracking.records import AlertRecord, AlertRuleRecord
from service.store.database import columns_of, sanitize_text
from service.store.scenarios.tables import scenarios
from service.store.secrets import SecretRows, with_target
from service.store.tables import deliveries
from service.store.tracking.tables import alert_rules, alerts

LOST = "the process that sent it was lost"
MAX_ERROR_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class ClaimedAlert:
    """A claimed delivery of an alert, with its alert and rule."""

    delivery: DeliveryRecord
    alert: AlertRecord
    rule: AlertRuleRecord


@dataclass(frozen=True, slots=True)
class ClaimedEnd:
    """A claimed delivery of a scenario's end, with the scenario and the target as stored."""

    delivery: DeliveryRecord
    scenario: ScenarioRecord
    target: Mapping[str, Any]


ClaimedDelivery = ClaimedAlert | ClaimedEnd

_DELIVERY, _ALERT, _RULE = (
    columns_of(deliveries, DeliveryRecord),
    columns_of(alerts, AlertRecord),
    columns_of(alert_rules, AlertRuleRecord),
)
_SCENARIO = columns_of(scenarios, ScenarioRecord)


class DeliveryRows(SecretRows):
    """Storage of deliveries."""

    def claim_deliveries(self, now: datetime, lease: timedelta, most: int, most_attempts: int) -> list[ClaimedDelivery]:
        """Claim due deliveries until the lease ends; an attempt is counted for each. Teams take turns, each its longest due first.

        A delivery whose last attempt was lost with its process has failed.
        """
        due = and_(deliveries.c.state == "pending", _unclaimed(now), deliveries.c.due_at <= now)
        turn = func.row_number().over(partition_by=deliveries.c.team, order_by=deliveries.c.due_at)
        wanted = select(deliveries.c.id).where(due).order_by(turn, deliveries.c.due_at).limit(most)
        with self._read() as connection:
            ids = list(connection.scalars(wanted))
        if not ids:
            return []
        given_up = update(deliveries).where(deliveries.c.id.in_(ids), due, deliveries.c.attempts >= most_attempts)
        claim = update(deliveries).where(deliveries.c.id.in_(ids), due)
        values = {"claimed_until": now + lease, "attempts": deliveries.c.attempts + 1}
        with self._write() as connection:
            connection.execute(given_up.values(state="failed", last_error=LOST, claimed_until=None))
            rows = connection.execute(claim.values(values).returning(*_DELIVERY)).mappings().all()
            claimed = [DeliveryRecord(**row) for row in rows]
            return [*self._of_alerts(connection, claimed), *self._of_scenarios(connection, claimed)]

    def settle_delivery(
        self, delivery: DeliveryRecord, state: DeliveryState, now: datetime, *, error: str | None = None, due_at: datetime | None = None
    ) -> bool:
        """Store the result of an attempt, unless the delivery was claimed by another process or its rule has ended."""
        ours = and_(deliveries.c.id == delivery.id, deliveries.c.state == "pending", deliveries.c.attempts == delivery.attempts)
        last_error = error and sanitize_text(error)[:MAX_ERROR_CHARACTERS]
        outcome = {"state": state, "last_error": last_error, "sent_at": now if state == "sent" else None}
        settle = update(deliveries).where(ours).values(**outcome, claimed_until=None, due_at=due_at or delivery.due_at)
        return self._change(settle) == 1

    def delivery_of_scenario(self, scenario_id: str) -> DeliveryRecord | None:
        """The delivery of a scenario's end, None before it has ended and where nobody is told."""
        return self._find(DeliveryRecord, select(*_DELIVERY).where(deliveries.c.scenario == scenario_id))

    def _of_alerts(self, connection: Connection, claimed: Sequence[DeliveryRecord]) -> list[ClaimedAlert]:
        wanted = {delivery.alert: delivery for delivery in claimed if delivery.alert is not None}
        found = {row["id"]: AlertRecord(**row) for row in connection.execute(select(*_ALERT).where(alerts.c.id.in_(wanted))).mappings()}
        rules = rules_by_id(connection, {alert.rule for alert in found.values()}, self._rule)
        mine = ((delivery, found[delivery.alert]) for delivery in claimed if delivery.alert is not None)
        return [ClaimedAlert(delivery, alert, rules[alert.rule]) for delivery, alert in mine]

    def _of_scenarios(self, connection: Connection, claimed: Sequence[DeliveryRecord]) -> list[ClaimedEnd]:
        wanted = {delivery.scenario: delivery for delivery in claimed if delivery.scenario is not None}
        query = select(*_SCENARIO, scenarios.c.notify).where(scenarios.c.id.in_(wanted))
        rows = [dict(row) for row in connection.execute(query).mappings()]
        targets = [with_target(row.pop("notify"), self._box.open) for row in rows]
        return [ClaimedEnd(wanted[row["id"]], ScenarioRecord(**row), target) for row, target in zip(rows, targets, strict=True)]


def add_delivery(
    connection: Connection, team: str, now: datetime, *, alert: str | None = None, scenario: str | None = None, target: int = 0
) -> None:
    """Add a delivery that is due at once."""
    made = DeliveryRecord(str(uuid.uuid4()), alert, scenario, target, "pending", 0, now, None, None, None)
    connection.execute(insert(deliveries).values(asdict(made) | {"team": team}))


def rules_by_id(connection: Connection, ids: set[str], rule: Callable[..., AlertRuleRecord]) -> dict[str, AlertRuleRecord]:
    """The alert rules with these ids; `rule` makes one of its row."""
    rows: Sequence[RowMapping] = connection.execute(select(*_RULE).where(alert_rules.c.id.in_(ids))).mappings().all()
    return {row["id"]: rule(**row) for row in rows}


def _unclaimed(now: datetime) -> ColumnElement[bool]:
    return or_(deliveries.c.claimed_until.is_(None), deliveries.c.claimed_until <= now)
