"""States of providers, and price books made of their newest snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, insert, select, update

from service.domain.price_books import EMPTY_MANIFEST, BookManifest, SnapshotRef
from service.store.database import insert_into, insert_new, sanitize_text
from service.store.prices.lock import lock_books
from service.store.prices.team_prices import TeamPriceChanges, TeamPriceRows, save_team_prices
from service.store.tables import (
    length_of,
    price_book_parts,
    price_books,
    price_history,
    price_snapshots,
    provider_states,
    team_prices,
    team_quotes,
)

_TEXTS = ("last_error", "unconfigured")
QUOTES_FRESH_FOR_S = 365 * 86_400
"""How long a team's own quotes count as fresh [s], as price files do; a quote that has ended is not used."""
QUOTES_PREFIX = "quotes-"
"""Beginning of the names of snapshots of teams' own quotes."""


@dataclass(frozen=True, slots=True)
class ProviderState:
    """Outcome of the refreshes of a provider. Times are UTC.

    `snapshot` is the newest good one, `verified_at` when it was last seen to hold, `failures` the consecutive ones since, `retry_at` the
    end of the backoff, `unconfigured` what is missing to fetch. Counts and examples are those of the newest good answer; `suspicious`
    prices are served, quarantined ones are not. `configuration` is a digest of the settings of the last attempt.
    """

    provider: str
    snapshot: str | None = None
    fresh_for_s: int | None = None
    verified_at: datetime | None = None
    attempted_at: datetime | None = None
    failures: int = 0
    last_error: str | None = None
    last_error_at: datetime | None = None
    retry_at: datetime | None = None
    unconfigured: str | None = None
    offers: int = 0
    rejected_count: int = 0
    rejected: Sequence[Mapping[str, Any]] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    quarantined_count: int = 0
    quarantined: Sequence[Mapping[str, Any]] = ()
    suspicious_count: int = 0
    suspicious: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    configuration: str | None = None


class StaleWriteError(Exception):
    """Another answer of the provider was stored after the state that this one was compared with; nothing was written."""


class BookRows(TeamPriceRows):
    """Statements for providers' states and price books."""

    def provider_states(self) -> dict[str, ProviderState]:
        """State of every provider that was fetched, by name."""
        return {state.provider: state for state in self._list(ProviderState, select(provider_states).order_by(provider_states.c.provider))}

    def provider_state(self, provider: str) -> ProviderState:
        """State of a provider; an empty one if it was never fetched."""
        query = select(provider_states).where(provider_states.c.provider == provider)
        return self._find(ProviderState, query) or ProviderState(provider)

    def save_state(
        self,
        state: ProviderState,
        now: datetime,
        history: Sequence[Mapping[str, Any]] = (),
        since: ProviderState | None = None,
        owned: TeamPriceChanges | None = None,
    ) -> None:
        """Store a provider's state, the price history and the resulting book in one transaction.

        `since` is the state before the refresh. `owned` are all present team prices; None: unchanged. Raises StaleWriteError where another
        answer was stored after `since`.
        """
        with self._write() as connection:
            lock_books(connection)
            if since is not None:
                _check_newest(connection, since)
            if history:
                connection.execute(insert(price_history), list(history))
            if owned is not None:
                save_team_prices(connection, owned)
            _keep(connection, state)
            _make_book(connection, now)

    def current_manifest(self) -> BookManifest:
        """The newest book with its parts, and present team prices."""
        with self._snapshot() as connection:
            newest = _manifest(connection, price_books.c.seq == select(func.max(price_books.c.seq)).scalar_subquery())
            return replace(newest, teams=_team_snapshot_refs(connection, team_prices), quotes=_team_snapshot_refs(connection, team_quotes))

    def book_manifest(self, name: str) -> BookManifest:
        """The book of that name with its parts; a single snapshot is a book too. No parts where there is none.

        A team's snapshot is not found here, only by `team_snapshot_ref`.
        """
        with self._snapshot() as connection:
            found = _manifest(connection, price_books.c.name == name)
            return found if found.parts else _single(connection, name)

    def team_snapshot_ref(self, team: str, snapshot: str) -> SnapshotRef | None:
        """A team's snapshot, present or past; None where that team has none of that name."""
        with self._read() as connection:
            row = connection.execute(_ONE.where(price_snapshots.c.name == snapshot, price_snapshots.c.team == team)).first()
        if row is None:
            return None
        return _quoted(SnapshotRef(*row)) if snapshot.startswith(QUOTES_PREFIX) else SnapshotRef(*row)


