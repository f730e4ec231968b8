"""/settings: who is signed in, the team's keys, what it uses of its budgets, its alert rules and its Slack channels."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, redirect, url_for
from werkzeug.wrappers import Response as BaseResponse

from service.api.http import budgets
from service.api.http.auth import app_context, needs, principal
from service.api.http.request_body import read_form
from service.domain.errors import InvalidRequest
from service.domain.teams import SCOPES, Key
from service.usecases.slack.channels import map_team_channel, unmap_team_channel
from service.usecases.team_keys import find_team_key, make_team_key, revoke_team_key, rotate_team_key
from service.web.blueprint import blueprint
from service.web.forms import filled
from service.web.rendering import moment
from service.web.settings_content import EXPIRES, OVERLAP, refused, settings_page


@blueprint.get("/settings")
@budgets.unbudgeted
def show_settings() -> Response:
    """The key's team and scopes, the team's keys for administrators, budgets, alert rules and Slack channels"""
    return settings_page()


@blueprint.post("/settings/keys")
@budgets.unbudgeted
@needs("admin")
def create_key() -> Response:
    """Make a key of the team and show it once"""
    given = filled(read_form().items())
    scopes = [scope for scope in SCOPES if f"scopes.{scope}" in given]
    try:
        key, token = make_team_key(app_context(), principal(), given.get("name", ""), scopes, given.get("expires", EXPIRES))
    except InvalidRequest as error:
        return refused(error, given)
    return _shown_once(key, token, f"The key {key.name} is made.")


def _known_key(key_id: str) -> Key:
    """The team's key of that id. Raises NotFound."""
    return find_team_key(app_context(), principal(), key_id)


@blueprint.post("/settings/keys/<key_id>/rotate")
@budgets.unbudgeted
@needs("admin")
def rotate_key(key_id: str) -> Response:
    """Make a key in the place of another and show it once"""
    given = filled(read_form().items())
    try:
        key, token, ends = rotate_team_key(app_context(), principal(), key_id, given.get("overlap", OVERLAP))
    except InvalidRequest as error:
        return refused(error, given)
    return _shown_once(key, token, f"A key takes the place of {_known_key(key_id).prefix}, which ends at {moment(ends)}.")


@blueprint.post("/settings/keys/<key_id>/revoke")
@budgets.unbudgeted
@needs("admin")
def revoke_key(key_id: str) -> BaseResponse:
    """End a key, with all sessions that were begun with it"""
    revoke_team_key(app_context(), principal(), key_id)
    return _back("keys")


@blueprint.post("/settings/slack-channels")
@needs("admin")
def map_slack_channel() -> BaseResponse:
    """Let a Slack channel, or the rest of a workspace, act for the team"""
    given = filled(read_form().items())
    scopes = given.get("channel_scopes", "read").split(",")
    try:
        map_team_channel(app_context(), principal(), given.get("workspace", ""), given.get("channel"), scopes, given.get("webhook"))
    except InvalidRequest as error:
        return refused(error, given)
    return _back("slack-channels")


@blueprint.post("/settings/slack-channels/unmap")
@needs("admin")
def unmap_slack_channel() -> BaseResponse:
    """Delete a mapping of the team"""
    given = filled(read_form().items())
    unmap_team_channel(app_context(), principal(), given.get("workspace", ""), given.get("channel"))
    return _back("slack-channels")


def _shown_once(key: Key, token: str, what: str) -> Response:
    until = "never ends" if key.expires_at is None else f"ends at {moment(key.expires_at)}"
    return settings_page(secret={"what": f"{what} It may {', '.join(key.scopes)} and {until}.", "values": [("the key", token)]})


def _back(part: str) -> BaseResponse:
    return redirect(f"{url_for('web.show_settings')}#{part}", HTTPStatus.SEE_OTHER)
