"""/settings/alert-rules: make a rule, try it, change it and end it."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, redirect, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal
from service.api.http.request_body import read_form
from service.domain.errors import InvalidRequest
from service.domain.tracking.records import AlertRuleRecord
from service.usecases.delivery.targets import address_host
from service.usecases.tracking import alerts as usecase
from service.usecases.tracking.programs import find_program
from service.web.alert_rule_form import KIND_WORDS, LIMIT_FIELDS, TARGET_FIELDS, made_secrets, read_rule, rule_errors, rule_fields
from service.web.blueprint import blueprint
from service.web.forms import Fields, filled
from service.web.rendering import page
from service.web.settings_content import settings_page


def _known(rule_id: str) -> AlertRuleRecord:
    """The team's rule of that id. Raises NotFound."""
    return usecase.find_rule(app_context(), principal(), rule_id)


@blueprint.post("/settings/alert-rules")
@needs("write")
def create_alert_rule() -> BaseResponse:
    """Make a rule of a program; the secret of its webhook is shown once"""
    given = filled(read_form().items())
    if "program" not in given:
        return settings_page(given, {"program": "choose the program that is watched"})
    program = find_program(app_context(), principal(), given["program"])
    try:
        made = usecase.create_rule(app_context(), program, read_rule(given, keeps_targets=False), None)
    except (ValidationError, InvalidRequest) as error:
        return settings_page(given, rule_errors(error))
    return _shown_once(made)


@blueprint.get("/settings/alert-rules/<rule_id>")
def show_alert_rule(rule_id: str) -> Response:
    """The form that changes a rule"""
    rule = _known(rule_id)
    return _rule_page(rule, rule_fields(rule), {})


@blueprint.post("/settings/alert-rules/<rule_id>")
@needs("write", _known)
def change_alert_rule(rule_id: str) -> BaseResponse:
    """Put another rule in its place; where nothing is stated alerts go where they went"""
    rule, given = _known(rule_id), filled(read_form().items())
    try:
        made = usecase.replace_rule(app_context(), rule, read_rule(given, keeps_targets=True))
    except (ValidationError, InvalidRequest) as error:
        return _rule_page(rule, given, rule_errors(error))
    return _shown_once(made) if "targets.0.webhook" in given else _back()


@blueprint.post("/settings/alert-rules/<rule_id>/test")
@needs("write", _known)
def try_alert_rule(rule_id: str) -> BaseResponse:
    """Send a test message to all targets of a rule"""
    try:
        made = usecase.try_rule(app_context(), _known(rule_id))
    except InvalidRequest as error:
        return settings_page({}, {"": error.message})
    return _back(tested=f"{made.program}.{made.number}")


@blueprint.post("/settings/alert-rules/<rule_id>/end")
@needs("write", _known)
def end_alert_rule(rule_id: str) -> BaseResponse:
    """End a rule; its alerts stay"""
    usecase.end_rule(app_context(), _known(rule_id))
    return _back()


def _rule_page(rule: AlertRuleRecord, given: Fields, errors: dict[str, str]) -> Response:
    program = find_program(app_context(), principal(), rule.program)
    targets = [f"{target['kind']} {address_host(target['url'])}" for target in rule.body["targets"]]
    forms = {"limits": LIMIT_FIELDS, "targets": TARGET_FIELDS}
    content = {"rule": rule, "program": program.body["name"], "kinds": KIND_WORDS, "forms": forms, "targets": targets}
    status = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK
    return page("settings/rule.html", status, **content, given=given, errors=errors, may_write=principal().may("write"))


def _shown_once(made: AlertRuleRecord) -> BaseResponse:
    """The page with the new secrets of webhooks; without such it is not shown but led to."""
    secrets = made_secrets(made)
    what = "The rule is in force. Verify what the webhook receives with its signing secret."
    return settings_page(secret={"what": what, "values": secrets}) if secrets else _back()


def _back(tested: str | None = None) -> BaseResponse:
    return redirect(f"{url_for('web.show_settings', tested=tested)}#alert-rules", HTTPStatus.SEE_OTHER)