_NOW_KNOWN = (provider_states.c.verified_at, provider_states.c.fresh_for_s, func.coalesce(provider_states.c.failures, 0))
_ONE = (
    select(price_snapshots.c.provider, price_snapshots.c.name, price_snapshots.c.taken_at, *_NOW_KNOWN)
    .outerjoin_from(price_snapshots, provider_states, provider_states.c.provider == price_snapshots.c.provider)
    .where(price_snapshots.c.complete)
)
"""Reference of each complete snapshot; a condition on the team must be added."""


def _manifest(connection: Connection, which: ColumnElement[bool]) -> BookManifest:
    parts, states, snapshots = price_book_parts.c, provider_states.c, price_snapshots.c
    query = select(parts.book, parts.provider, parts.snapshot, snapshots.taken_at, *_NOW_KNOWN).order_by(parts.provider)
    query = query.join_from(price_book_parts, price_books, price_books.c.name == parts.book)
    query = query.join(price_snapshots, snapshots.name == parts.snapshot)
    query = query.outerjoin(provider_states, states.provider == parts.provider).where(which)
    rows = connection.execute(query).all()
    return BookManifest(rows[0][0], tuple(SnapshotRef(*row[1:]) for row in rows)) if rows else EMPTY_MANIFEST


def _team_snapshot_refs(connection: Connection, table: Table) -> dict[str, SnapshotRef]:
    query = _ONE.add_columns(table.c.team).join(table, table.c.snapshot == price_snapshots.c.name)
    refs = {row[-1]: SnapshotRef(*row[:-1]) for row in connection.execute(query.order_by(table.c.team))}
    return refs if table is team_prices else {team: _quoted(ref) for team, ref in refs.items()}


def _quoted(ref: SnapshotRef) -> SnapshotRef:
    """A reference whose prices are dated by themselves: the state of the operator's price files does not concern them."""
    return replace(ref, verified_at=None, fresh_for_s=QUOTES_FRESH_FOR_S, failures=0)


def _single(connection: Connection, snapshot: str) -> BookManifest:
    row = connection.execute(_ONE.where(price_snapshots.c.name == snapshot, price_snapshots.c.team.is_(None))).first()
    return BookManifest(snapshot, (SnapshotRef(*row),)) if row else EMPTY_MANIFEST


def _check_newest(connection: Connection, since: ProviderState) -> None:
    """Raise StaleWriteError where another answer is newer; failures in between do not count."""
    columns = provider_states.c
    found = connection.execute(select(columns.snapshot, columns.verified_at).where(columns.provider == since.provider)).first()
    if (tuple(found) if found else (None, None)) != (since.snapshot, since.verified_at):
        raise StaleWriteError(f"another answer of {since.provider} was kept meanwhile")


def _keep(connection: Connection, state: ProviderState) -> None:
    values = asdict(state)
    for name in _TEXTS:  # a source may say anything, at any length
        values[name] = values[name] and sanitize_text(values[name])[: length_of(provider_states.c[name])]
    row = insert_into(connection, provider_states).values(values)
    connection.execute(row.on_conflict_do_update(index_elements=["provider"], set_=values))


def _make_book(connection: Connection, now: datetime) -> None:
    """Make the book of all present snapshots the newest; an equal earlier book returns under its name."""
    states = provider_states.c
    parts = connection.execute(select(states.provider, states.snapshot).where(states.snapshot.is_not(None)).order_by(states.provider)).all()
    digest = hashlib.sha256("\n".join(f"{part.provider}={part.snapshot}" for part in parts).encode()).hexdigest()
    newest = connection.execute(select(price_books.c.digest, price_books.c.seq).order_by(price_books.c.seq.desc()).limit(1)).first()
    if not parts or (newest and newest.digest == digest):
        return
    seq = newest.seq + 1 if newest else 1
    known = update(price_books).where(price_books.c.digest == digest).values(seq=seq)
    if connection.execute(known).rowcount:
        return
    name = parts[0].snapshot if len(parts) == 1 else f"prices-{now:%Y-%m-%d}-{digest[:10]}"
    connection.execute(insert(price_books).values(name=name, digest=digest, seq=seq, made_at=now))
    insert_new(connection, price_book_parts, [{"book": name, "provider": part.provider, "snapshot": part.snapshot} for part in parts])
