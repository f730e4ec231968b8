"""POST /slack/commands and /slack/interactions: acknowledged at once, answered to the response URL; GET /slack/range.png."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from flask import Response, current_app, request

from service.actor import acting_as
from service.api.http.auth import app_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.errors import HttpError, response_name
from service.api.http.request_body import read_body
from service.context import AppContext
from service.domain.audit import Actor
from service.domain.errors import DomainError, StoreUnavailable
from service.formats.slack.blocks import Message, text_message
from service.formats.slack.range_url import VALID, BadRangeUrl, read_figures
from service.runtime.webhooks import Forbidden, Undelivered
from service.schemas import strict_json
from service.schemas.fields import Schema, Text
from service.slack.commands import answer_text, help_message
from service.slack.conversation import Conversation
from service.slack.followups import press
from service.slack.pool import AnswerPool
from service.slack.signatures import SIGNATURE_HEADER, TIMESTAMP_HEADER, BadSignature, SeenSignatures, verify
from service.usecases.resolution.feedback import FeedbackCache, context_for_team
from service.usecases.slack.addresses import send_message, slack_destination
from service.usecases.slack.channels import CHANNEL, USER, WORKSPACE, find_channel

log = logging.getLogger(__name__)

Respond = Callable[[Conversation], Message]
Form = Mapping[str, Any]
FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 100
IDS = {"team": WORKSPACE, "channel": CHANNEL, "user": USER}
"""Forms of the ids in a request."""
BUSY = "Too many questions are being answered right now; ask again in a moment."
FAILED = "Something went wrong here; the log of the service says what."
NOT_SET_UP = "Slack is not set up here: see OUTLAY_SLACK_SIGNING_SECRET in docs/how-to/slack.md."
_FORM_BODY = {"required": True, "content": {FORM: {"schema": {"type": "object", "additionalProperties": {"type": "string"}}}}}
_ACKNOWLEDGED = {"description": "Acknowledged; a message to the person who asked, or nothing: the answer goes to the response URL"}

blueprint = Blueprint("slack", __name__, description="Requests of the Slack app, signed by Slack")


class RangeQuerySchema(Schema):
    """An address of a picture, as this service has made it."""

    usd = Text(required=True, max_length=200, description="p10, p50, p90 and, where there is one, the goal [USD]")
    until = Text(required=True, max_length=12, description="When the address ends, as Unix time [s]")
    signature = Text(required=True, max_length=64, description="HMAC-SHA-256 of both")


def _set_up(state: Any) -> None:
    state.app.extensions["slack_pool"] = AnswerPool()


blueprint.record_once(_set_up)


@blueprint.route("/slack/commands", methods=["POST"])
@blueprint.response(200, _ACKNOWLEDGED)
@blueprint.doc(requestBody=_FORM_BODY)
@blueprint.alt_response(401, "Unauthorized")
@blueprint.alt_response(404, "NotFound")
@blueprint.alt_response(422, response_name(422))
def take_slack_command() -> Response:
    """A slash command of Slack, such as `/outlay llama 3 8b 1T tokens on 512 h100`

    Only requests that Slack has signed within five minutes are taken, each once. The answer goes to `response_url`, whose host must be
    Slack's. Without OUTLAY_SLACK_SIGNING_SECRET this is not there.
    """
    form = _signed_form()
    text = form.get("text", "").strip()
    if "ssl_check" in form:
        return Response()
    if text.lower() in ("", "help"):
        return json_response(help_message())
    where = {name: form.get(f"{name}_id", "") for name in ("team", "channel", "user")}
    return _acknowledge(where, form.get("response_url", ""), lambda chat: answer_text(chat, text))


@blueprint.route("/slack/interactions", methods=["POST"])
@blueprint.response(200, _ACKNOWLEDGED)
@blueprint.doc(requestBody=_FORM_BODY)
@blueprint.alt_response(401, "Unauthorized")
@blueprint.alt_response(404, "NotFound")
@blueprint.alt_response(422, response_name(422))
def take_slack_interaction() -> Response:
    """A pressed button of a message

    As POST /slack/commands; the form's `payload` is JSON.
    """
    payload = strict_json.parse(_signed_form().get("payload", "").encode())
    if not isinstance(payload, dict) or payload.get("type") != "block_actions":
        return Response()
    try:
        action = payload["actions"][0]
        where = {name: str(payload[name]["id"]) for name in ("team", "channel", "user")}
        name, value, url = str(action["action_id"]), action.get("value"), str(payload.get("response_url", ""))
    except (KeyError, IndexError, TypeError) as error:
        raise HttpError(422, f"The payload is not one of pressed buttons: {error} is missing.") from error
    if not value:  # the button is a link, which Slack has opened itself
        return Response()
    return _acknowledge(where, url, lambda chat: press(chat, name, str(value)))


@blueprint.route("/slack/range.png", methods=["GET"])
@blueprint.arguments(RangeQuerySchema, location="query")
@blueprint.response(200, {"type": "string", "format": "binary"}, content_type="image/png")
@blueprint.alt_response(404, "NotFound")
def draw_slack_range(query: dict[str, str]) -> Response:
    """The picture of a range of costs in a Slack message

    Its address holds the figures and a signature; it ends after a day.
    """
    from service.formats.slack.range_image import draw

    try:
        usd, goal = read_figures(_secret(), query["usd"], query["until"], query["signature"], app_context().clock())
    except BadRangeUrl as error:
        raise HttpError(404, "There is no such picture, or its address has ended.") from error
    age_s = int(VALID.total_seconds())
    return Response(draw(usd, goal), content_type="image/png", headers={"Cache-Control": f"public, max-age={age_s}"})


def _secret() -> str:
    secret = app_context().settings.slack_signing_secret
    if secret is None:
        raise HttpError(404, NOT_SET_UP)
    return secret


def _signed_form() -> dict[str, str]:
    """The form of the present request. Raises HttpError: 404 without a secret, 401 where Slack has not signed it, 400 for no form."""
    secret, body, context = _secret(), read_body(), app_context()
    stamp, signature = (request.headers.get(name, "") for name in (TIMESTAMP_HEADER, SIGNATURE_HEADER))
    seen = SeenSignatures(context.settings.data_dir / "slack", None if context.settings.embedded else context.cache)
    try:
        verify(secret, body, stamp, signature, context.clock(), seen)
    except BadSignature as error:
        raise HttpError(401, str(error)) from error
    except OSError as error:
        log.error("a signature cannot be remembered, so that the request is refused: %s", error)  # noqa: TRY400 - the text says it all
        raise HttpError(503) from error
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError as error:
        raise HttpError(400, f"The body is not a form: {error}") from error


def _acknowledge(where: Mapping[str, str], url: str, respond: Respond) -> Response:
    """An empty answer, while a thread works on the other; a message where too many wait. Raises HttpError for what Slack never sends."""
    context = app_context()
    if not all(form.fullmatch(where[name]) for name, form in IDS.items()):
        raise HttpError(422, "The ids of workspace, channel and user are missing or malformed.")
    try:
        slack_destination(context, url)
    except Forbidden as error:
        raise HttpError(422, f"response_url {error}") from error
    feedback: FeedbackCache = current_app.extensions["feedback"]
    work = partial(_answer, context, feedback, dict(where), request.url_root.rstrip("/"), url, respond)
    pool: AnswerPool = current_app.extensions["slack_pool"]
    return Response() if pool.submit(work, partial(_report_failure, context, url)) else json_response(text_message(BUSY))


def _answer(context: AppContext, feedback: FeedbackCache, where: Form, server: str, url: str, respond: Respond) -> None:
    """Send the answer, or why there is none."""
    try:
        channel = find_channel(context, where["team"], where["channel"])
        chat = Conversation(context_for_team(context, feedback, channel.principal), channel, server, where["user"], url)
        with acting_as(Actor("slack", user=where["user"])):
            message = respond(chat)
    except DomainError as error:
        message = text_message(error.message)
    except StoreUnavailable as error:
        log.error("a question of Slack is not answered: %s", error)  # noqa: TRY400 - the text says it all
        message = text_message(error.public_message)
    _send(context, url, message)


def _report_failure(context: AppContext, url: str, error: BaseException) -> None:
    log.error("a question of Slack is not answered", exc_info=error)
    _send(context, url, text_message(FAILED))


def _send(context: AppContext, url: str, message: Message) -> None:
    try:
        send_message(context, url, message)
    except Undelivered as error:
        log.warning("an answer did not reach Slack: %s", error)
