"""/buy-or-rent/quotes: a vendor's price sheet, how it is read and corrected, and its prices as quotes of the question."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import needs, principal, team_context
from service.api.http.request_body import LARGE_BODY_BYTES, body_limit, read_files, read_form
from service.domain.errors import DomainError, InvalidRequest
from service.formats.field_words import path_words
from service.formats.imports.quotes.sheets import MAX_FILE_BYTES
from service.serialization import to_builtins
from service.usecases.prices.known_names import find_accelerators
from service.usecases.prices.price_files import keep_price_file, list_price_files, read_price_file
from service.web.asking import present_fields, refused_field
from service.web.blueprint import blueprint
from service.web.forms import FormField, field_errors, filled
from service.web.quotes_form import (
    CHOSEN,
    MAPPING,
    MOST_QUOTES,
    REQUEST,
    Body,
    cell_of,
    column_field,
    correction_fields,
    mapping_of,
    offered,
    question_fields,
    usual_choice,
    with_quotes,
    wrong_choice,
)
from service.web.rendering import page, query_string

FILE, CONTENT = "file", "content_base64"
ROWS_SHOWN = 200
LONGEST_FILE_NAME = 200
DEMAND_FIELDS = (
    FormField("demand.count", "How many are needed", "256", "accelerators"),
    FormField("demand.years", "For", "3", "years"),
    FormField("own.0.capex_usd_per_accelerator", "Buying one costs", "left out: rents alone", "USD"),
)
"""What the verdict needs besides prices; each is asked for where the question does not say it yet."""
NAMED_SETTING = re.compile(r": state mapping\.[\w.]{1,100}")
"""How a refusal names the field of the API, which the page has as a question instead."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A vendor's file as it was sent with its form, how it is read, and what is wrong by field; no `reading` where it cannot be read."""

    content: bytes
    file_name: str
    fields: Mapping[str, str]
    reading: Body | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


@blueprint.get("/buy-or-rent/quotes")
def show_quotes() -> Response:
    """The form that takes a vendor's file, and the files that the team keeps"""
    return _quotes_page(None)


@blueprint.post("/buy-or-rent/quotes")
@body_limit(LARGE_BODY_BYTES)
@needs("write")
def read_quotes() -> BaseResponse:
    """How a vendor's file is read; its prices as quotes of the question, or kept as the team's own"""
    given = filled(read_form().items())
    sheet = _read(given)
    action, question = given.get("do", ""), _question(given)
    if sheet.reading is None or sheet.errors or action not in ("use", "keep"):
        return _quotes_page(sheet, question=question)
    if action == "keep":
        return _keep(sheet)
    chosen = [row for row in offered(sheet.reading["proposal"]["rows"]) if f"{CHOSEN}{cell_of(row)}" in given]
    wrong = wrong_choice(chosen, question)
    if wrong:
        return _quotes_page(sheet, {cell_of(row) for row in chosen}, wrong, question=question)
    return redirect(f"{url_for('web.show_buy_or_rent')}?{query_string(with_quotes(question, chosen))}", HTTPStatus.SEE_OTHER)


def _question(given: Mapping[str, str]) -> dict[str, str]:
    """The question of the address, with what the form says of the demand."""
    return present_fields() | {field.name: given[field.name] for field in DEMAND_FIELDS if field.name in given}


def _keep(sheet: Sheet) -> BaseResponse:
    try:
        keep_price_file(team_context(), principal(), sheet.content, _loaded(sheet) | {"sha256": (sheet.reading or {})["sha256"]})
    except InvalidRequest as error:
        return _quotes_page(sheet, set(), error.message)
    address = url_for("web.show_quotes")
    return redirect(f"{address}?{query_string(present_fields())}#kept", HTTPStatus.SEE_OTHER)


def _read(given: Mapping[str, str]) -> Sheet:
    """The file of the present form, which is a new one or comes with the corrections of one that has been read."""
    sent = read_files().get(FILE)
    fields = {name: text for name, text in given.items() if name.startswith(MAPPING)} if sent is None else {}
    name, content = sent or (given.get("file_name", ""), _decoded(given.get(CONTENT, "")))
    sheet = Sheet(content, _printable(name), fields)
    if not content:
        return Sheet(content, sheet.file_name, {}, errors={FILE: "Choose the vendor's file: CSV or XLSX."})
    reading, errors = _reading(sheet)
    if reading is None and fields:
        reading, _ = _reading(Sheet(content, sheet.file_name, {}))
    if reading is None:
        errors = {FILE: next(iter(errors.values()), "The file cannot be read.")}
    return Sheet(content, sheet.file_name, fields, reading, errors)


