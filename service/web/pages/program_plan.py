"""/programs/{id}/plan and /programs/{id}/versions: a program's plan changed on its page, and what differs between its versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import json_response
from service.api.http.budgets import uses
from service.api.http.request_body import form_limit, read_form
from service.domain.errors import VersionConflictError
from service.domain.tracking.records import ProgramRecord
from service.formats.differences import Difference
from service.serialization import to_builtins
from service.usecases.tracking.programs import change_program
from service.usecases.tracking.versions import list_versions
from service.web.blueprint import blueprint
from service.web.pages.programs import known_program, program_page
from service.web.plan_change import (
    PlanChange,
    SentForm,
    difference_of,
    difference_of_versions,
    field_in_words,
    form_content,
    in_words,
    planned_change,
    read_sent,
)
from service.web.plan_fields import MOST_FIELDS, FormSection
from service.web.rendering import page

MOST_VERSIONS = 100
SAVE = "save"
Body = dict[str, Any]
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


@blueprint.post("/programs/<program_id>/plan")
@form_limit(MOST_FIELDS)
@uses(costly=True)
@needs("write", known_program)
def change_plan(program_id: str) -> BaseResponse:
    """What a change of the plan does; saved where that was seen before"""
    program, form = known_program(program_id), read_form()
    sent = read_sent(form)
    if sent.version > program.version:
        sent = replace(sent, version=program.version)
    change, errors = planned_change(program, sent)
    if change is None or sent.version < program.version or form.get("do") != SAVE or change.digest != sent.seen:
        return _form_page(program, sent, change, errors, is_unseen=form.get("do") == SAVE)
    try:
        saved = change_program(app_context(), principal(), program, change.given, change.plan)
    except VersionConflictError:
        return _form_page(known_program(program_id), sent, change, errors, is_unseen=True)
    address = url_for("web.show_versions", program_id=program_id, before=program.version, after=saved.version)
    return redirect(address, HTTPStatus.SEE_OTHER)


@blueprint.get("/programs/<program_id>/versions")
def show_versions(program_id: str) -> Response:
    """The versions of a program, and what differs between two of them"""
    program = known_program(program_id)
    versions = list_versions(app_context(), program, MOST_VERSIONS)
    after = _stated("after", program.version)
    before = _stated("before", max(1, after - 1))
    difference = difference_of_versions(program, before, after)
    if request.args.get("format") == "json":
        return json_response({"versions": to_builtins(versions), "before": before, "after": after, **_as_json(difference)})
    content: Body = {"program": program, "versions": versions, "before": before, "after": after, "difference": in_words(difference)}
    return page("programs/versions.html", **content)


def seen_first(program: ProgramRecord, sent: SentForm) -> Response:
    """The plan's tab with what a form would change, which nobody has seen yet."""
    change, errors = planned_change(program, sent)
    return _form_page(program, sent, change, errors, is_unseen=True)


def _is_wrong(section: FormSection, errors: Mapping[str, str]) -> bool:
    """Whether something is wrong with a field of the section."""
    return any(field.name in errors for group in section.groups for field in group.fields)


def _stated(name: str, otherwise: int) -> int:
    """The number of a version that the address states."""
    text = request.args.get(name, "")
    return int(text) if _NUMBER.fullmatch(text) else otherwise


def _as_json(difference: Difference) -> Body:
    """A difference with its rows as objects."""
    names = ("name", "before", "after", "change")
    rows = {part: [dict(zip(names, row, strict=True)) for row in getattr(difference, part)] for part in ("fields", "figures", "lines")}
    return {"headline": difference.headline, **rows, "notes": list(difference.notes)}


def _form_page(program: ProgramRecord, sent: SentForm, change: PlanChange | None, errors: dict[str, str], *, is_unseen: bool) -> Response:
    """The plan's tab with the form as it was sent, what the change does or what is wrong, and what others have changed meanwhile."""
    is_late = sent.version < program.version
    status = HTTPStatus.CONFLICT if is_late else HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK
    content = form_content(program, sent) | {
        "is_sent": True,
        "is_unseen": is_unseen,
        "difference": None if change is None else difference_of(program, change),
        "digest": "" if change is None else change.digest,
        "meanwhile": in_words(difference_of_versions(program, sent.version, program.version)) if is_late else None,
        "since": sent.version,
        "form_errors": errors,
    }
    shown = {field.name for section in content["sections"] for group in section.groups for field in group.fields}
    shown |= {field.name for field in content["term_fields"]}
    content["other_errors"] = {field_in_words(name): message for name, message in errors.items() if name not in shown}
    content["open"] = [section.title for section in content["sections"] if _is_wrong(section, errors)]
    return program_page(program, "plan", status, plan_form=content)
