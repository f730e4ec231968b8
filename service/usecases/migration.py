"""The database's schema: to this release, or back to an older one."""

from __future__ import annotations

from service.context import AppContext
from service.domain.errors import InvalidRequest


def migrate(context: AppContext, revision: str | None) -> str:
    """Migrate to a revision, an older release's too; None: the newest. Returns its name.

    Raises InvalidRequest for an unknown revision, and for a database that a later release has migrated; StoreUnavailable.
    """
    from service.store.migration import revisions

    known = revisions()
    target = revision or known[-1]
    if target not in known:
        raise InvalidRequest(f"{target!r} is no revision of the schema; there are {', '.join(known)}", "/to")
    if context.store.absent():
        context.settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        context.store.migrate_to(target)
    except LookupError as error:
        raise InvalidRequest(str(error), "") from error
    return target


def warnings_of(context: AppContext, revision: str | None) -> tuple[str, ...]:
    """What the older release of a revision does not have or cannot read, a sentence for each revision that is taken back."""
    from service.store.migration import losses

    if revision is None or context.store.absent():
        return ()
    return tuple(f"{name} is taken back: {text}" for name, text in losses(context.store.engine, revision))
