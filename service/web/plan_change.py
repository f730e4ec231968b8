"""A change of a tracked program's plan by its form: what is changed, what is wrong with it, and what it would do."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from marshmallow import ValidationError

from service.api.http.auth import app_context, team_context
from service.domain.errors import DomainError, InvalidRequest
from service.domain.tracking.records import ProgramRecord
from service.formats.differences import Difference, compare_answers
from service.formats.field_words import path_words
from service.formats.reading_order import in_order
from service.schemas import strict_json
from service.schemas.tracking.plan import plan_errors, plan_of
from service.serialization import to_builtins, to_json
from service.usecases.tracking.programs import changed_body
from service.usecases.tracking.versions import body_of_version, figures_of, followed_plan, stated_by
from service.web.asking import refused_field
from service.web.forms import by_field, field_errors, filled, request_of
from service.web.plan_fields import CHANGE, NO_PLAN, TOKENS_FIELD, laid_over, plan_sections, term_fields, values_of

Body = dict[str, Any]
DATES = ("start", "deadline")
BASE, VERSION, SEEN = "base", "version", "seen"
"""Hidden fields: the plan as the form shows it, the version that it was made from, and the digest of what was last shown as a change."""
_UNSAID = re.compile(r"\.(plan|tiers|runs|estimate)(?=\.)")
"""Parts of a field's path that its other parts say as well."""
TERMS = frozenset({field.name for field in term_fields(None)} | {TOKENS_FIELD.name})


@dataclass(frozen=True, slots=True)
class SentForm:
    """What a form has sent: the program's own fields as a request, the plan's request where it has one, and the version it is from."""

    terms: Body
    plan: Body | None
    version: int
    seen: str


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change that can be made: what is stated of the program, and request and answer of its plan where that changes."""

    given: Body
    plan: Body | None
    digest: str


def shown_plan(program: ProgramRecord, followed: Mapping[str, Any] | None) -> Body | None:
    """The request of the program's plan as its form has it; None where none can be changed."""
    request = (followed or {}).get("request")
    if request is None or program.body.get("pivoted"):
        return None
    return {name: value for name, value in request.items() if name not in DATES}


def takes_first_plan(program: ProgramRecord) -> bool:
    """Whether the program has no plan, and can be given one."""
    return program.body["state"] == "open" and not program.body.get("pivoted") and followed_plan(app_context(), program) is None


def first_form(program: ProgramRecord, plan: Mapping[str, Any]) -> SentForm:
    """The form with a first plan, as if somebody had filled it in. What is stated of the program counts in place of what the plan says."""
    own = {name: value for name, value in program.body.items() if value is not None}
    fields = values_of({name: plan[name] for name in DATES if name in plan} | own, term_fields(plan))
    base = {name: value for name, value in plan.items() if name not in DATES}
    return read_sent(fields | {BASE: json.dumps(base), VERSION: str(program.version)})


def read_sent(sent: Mapping[str, str]) -> SentForm:
    """What a form has sent. Raises InvalidRequest for a form that is not the page's."""
    version = sent.get(VERSION, "")
    base = _base(sent.get(BASE, ""))
    fields = filled((name, text) for name, text in sent.items() if name in TERMS)
    terms = request_of({name: text for name, text in fields.items() if name != "name"})
    if not version.isascii() or not version.isdecimal() or len(version) > 9:
        raise InvalidRequest(NO_PLAN)
    named = {"name": fields["name"]} if "name" in fields else {}
    return SentForm(named | terms, None if base is None else laid_over(base, sent), int(version), sent.get(SEEN, ""))


def form_content(program: ProgramRecord, sent: SentForm | None = None) -> Body:
    """What the form shows: what was sent, else what the program is held to."""
    plan = sent.plan if sent else shown_plan(program, followed_plan(app_context(), program))
    terms: Mapping[str, Any] = sent.terms if sent else program.body
    sections = list(plan_sections(plan)) if plan is not None else []
    fields = [field for section in sections for group in section.groups for field in group.fields]
    return {
        "term_fields": term_fields(plan),
        "sections": sections,
        "values": values_of(terms, term_fields(plan)) | values_of({"plan": plan}, fields),
        "base": "" if plan is None else json.dumps(plan),
        "version": program.version,
    }