def _reading(sheet: Sheet) -> tuple[Body | None, dict[str, str]]:
    """How the file is read with the form's corrections, or what is wrong, by field."""
    try:
        found: Body = to_builtins(read_price_file(team_context(), sheet.content, _loaded(sheet)))
    except ValidationError as error:
        return None, field_errors(error.messages, REQUEST)
    except DomainError as error:
        return None, refused_field(error)
    return found, {}


def _loaded(sheet: Sheet) -> Body:
    """The request that the form says, as the use case takes it. Raises ValidationError."""
    named = {"file_name": sheet.file_name} if sheet.file_name else {}
    loaded: Body = REQUEST.load({CONTENT: "", "mapping": mapping_of(sheet.fields), **named})
    return {name: value for name, value in loaded.items() if name not in (CONTENT, "confirm")}


def _decoded(text: str) -> bytes:
    """The file that the form carries; nothing where it was changed on the way."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _printable(name: str) -> str:
    """The last part of a file's name, without what cannot be printed."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(character for character in last if character.isprintable())[-LONGEST_FILE_NAME:].strip()


def _quotes_page(
    sheet: Sheet | None, chosen: set[str] | None = None, wrong: str = "", *, question: Mapping[str, str] | None = None
) -> Response:
    question = present_fields() if question is None else question
    content: Body = {
        "demand_fields": [field for field in DEMAND_FIELDS if field.name not in question],
        "query": query_string(question),
        "demanded": question.get("demand.accelerator", ""),
        "accelerators": [accelerator.name for accelerator in find_accelerators({})],
        "megabytes": MAX_FILE_BYTES // 2**20,
        "kept_files": list_price_files(team_context(), principal()),
        "may_write": principal().may("write"),
        "file_error": "" if sheet is None else sheet.errors.get(FILE, ""),
        "reading": None if sheet is None else sheet.reading,
        "wrong_choice": wrong,
    }
    if sheet is not None and sheet.reading is not None:
        content |= _reading_content(sheet, sheet.reading, question.get("demand.accelerator", ""), chosen)
    bad = wrong or (sheet is not None and sheet.errors)
    return page("buy_or_rent/quotes.html", HTTPStatus.UNPROCESSABLE_ENTITY if bad else HTTPStatus.OK, **content)


def _reading_content(sheet: Sheet, reading: Body, demanded: str, chosen: set[str] | None) -> Body:
    proposal = reading["proposal"]
    questions = [entry | {"fields": list(question_fields(entry))} for entry in proposal["questions"]]
    asked = {field.name for entry in questions for field in entry["fields"]}
    corrections = [field for field in correction_fields(proposal) if field.name not in asked]
    columns = [entry | {"is": column_field(entry), "shown": entry["field"] or ""} for entry in proposal["columns"]]
    named = asked | {field.name for field in corrections} | {entry["is"].name for entry in columns}
    headers = {entry["column"]: entry["header"] for entry in proposal["columns"]}
    taken = usual_choice(proposal["rows"], demanded) if chosen is None else chosen
    rows = [_row(row, headers, taken) for row in proposal["rows"][:ROWS_SHOWN]]
    return {
        "fields": sheet.fields,
        "errors": sheet.errors,
        "other_errors": [message for name, message in sheet.errors.items() if name not in named],
        "carried": {name: (path_words(name.removeprefix(MAPPING)), text) for name, text in sheet.fields.items() if name not in named},
        "content": base64.b64encode(sheet.content).decode(),
        "file_name": sheet.file_name,
        "questions": questions,
        "columns": columns,
        "settings": proposal["settings"],
        "warnings": proposal["warnings"],
        "corrections": corrections,
        "corrections_open": any(field.name in sheet.fields or field.name in sheet.errors for field in corrections),
        "rows": rows,
        "left_out": len(proposal["rows"]) - len(rows),
        "counts": proposal["counts"],
        "most_quotes": MOST_QUOTES,
    }


def _row(row: Mapping[str, Any], headers: Mapping[str, str], taken: set[str]) -> Body:
    """A row of the reading with its cell, the heading above it, and whether its price is taken."""
    cell = cell_of(row)
    terms = (row.get("offer") or {}).get("terms") or {}
    reasons = [NAMED_SETTING.sub("", reason) for reason in row["reasons"]]
    shown = {"cell": cell, "reasons": reasons, "header": headers.get(row["column"] or "", ""), "until": terms.get("valid_until", "")}
    return {**row, **shown, "name": f"{CHOSEN}{cell}", "taken": cell in taken}
