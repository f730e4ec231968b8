"""Migration of a database to this release's schema, under a lock, which Alembic lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from filelock import FileLock
from sqlalchemy import Engine, text

_LOCK_KEY = 0x0071_6C61_79  # "outlay", so that no other program's advisory lock is met by chance

_LONG = {"outlay_long_statements": True}
"""Statements take as long as they take: the wait for another process's migration, or a large table's."""


def alembic_config() -> Config:
    """Alembic's configuration, without a file: the migrations are the package `migrations`."""
    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    return config


@cache
def revisions() -> tuple[str, ...]:
    """Names of all migrations of this release, oldest first."""
    script = ScriptDirectory.from_config(alembic_config())
    return tuple(reversed([found.revision for found in script.walk_revisions()]))


def losses(engine: Engine, revision: str) -> tuple[tuple[str, str], ...]:
    """What going back to a revision drops or leaves unread, by the revision that is taken back, the newest first."""
    script, known = ScriptDirectory.from_config(alembic_config()), revisions()
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    if current not in known or revision not in known:
        return ()
    back = reversed(known[known.index(revision) + 1 : known.index(current) + 1])
    return tuple((name, " ".join(str(script.get_revision(name).module.downgrade.__doc__).split())) for name in back)


def upgrade(engine: Engine) -> None:
    """Apply every missing migration. Several processes may call it at once."""
    migrate_to(engine, revisions()[-1])


def migrate_to(engine: Engine, revision: str) -> None:
    """Apply every missing migration up to `revision`, or take back those after it, with what only they can store.

    `revision` is one of `revisions()`. Raises LookupError for a database that a later release has migrated.
    """
    config, known = alembic_config(), revisions()
    with _migration_lock(engine), engine.connect().execution_options(outlay_write=True, **_LONG) as connection:
        current = MigrationContext.configure(connection).get_current_revision()
        connection.rollback()
        if current not in (None, *known):
            raise LookupError(
                f"the database has revision {current}, which this release does not know: take it back with the release it is of"
            )
        if current == revision:
            return
        config.attributes["connection"] = connection
        is_later = current is not None and known.index(current) > known.index(revision)
        (command.downgrade if is_later else command.upgrade)(config, revision)


@contextmanager
def _migration_lock(engine: Engine) -> Iterator[None]:
    if engine.dialect.name == "sqlite":
        path = Path(str(engine.url.database))
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.migrate.lock"):
            yield
        return
    # Held by a transaction, not by a session: through a pooler the next statement may run in another session.
    with engine.connect().execution_options(**_LONG) as connection, connection.begin():
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        yield
