"""/v1/track: alert rules of programs, and their alerts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from flask import Response, url_for

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.idempotency import IDEMPOTENT, idempotency_record
from service.api.http.paging import numbered_page
from service.api.resources.tracking.programs import known_program
from service.domain.deliveries import DeliveryRecord
from service.domain.tracking.alerts import LIMITS, TEST
from service.domain.tracking.records import AlertRecord, AlertRuleRecord
from service.schemas.paging import PageQuerySchema, page_schema
from service.schemas.tracking.alerts import AlertRuleSchema, AlertSchema, NewAlertRuleSchema, TestAlertSchema
from service.serialization import to_builtins
from service.usecases.delivery.targets import address_host
from service.usecases.tracking import alerts as usecase

Body = dict[str, Any]
blueprint = Blueprint("alerts", __name__, description="Alert rules of tracked programs, and alerts")

RULE_EXAMPLE: Body = {"kind": "budget", "shares": [0.5, 0.8, 1.0], "targets": [{"webhook": "https://example.com/alerts"}]}


def known_rule(rule_id: str) -> AlertRuleRecord:
    """The team's active rule of that id. Raises NotFound."""
    return usecase.find_rule(app_context(), principal(), rule_id)


@blueprint.route("/v1/track/programs/<program_id>/alert-rules", methods=["POST"])
@needs("write", known_program)
@blueprint.arguments(NewAlertRuleSchema, example=RULE_EXAMPLE)
@blueprint.response(201, AlertRuleSchema)
@blueprint.doc(**IDEMPOTENT)
def create_alert_rule(given: Body, program_id: str) -> Response:
    """Create an alert rule of a program

    A webhook's secret is in this answer only. The program is evaluated when events arrive, and every five minutes while it is open.
    """
    program, idempotency = known_program(program_id), idempotency_record(201, made_body, _rule_url)
    made = usecase.create_rule(app_context(), program, given, idempotency)
    return json_response(made_body(made), 201, {"Location": _rule_url(made)})


@blueprint.route("/v1/track/programs/<program_id>/alert-rules", methods=["GET"])
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, page_schema(AlertRuleSchema))
def list_alert_rules(query: Body, program_id: str) -> Response:
    """Active alert rules of a program, in the order of creation"""
    return numbered_page(query, partial(usecase.list_rules, app_context(), known_program(program_id)), rule_body)


@blueprint.route("/v1/track/alert-rules/<rule_id>", methods=["GET"])
@blueprint.response(200, AlertRuleSchema)
def get_alert_rule(rule_id: str) -> Response:
    """One active alert rule"""
    return json_response(rule_body(known_rule(rule_id)))


@blueprint.route("/v1/track/alert-rules/<rule_id>", methods=["DELETE"])
@needs("write", known_rule)
@blueprint.response(204)
def delete_alert_rule(rule_id: str) -> Response:
    """End an alert rule: it is no longer evaluated, and its pending deliveries are dropped

    Its alerts stay in the program's list.
    """
    usecase.end_rule(app_context(), known_rule(rule_id))
    return Response(status=204)


@blueprint.route("/v1/track/alert-rules/<rule_id>/test", methods=["POST"])
@needs("write", known_rule)
@blueprint.response(202, TestAlertSchema)
def test_alert_rule(rule_id: str) -> Response:
    """Send a test alert to all targets of a rule

    It is delivered like any other; the program's alerts show the result.
    """
    made = usecase.try_rule(app_context(), known_rule(rule_id))
    location = url_for("alerts.list_alerts", program_id=made.program)
    return json_response({"alert": made.id, "program": made.program}, 202, {"Location": location})


@blueprint.route("/v1/track/programs/<program_id>/alerts", methods=["GET"])
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, page_schema(AlertSchema))
def list_alerts(query: Body, program_id: str) -> Response:
    """Alerts of a program, in the order of creation, with their deliveries"""
    find = partial(usecase.list_alerts, app_context(), known_program(program_id))
    return numbered_page(query, find, lambda listed: alert_body(*listed), lambda listed: listed[0].number)


def made_body(row: AlertRuleRecord) -> Body:
    """A new rule as its JSON object, with the secrets of its webhooks."""
    body = rule_body(row)
    for shown, target in zip(body["targets"], row.body["targets"], strict=True):
        if target["secret"] is not None:
            shown["secret"] = target["secret"]
    return body


def rule_body(row: AlertRuleRecord) -> Body:
    """A rule as its JSON object."""
    limits = {name: row.body[name] for name in ("kind", *LIMITS)}
    return {**to_builtins(row), **limits, "targets": [_shown(target) for target in row.body["targets"]]}


def alert_body(alert: AlertRecord, rule: AlertRuleRecord, deliveries: Sequence[DeliveryRecord]) -> Body:
    """An alert as its JSON object, with its deliveries."""
    return {
        **to_builtins(alert),
        **{name: alert.body[name] for name in ("title", "text", "figures")},
        "kind": TEST if alert.subject == TEST else rule.body["kind"],
        "deliveries": [_delivery_body(delivery, rule.body["targets"][delivery.target]) for delivery in deliveries],
    }


def _delivery_body(row: DeliveryRecord, target: Body) -> Body:
    due_at = to_builtins(row.due_at) if row.state == "pending" else None
    return {**to_builtins(row), **_shown(target), "due_at": due_at}


def _shown(target: Body) -> Body:
    return {"kind": target["kind"], "host": address_host(target["url"])}


def _rule_url(row: AlertRuleRecord) -> str:
    return url_for("alerts.get_alert_rule", rule_id=row.id)