def planned_change(program: ProgramRecord, sent: SentForm) -> tuple[PlanChange | None, dict[str, str]]:
    """The change that the form says, None where it says none; and what is wrong, by field."""
    followed = followed_plan(app_context(), program)
    dates = {name: sent.terms[name] for name in DATES if name in sent.terms}
    is_replanned = sent.plan is not None and (
        sent.plan != shown_plan(program, followed) or any(sent.terms.get(name) != program.body.get(name) for name in DATES)
    )
    request = None if sent.plan is None or not is_replanned else sent.plan | dates
    terms = sent.terms if "caps" in sent.terms or not program.body.get("caps") else sent.terms | {"caps": {}}
    if terms.get("name") == in_order(str(program.body["name"])):  # as the page shows it
        terms = {name: value for name, value in terms.items() if name != "name"}
    stated = {name: value for name, value in terms.items() if is_replanned or value != program.body.get(name)}
    errors = _errors(sent.terms, request)
    if errors or (not stated and request is None):
        return None, errors
    try:
        plan = None if request is None else plan_of(team_context(), request, "/plan")
        given = CHANGE.load(stated)
        changed_body(program, given, plan)
    except DomainError as error:
        return None, refused_field(error)
    return PlanChange(given, plan, _digest([stated, request])), {}


def difference_of(program: ProgramRecord, change: PlanChange) -> Difference:
    """What a change does, in words: the fields that differ, and the plan's cost, finish and chances before and after."""
    return difference_to(program, changed_body(program, change.given, change.plan))


def in_words(difference: Difference) -> Difference:
    """A difference with its fields in words: the main run's tokens are "production, main, data: tokens"."""
    fields = tuple((field_in_words(path), *row) for path, *row in difference.fields)
    return replace(difference, fields=fields)  # type: ignore[arg-type]


def field_in_words(path: str) -> str:
    """A field's path without the parts that its other parts say as well."""
    return path_words(_UNSAID.sub("", f".{path}").lstrip("."))


def difference_to(program: ProgramRecord, body: Mapping[str, Any]) -> Difference:
    """What differs between a program and what would become of it, in words."""
    return in_words(_difference(program, program.body, body))


def difference_of_versions(program: ProgramRecord, before: int, after: int) -> Difference:
    """What differs between two versions of a program. Raises NotFound."""
    return _difference(program, *(body_of_version(app_context(), program, version) for version in (before, after)))


def _difference(program: ProgramRecord, *bodies: Mapping[str, Any]) -> Difference:
    plans = [followed_plan(app_context(), program, body) for body in bodies]
    figures = [figures_of(body, plan) for body, plan in zip(bodies, plans, strict=True)]
    stated = [stated_by(body, plan) for body, plan in zip(bodies, plans, strict=True)]
    return compare_answers(figures[0], figures[1], (stated[0], stated[1]))


def _errors(terms: Body, request: Body | None) -> dict[str, str]:
    wrong = {} if request is None else by_field(plan_errors(request, "/plan"))
    wrong = {name.removeprefix("plan.") if name.removeprefix("plan.") in DATES else name: text for name, text in wrong.items()}
    try:
        CHANGE.load(terms)
    except ValidationError as error:
        wrong |= field_errors(error.messages, CHANGE)
    return wrong


def _base(text: str) -> Body | None:
    """The plan that the form was made from; None where it had none."""
    if not text:
        return None
    try:
        base = strict_json.parse(text.encode())
    except strict_json.BadJson as error:
        raise InvalidRequest(NO_PLAN) from error
    if not isinstance(base, dict):
        raise InvalidRequest(NO_PLAN)
    return base


def _digest(what: Any) -> str:
    return hashlib.sha256(to_json(to_builtins(what)).encode()).hexdigest()[:32]
