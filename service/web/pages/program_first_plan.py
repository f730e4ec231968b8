"""/programs/{id}/plan/first: a plan for a program that has none, from a sentence, a file, a text or an example."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, url_for
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import needs, principal, team_context
from service.api.http.budgets import uses
from service.api.http.request_body import read_files, read_form
from service.domain.errors import InvalidRequest
from service.schemas.tracking.plan import MARK, plan_errors
from service.usecases.ask.read import read_question
from service.web.blueprint import blueprint
from service.web.forms import by_field, filled
from service.web.pages.program_plan import seen_first
from service.web.pages.programs import known_program, program_page
from service.web.plan_change import first_form, takes_first_plan
from service.web.program_file import UnreadablePlan, decode, example_text, read_plan, text_of_estimate

SENTENCE, PLAN, FILE, EXAMPLE = "text", "plan", "file", "example"
NO_RUN = "must say a training run: a model, its tokens, and how many of which accelerator, such as 7B 1T on 256 H100"
NO_PLAN = "must be a plan: name it in a sentence, choose a file, or state its text"
AN_ANSWER = "must be the request of a plan, which this page can change; an answer is taken by PATCH /v1/track/programs/{id}"


@blueprint.post("/programs/<program_id>/plan/first")
@uses(costly=True)
@needs("write", known_program)
def show_first_plan(program_id: str) -> BaseResponse:
    """What a first plan changes, in the form where it is changed and saved"""
    program, sent = known_program(program_id), filled(read_form().items())
    if not takes_first_plan(program):
        return redirect(url_for("web.show_program", program_id=program_id, tab="plan"), HTTPStatus.SEE_OTHER)
    at = SENTENCE if SENTENCE in sent else PLAN
    try:
        plan = read_plan(_text(sent))
    except UnreadablePlan as error:
        return _refused(program_id, sent, {at: str(error)})
    if MARK in plan:
        return _refused(program_id, sent, {PLAN: AN_ANSWER})
    if errors := by_field(plan_errors(plan, "")):
        return _refused(program_id, sent, errors)
    return seen_first(program, first_form(program, plan))


def _text(sent: Mapping[str, str]) -> str:
    """The plan as text. Raises UnreadablePlan."""
    files = read_files()
    if FILE in files and files[FILE][1]:
        return decode(files[FILE][1])
    if SENTENCE in sent:
        return _text_of_sentence(sent[SENTENCE])
    if PLAN in sent:
        return sent[PLAN]
    if sent.get("do") == EXAMPLE:
        return example_text()
    raise UnreadablePlan(NO_PLAN)


def _text_of_sentence(sentence: str) -> str:
    """A plan of the one run that a sentence says. Raises UnreadablePlan where it says none, or something is to be asked back."""
    try:
        reading = read_question(team_context(), principal(), sentence)
    except InvalidRequest as error:
        raise UnreadablePlan(NO_RUN) from error
    if reading.understood.kind != "estimate":
        raise UnreadablePlan(NO_RUN)
    if asked_back := next((entry for entry in reading.unclear if entry.blocking), None):
        raise UnreadablePlan(f"{asked_back.text}: {asked_back.question}" if asked_back.text else asked_back.question)
    return text_of_estimate(reading.understood.request)


def _refused(program_id: str, sent: Mapping[str, str], errors: Mapping[str, Any]) -> Response:
    """The plan's tab with what was sent and what is wrong with it."""
    beside = {name: text for name, text in errors.items() if name in (SENTENCE, PLAN)}
    others = {name: text for name, text in errors.items() if name not in beside}
    first = {"sent": sent, "errors": beside, "other_errors": others}
    return program_page(known_program(program_id), "plan", HTTPStatus.UNPROCESSABLE_ENTITY, first_plan=first)
