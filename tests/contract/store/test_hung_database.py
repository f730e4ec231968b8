"""A PostgreSQL that stops answering on its open connections, as a frozen server or a dead network path does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace

import pytest
from sqlalchemy import text

from service import create_app
from service.api.resources.training.estimate import EXAMPLE
from service.config import Settings
from service.domain.errors import StoreUnavailable
from service.store import Store, hang_guard, watched_connection
from service.usecases import keys
from service.usecases.keys import make_key
from tests.support.freezing_proxy import FreezingProxy
from tests.support.servers import DEADLINE_S, wait_for


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[FreezingProxy]:
    """A proxy before the PostgreSQL of the tests."""
    with closing(FreezingProxy.before(postgres_url)) as made:
        yield made


@pytest.fixture
def store(proxy: FreezingProxy, postgres_url: str) -> Iterator[Store]:
    """A store that reaches its database through the proxy only."""
    with closing(Store(proxy.url(postgres_url))) as made:
        yield made


def test_statements_on_a_hung_database_are_given_up(proxy: FreezingProxy, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """They raise StoreUnavailable instead of waiting for good, and so do later ones; all works again when the database does."""
    assert store.any_key() is False
    monkeypatch.setattr(watched_connection, "PATIENCE_S", 0.1)
    monkeypatch.setattr(hang_guard, "PING_S", 0.3)
    proxy.freeze()
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            store.any_key()
    proxy.thaw()
    wait_for(lambda: works(store), "the store to be used again")


def test_a_slow_statement_is_waited_for_while_the_database_answers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that takes several times the patience is no hung database."""
    monkeypatch.setattr(watched_connection, "PATIENCE_S", 0.05)
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT 1 FROM pg_sleep(0.5)")) == 1


def works(store: Store) -> bool:
    """Whether a statement is answered."""
    with suppress(StoreUnavailable):
        return store.any_key() is False
    return False


def test_a_pool_that_is_used_up_is_no_hung_database(store: Store) -> None:
    """The ping has a connection of its own."""
    with ExitStack() as stack:
        for _ in range(15):
            stack.enter_context(store.engine.connect())
        assert store.ping(3.0)


def test_a_key_goes_on_with_estimates_while_the_database_hangs(
    proxy: FreezingProxy, postgres_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was read before; what needs the database is refused."""
    settings.data_dir.mkdir()
    app = create_app(replace(settings, database_url=proxy.url(postgres_url)))
    context = app.extensions["context"]
    with closing(context.store) as store:
        store.migrate()
        _, token = make_key(context, "vision", "ci", ["read"], "90d")
        client, bearer = app.test_client(), {"Authorization": f"Bearer {token}"}
        assert client.post("/v1/estimate", json=EXAMPLE, headers=bearer).status_code == 200
        monkeypatch.setattr(keys, "KEY_CACHE_S", 1e-6)
        monkeypatch.setattr(keys, "OUTAGE_KEY_S", DEADLINE_S)
        monkeypatch.setattr(watched_connection, "PATIENCE_S", 0.1)
        monkeypatch.setattr(hang_guard, "PING_S", 0.3)
        proxy.freeze()
        answers = [client.post("/v1/estimate", json=EXAMPLE, headers=bearer).status_code for _ in range(3)]
        tracked = client.get("/v1/track/programs", headers=bearer).status_code
        proxy.thaw()
        wait_for(lambda: client.get("/v1/track/programs", headers=bearer).status_code == 200, "the database to be used again")
    assert (answers, tracked) == ([200] * 3, 503)
