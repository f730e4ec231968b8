"""Kept results: written once, read, listed and deleted, never changed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, delete, func, insert, or_, select

from service.domain.audit import Change
from service.domain.idempotency import IdempotencyRecord
from service.domain.results import MOST_LINKS, ResultDetail, ResultFilter, ResultLink, ResultRecord
from service.domain.teams import DEFAULT_TEAM
from service.store.audit import record_change
from service.store.database import columns_of, insert_new
from service.store.idempotency import store_response
from service.store.results.tables import result_links, results
from service.store.secrets import SecretRows
from service.store.tables import teams

_RECORD = columns_of(results, ResultRecord)
_LINK = columns_of(result_links, ResultLink)
_NO_FILTER = ResultFilter()


class ResultRows(SecretRows):
    """The part of the store that holds kept results. An expired result is found by no statement, deleted or not."""

    def create_result(self, new: ResultDetail, idempotency: IdempotencyRecord | None = None) -> ResultDetail:
        """Keep a result under the next number of its team. Raises IdempotentReplay and IdempotencyKeyReused."""
        team = new.row.team
        with self._write() as connection:
            remembered = store_response(connection, idempotency)
            if team == DEFAULT_TEAM:
                insert_new(connection, teams, [{"id": team, "name": team, "created_at": new.row.created_at}])
            # Numbers are assigned one at a time: PostgreSQL locks the team, SQLite has a single writer.
            connection.execute(select(teams.c.id).where(teams.c.id == team).with_for_update())
            last = connection.scalar(select(func.coalesce(func.max(results.c.number), 0)).where(results.c.team == team))
            kept = replace(new, row=replace(new.row, number=int(last or 0) + 1))
            connection.execute(insert(results).values(_values(kept)))
            record_change(connection, Change(team, "result.keep", kept.row.id, None, asdict(kept.row)), kept.row.created_at)
            remembered(kept)
        return kept

    def result(self, team: str, result_id: str, now: datetime) -> ResultDetail | None:
        """A team's result; None where the team has none of this id."""
        return self._detail(_detail_query().where(results.c.team == team, results.c.id == result_id, _live(results.c.expires_at, now)))

    def linked_result(self, result_id: str, digest: str, now: datetime) -> ResultDetail | None:
        """The result that a link with this digest of its token opens; None where there is no such link any more."""
        opens = and_(result_links.c.digest == digest, results.c.id == result_id)
        live = and_(_live(results.c.expires_at, now), _live(result_links.c.expires_at, now))
        return self._detail(_detail_query().join(result_links, result_links.c.result == results.c.id).where(opens, live))

    def has_result(self, team: str, result_id: str, now: datetime) -> bool:
        """Whether the team has a result of this id."""
        query = select(results.c.id).where(results.c.team == team, results.c.id == result_id, _live(results.c.expires_at, now))
        return self._scalar(query) is not None

    def results(self, team: str, before: int, limit: int, now: datetime, wanted: ResultFilter = _NO_FILTER) -> list[ResultRecord]:
        """A team's results with a number below `before` (0: all), the newest first; no answer is read."""
        query = select(*_RECORD).where(results.c.team == team, _live(results.c.expires_at, now), *_conditions(wanted))
        if before:
            query = query.where(results.c.number < before)
        return self._list(ResultRecord, query.order_by(results.c.number.desc()).limit(limit))

    def delete_result(self, team: str, result_id: str, now: datetime) -> bool:
        """Delete a team's result with its links; False where the team has none of this id."""
        with self._write() as connection:
            gone = delete(results).where(results.c.team == team, results.c.id == result_id).returning(*_RECORD)
            row = connection.execute(gone).mappings().first()
            if row is not None:
                record_change(connection, Change(team, "result.delete", result_id, dict(row), None), now)
            return row is not None

    def delete_expired_results(self, now: datetime) -> int:
        """Delete results and links that have expired; returns the number of results."""
        self._change(delete(result_links).where(result_links.c.expires_at <= now))
        return self._change(delete(results).where(results.c.expires_at <= now))

    def create_link(self, team: str, result_id: str, link: ResultLink, digest: str, idempotency: IdempotencyRecord | None = None) -> bool:
        """Store a link to a team's result; False where that has MOST_LINKS already or is not there."""
        mine = and_(results.c.team == team, results.c.id == result_id)
        with self._write() as connection:
            remembered = store_response(connection, idempotency, self._sealing(connection))
            there = connection.scalar(select(results.c.id).where(mine).with_for_update())
            count = connection.scalar(select(func.count()).select_from(result_links).where(result_links.c.result == result_id))
            if there is None or int(count or 0) >= MOST_LINKS:
                return False
            values = {column.name: getattr(link, column.name) for column in _LINK}
            connection.execute(insert(result_links).values(values | {"result": result_id, "digest": digest}))
            record_change(connection, Change(team, "result_link.create", link.id, None, values), link.created_at)
            remembered(link)
        return True

    def links(self, result_id: str, now: datetime) -> list[ResultLink]:
        """The links of a result that open it, oldest first."""
        query = select(*_LINK).where(result_links.c.result == result_id, _live(result_links.c.expires_at, now))
        return self._list(ResultLink, query.order_by(result_links.c.created_at, result_links.c.id))

    def delete_link(self, team: str, result_id: str, link_id: str, now: datetime) -> bool:
        """Delete a link of a team's result; False where it has none of this id."""
        with self._write() as connection:
            gone = delete(result_links).where(result_links.c.result == result_id, result_links.c.id == link_id).returning(*_LINK)
            row = connection.execute(gone).mappings().first()
            if row is not None:
                record_change(connection, Change(team, "result_link.delete", link_id, dict(row), None), now)
            return row is not None

    def _detail(self, query: Select[Any]) -> ResultDetail | None:
        with self._read() as connection:
            row = connection.execute(query).mappings().first()
        return _detail(row) if row else None


def _detail_query() -> Select[Any]:
    return select(*_RECORD, results.c.answer, results.c.record, results.c.signature)


def _live(expires_at: ColumnElement[Any], now: datetime) -> ColumnElement[bool]:
    return or_(expires_at.is_(None), expires_at > now)


def _conditions(wanted: ResultFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.kind is not None:
        found.append(results.c.kind == wanted.kind)
    if wanted.title is not None:
        found.append(results.c.title_folded.contains(wanted.title.casefold(), autoescape=True))
    if wanted.expires_before is not None:
        found.append(results.c.expires_at < wanted.expires_before)
    return found


def _values(kept: ResultDetail) -> dict[str, Any]:
    stated = {column.name: getattr(kept.row, column.name) for column in _RECORD}
    blobs = {"record": zlib.compress(kept.record_json), "answer": zlib.compress(kept.answer_json)}
    return stated | blobs | {"title_folded": kept.row.title.casefold(), "signature": kept.signature}


def _detail(row: RowMapping) -> ResultDetail:
    record_json = zlib.decompress(row["record"])
    record: Mapping[str, Any] = json.loads(record_json)
    return ResultDetail(
        row=ResultRecord(**{column.name: row[column.name] for column in _RECORD}),
        request=record["request"],
        offers=tuple(record["offers"]),
        answer_json=zlib.decompress(row["answer"]),
        record_json=record_json,
        signature=row["signature"],
    )
