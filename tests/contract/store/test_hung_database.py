"""A PostgreSQL that stops answering on its open connections, as a frozen server or a dead network path does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from sqlalchemy import make_url, text

from service.domain.errors import StoreUnavailable
from service.store import Store, hang_guard, watched_connection
from tests.conftest import wait_for


class FreezingProxy:
    """Passes bytes between a TCP port and PostgreSQL's socket, until it is frozen; what it holds back arrives after that."""

    def __init__(self, server: tuple[int, object]) -> None:
        self._server = server
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Stop passing bytes on; connections stay open."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Go on."""
        self._flowing.set()

    def close(self) -> None:
        """End everything."""
        self.thaw()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                family, address = self._server
                server = socket.socket(family)
                server.connect(address)
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[FreezingProxy]:
    """A proxy before the PostgreSQL of the tests."""
    url = make_url(postgres_url)
    folder = url.query.get("host") or url.host
    port = url.port or 5432
    local = isinstance(folder, str) and folder.startswith("/")
    server = (socket.AF_UNIX, f"{folder}/.s.PGSQL.{port}") if local else (socket.AF_INET, (url.host, port))
    with closing(FreezingProxy(server)) as made:
        yield made


@pytest.fixture
def store(proxy: FreezingProxy, postgres_url: str) -> Iterator[Store]:
    """A store that reaches its database through the proxy only."""
    url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port, query={})
    with closing(Store(url.render_as_string(hide_password=False))) as made:
        yield made


def test_statements_on_a_hung_database_are_given_up(proxy: FreezingProxy, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """They raise StoreUnavailable instead of waiting for good, and so do later ones; all works again when the database does."""
    monkeypatch.setattr(watched_connection, "PATIENCE_S", 0.1)
    monkeypatch.setattr(hang_guard, "PING_S", 0.3)
    assert store.any_key() is False
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
