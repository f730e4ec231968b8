"""What is left of secrets whose key is lost: rules are ended, addresses forgotten, and the installation may make a new key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

from service.domain.audit import Change
from service.domain.errors import SecretsUnavailable
from service.store.audit import record_change
from service.store.idempotency import SEALED
from service.store.scenarios.tables import scenarios
from service.store.secrets import SecretRows, with_target, with_targets
from service.store.slack import slack_channels
from service.store.tables import deliveries, idempotency_keys, secrets_check
from service.store.tracking.tables import alert_rules, alerts

DROPPED = "https://dropped.invalid/"
"""In the place of an address or a secret that nobody can read."""
REASON = "the key of its address is lost"


@dataclass(frozen=True, slots=True)
class LostSecrets:
    """Number of rows with secrets that no key opens: alert rules that had not ended, scenarios, Slack channels, remembered answers."""

    rules: int
    scenarios: int
    channels: int
    answers: int


class SecretLossRows(SecretRows):
    """Dropping of secrets that cannot be opened."""

    def lost_secrets(self) -> LostSecrets:
        """What `drop_secrets` would drop."""
        with self._read() as connection:
            rules, told, channels, answers = self._lost(connection)
            open_rules = [row for row in rules if row.ended_at is None]
            return LostSecrets(len(open_rules), len(told), len(channels), len(answers))

    def drop_secrets(self, now: datetime) -> LostSecrets:
        """End rules whose secrets no key opens, forget such addresses of scenarios and channels, and such answers; all or nothing.

        Messages to these addresses fail. The check of the key goes where none opens it: the next secret is sealed under the key that is
        here, or a new one.
        """
        with self._write() as connection:
            rules, told, channels, answers = self._lost(connection)
            ended = sum(_end_rule(connection, row, self._or_dropped, now) for row in rules)
            for row in told:
                notify = with_target(row.notify, self._or_dropped)
                connection.execute(update(scenarios).where(scenarios.c.id == row.id).values(notify=notify))
                _fail(connection, deliveries.c.scenario == row.id)
            for row in channels:
                here = and_(slack_channels.c.workspace == row.workspace, slack_channels.c.channel == row.channel)
                connection.execute(update(slack_channels).where(here).values(webhook=None))
            for row in answers:
                here = and_(idempotency_keys.c.team == row.team, idempotency_keys.c.key == row.key)
                connection.execute(delete(idempotency_keys).where(here))
            for row in connection.execute(select(secrets_check)).all():
                if self._is_lost(row.sealed):
                    connection.execute(delete(secrets_check).where(secrets_check.c.id == row.id))
        self._checked = False
        return LostSecrets(ended, len(told), len(channels), len(answers))

    def _lost(self, connection: Connection) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Rows of rules, scenarios, channels and remembered answers with a secret that no key opens."""
        rules = [row for row in connection.execute(select(alert_rules)) if self._any_lost(row.body["targets"])]
        told = connection.execute(select(scenarios.c.id, scenarios.c.notify).where(scenarios.c.notify.is_not(None)))
        channels = connection.execute(select(slack_channels).where(slack_channels.c.webhook.is_not(None)))
        answers = connection.execute(select(idempotency_keys.c.team, idempotency_keys.c.key, idempotency_keys.c.body))
        return (
            rules,
            [row for row in told if self._any_lost([row.notify])],
            [row for row in channels if self._is_lost(row.webhook)],
            [row for row in answers if SEALED in row.body and self._is_lost(row.body[SEALED])],
        )

    def _any_lost(self, targets: list[Any]) -> bool:
        found = False

        def look(text: str) -> str:
            nonlocal found
            found = found or self._is_lost(text)
            return text

        for target in targets:
            with_target(target, look)
        return found

    def _is_lost(self, sealed: str) -> bool:
        try:
            self._box.open(sealed)
        except SecretsUnavailable:
            return True
        return False

    def _or_dropped(self, sealed: str) -> str:
        return DROPPED if self._is_lost(sealed) else sealed


def _end_rule(connection: Connection, row: Any, change: Callable[[str], str], now: datetime) -> int:
    """End a rule and forget its addresses; 1 where it had not ended."""
    body = with_targets(row.body, change)
    connection.execute(update(alert_rules).where(alert_rules.c.id == row.id).values(body=body, ended_at=row.ended_at or now))
    _fail(connection, deliveries.c.alert.in_(select(alerts.c.id).where(alerts.c.rule == row.id)))
    if row.ended_at is not None:
        return 0
    record_change(connection, Change(row.team, "alert_rule.end", row.id, {**row._mapping, "body": body}, None), now)  # noqa: SLF001 - SQLAlchemy's own name
    return 1


def _fail(connection: Connection, which: ColumnElement[bool]) -> None:
    waiting = and_(deliveries.c.state == "pending", which)
    connection.execute(update(deliveries).where(waiting).values(state="failed", last_error=REASON, claimed_until=None))
