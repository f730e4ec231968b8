"""`outlay migrate`."""

from __future__ import annotations

from contextlib import closing

from service.config import Settings
from service.store import Store
from service.store.migration import revisions
from tests.unit.cli.invoke import output_of, run


def test_it_makes_the_database_and_goes_back_a_release(settings: Settings) -> None:
    """Twice is as good as once; an older schema is named by its revision; what is no revision is refused with those there are."""
    newest, older = revisions()[-1], revisions()[-2]
    for _ in range(2):
        assert output_of(settings, "migrate").rstrip().endswith(f"is {newest}")
    back = run(settings, "migrate", "--to", older)
    assert back.stdout.rstrip().endswith(f"is {older}")
    assert f"warning: {newest} is taken back: Drop " in back.stderr
    refused = run(settings, "migrate", "--to", "9999")
    assert (refused.exit_code, f"{older}, {newest}" in refused.output) == (1, True)


def test_a_later_release_is_left_alone(settings: Settings) -> None:
    """A database that another release has migrated further is not touched, and the message says which one can."""
    output_of(settings, "migrate")
    with closing(Store(settings.database_url)) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    result = run(settings, "migrate")
    assert (result.exit_code, "take it back with the release it is of" in result.output) == (1, True)
