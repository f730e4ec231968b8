"""The store: jobs, heartbeats, prices, teams, tracking, scenarios, kept results, audit. SQLite or PostgreSQL; the only package with SQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from service.domain.errors import StoreNotReady, StoreUnavailable
from service.domain.price_books import EMPTY_MANIFEST, BookManifest
from service.domain.tracking.feedback import RunOutcome
from service.store.audit import AuditRows
from service.store.backup import BackupRows, StoreNotEmpty
from service.store.database import translate_db_errors
from service.store.deliveries import ClaimedAlert, ClaimedDelivery, ClaimedEnd, DeliveryRows
from service.store.idempotency import IdempotencyRows
from service.store.jobs import MAX_ATTEMPTS, JobRows
from service.store.keys import KeyRows
from service.store.metrics import Backlog, MetricRows
from service.store.prices.history import HistoryFilter, HistoryRows
from service.store.prices.price_books import BookRows, ProviderState, StaleWriteError
from service.store.prices.price_files import PriceFileRecord, PriceFileRows
from service.store.prices.pruning import PrunedPrices, PruneRows
from service.store.prices.snapshots import PriceRows
from service.store.prices.team_prices import TeamPriceChanges, TeamPrices
from service.store.results.results import ResultRows
from service.store.scenarios.scenarios import ChunkClaim, NewScenario, OpenWork, ScenarioRows, TeamQuotaReached
from service.store.secret_loss import LostSecrets, SecretLossRows
from service.store.slack import SlackRows
from service.store.tables import HEAD
from service.store.tracking.alerts import AlertRows, DueEvaluation
from service.store.tracking.archiving import ArchiveRows, ProgramLog
from service.store.tracking.events import AppendedEvents, EventRows
from service.store.tracking.feedback import FeedbackRows
from service.store.tracking.figures import DueFigures, FigureRows, StoredFigures
from service.store.tracking.imports import ImportRows, NewImport
from service.store.tracking.programs import TrackRows
from service.store.tracking.projections import ProjectionRows, RollUpHour, RunLog
from service.store.web_sessions import WebSessionRows

__all__ = [
    "MAX_ATTEMPTS",
    "AppendedEvents",
    "Backlog",
    "ChunkClaim",
    "ClaimedAlert",
    "ClaimedDelivery",
    "ClaimedEnd",
    "DueEvaluation",
    "DueFigures",
    "HistoryFilter",
    "LostSecrets",
    "NewImport",
    "NewScenario",
    "OpenWork",
    "PriceFileRecord",
    "ProgramLog",
    "ProviderState",
    "PrunedPrices",
    "RollUpHour",
    "RunLog",
    "StaleWriteError",
    "Store",
    "StoreNotEmpty",
    "StoredFigures",
    "TeamPriceChanges",
    "TeamPrices",
    "TeamQuotaReached",
]

_Found = TypeVar("_Found")


class Store(
    JobRows,
    PriceRows,
    BookRows,
    PriceFileRows,
    HistoryRows,
    PruneRows,
    KeyRows,
    IdempotencyRows,
    TrackRows,
    EventRows,
    ImportRows,
    ProjectionRows,
    ArchiveRows,
    AlertRows,
    DeliveryRows,
    ScenarioRows,
    FeedbackRows,
    FigureRows,
    ResultRows,
    BackupRows,
    SlackRows,
    SecretLossRows,
    AuditRows,
    MetricRows,
    WebSessionRows,
):
    """All statements. Every method is one short transaction and takes and returns domain objects; raises StoreUnavailable."""

    def migrate(self) -> None:
        """Migrate the schema to this release, under a lock. The server only checks it."""
        from service.store.migration import upgrade

        with translate_db_errors():
            upgrade(self.engine)

    def migrate_to(self, revision: str) -> None:
        """Migrate the schema to a revision, an older release's too. Raises LookupError for a schema of a later release."""
        from service.store.migration import migrate_to

        with translate_db_errors():
            migrate_to(self.engine, revision)

    def current_manifest(self) -> BookManifest:
        """The newest book with its parts; an empty manifest where there are no tables yet."""
        return self._read_unless_empty("prices", super().current_manifest, EMPTY_MANIFEST)

    def book_manifest(self, name: str) -> BookManifest:
        """A recorded book with its parts; an empty manifest where there are no tables yet."""
        return self._read_unless_empty("prices", partial(super().book_manifest, name), EMPTY_MANIFEST)

    def run_outcomes(self, team: str) -> tuple[RunOutcome, ...]:
        """Outcomes of a team, newest first; none where there are no tables yet."""
        return self._read_unless_empty("run outcomes", partial(super().run_outcomes, team), ())

    def _read_unless_empty(self, what: str, read: Callable[[], _Found], empty: _Found) -> _Found:
        """What is read; `empty` where the database does not exist yet or nobody has made its tables."""
        if self.absent():
            return empty
        try:
            return read()
        except (StoreUnavailable, DBAPIError) as error:
            if self._revision() is None:
                return empty
            raise StoreUnavailable(f"{what} cannot be read: {error}") from error

    def check_head(self) -> None:
        """Raise StoreNotReady unless the schema is this release's."""
        found = self._revision()
        if found != HEAD:
            raise StoreNotReady(f"the database is at {found or 'no schema'}, this release needs {HEAD}; `outlay serve` migrates it")

    def _revision(self) -> str | None:
        """The schema's revision; None where nobody has made its tables. Raises StoreUnavailable."""
        with self._read() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return str(connection.scalar(text("SELECT version_num FROM alembic_version")))
