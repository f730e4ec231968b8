"""Scenarios as JSON, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from service.domain.deliveries import DeliveryTarget
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.serialization import to_builtins
from service.usecases.delivery.targets import address_host
from service.usecases.scenarios.end_messages import scenario_entry

Body = dict[str, Any]


def submitted_body(row: ScenarioRecord, notify: DeliveryTarget | None) -> Body:
    """A new scenario as JSON, with the secret of its webhook."""
    told = None if notify is None else {"host": address_host(notify.url), "secret": notify.secret}
    return scenario_entry(row) | {"notify": told}


def scenario_body(scenario: ScenarioDetail) -> Body:
    """A scenario as JSON."""
    notify = None if scenario.notify is None else to_builtins(scenario.notify)
    return {**scenario_entry(scenario.row), "request": scenario.request, "result": scenario.result, "notify": notify}
