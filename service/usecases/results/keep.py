"""Kept results for their callers: keep, find, list, delete, and the record for an audit."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Any

from service.context import AppContext
from service.domain.errors import NotFound
from service.domain.idempotency import IdempotencyRecord
from service.domain.results import ResultDetail, ResultFilter, ResultRecord, offers_in
from service.domain.teams import Principal
from service.formats.signed_records import attach, join_record, sign
from service.serialization import to_builtins, to_json
from service.usecases.results.signing_keys import signing_key
from service.usecases.storage import check_storage
from service.usecases.tracking.programs import NOT_OURS

Body = Mapping[str, Any]
RECORD_FORMAT = "outlay-record-1"
TITLE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked and kept: the request as sent, and the function that answers it in JSON values."""

    kind: str
    request: Body
    answer: Callable[[AppContext], Body]
    title: str | None = None
    expires_in_days: int | None = None


def keep(
    context: AppContext, team_context: AppContext, who: Principal, asked: Question, idempotency: IdempotencyRecord | None = None
) -> ResultDetail:
    """Answer a question with the team's prices and keep the answer with its signed record.

    Raises DomainErrors with pointers into the request, StorageBudgetUsedUp, IdempotentReplay, IdempotencyKeyReused and StoreUnavailable.
    """
    context.store.check_new(idempotency)
    check_storage(context, who.team)
    answer = asked.answer(team_context)
    answer_json = to_json(answer).encode()
    row = _row(who, asked, answer, hashlib.sha256(answer_json).hexdigest(), context.clock())
    offers = offers_in(answer)
    record_json = to_json(_record(row, asked.request, offers)).encode()
    signature = sign(join_record(record_json, answer_json), signing_key(context.settings.data_dir))
    return context.store.create_result(ResultDetail(row, asked.request, offers, answer_json, record_json, signature), idempotency)


def find_result(context: AppContext, who: Principal, result_id: str) -> ResultDetail:
    """A result of the caller's team. Raises NotFound, also for another team's and for an expired one."""
    found = context.store.result(who.team, result_id, context.clock())
    if found is None:
        raise NotFound(NOT_OURS.format(what="result"))
    return found


def check_result(context: AppContext, who: Principal, result_id: str) -> None:
    """Raise NotFound where the caller's team has no result of this id; its answer is not read."""
    if not context.store.has_result(who.team, result_id, context.clock()):
        raise NotFound(NOT_OURS.format(what="result"))


def list_results(context: AppContext, who: Principal, wanted: ResultFilter, before: int, limit: int) -> list[ResultRecord]:
    """The team's results with a number below `before` (0: all), the newest first."""
    return context.store.results(who.team, before, limit, context.clock(), wanted)


def delete_result(context: AppContext, who: Principal, result_id: str) -> None:
    """Delete a result with its links. Raises NotFound."""
    check_result(context, who, result_id)
    context.store.delete_result(who.team, result_id, context.clock())


def forget_results(context: AppContext) -> int:
    """Delete expired results and links; returns the number of results."""
    return context.store.delete_expired_results(context.clock())


def signed_record(result: ResultDetail) -> str:
    """The record of a result as JWS in compact serialization, as it was signed when the result was kept."""
    return attach(result.signature, join_record(result.record_json, result.answer_json))


def _row(who: Principal, asked: Question, answer: Body, sha256: str, now: datetime) -> ResultRecord:
    return ResultRecord(
        id=str(uuid.uuid4()),
        team=who.team,
        number=0,  # the store numbers
        kind=asked.kind,
        title=asked.title or shorten(_summary(answer), TITLE_LENGTH, placeholder=" …"),
        created_at=now,
        expires_at=None if asked.expires_in_days is None else now + timedelta(days=asked.expires_in_days),
        sha256=sha256,
        price_snapshot=answer["price_snapshot"],
        engine_version=answer["engine_version"],
    )


def _summary(answer: Body) -> str:
    summary = answer["summary"]
    return str(summary["text"] if isinstance(summary, Mapping) else summary)


def _record(row: ResultRecord, request: Body, offers: tuple[Body, ...]) -> dict[str, Any]:
    """Everything of a record but the answer."""
    stated = to_builtins(row)
    request_sha256 = hashlib.sha256(to_json(request).encode()).hexdigest()
    return {
        "format": RECORD_FORMAT,
        **{name: stated[name] for name in ("id", "kind", "title", "created_at", "price_snapshot", "engine_version")},
        "request_sha256": request_sha256,
        "answer_sha256": row.sha256,
        "request": request,
        "offers": offers,
    }
