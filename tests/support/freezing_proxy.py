"""A server that stops answering on its open connections, as a frozen one or a dead network path does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from sqlalchemy import URL, make_url


class FreezingProxy:
    """Passes bytes between a TCP port and a server's socket, until it is frozen; what it holds back arrives after that."""

    def __init__(self, server: tuple[int, object]) -> None:
        self._server = server
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def before(cls, postgres_url: str) -> FreezingProxy:
        """A proxy before a database that is reached by a URL."""
        url = make_url(postgres_url)
        folder = url.query.get("host") or url.host
        port = url.port or 5432
        local = isinstance(folder, str) and folder.startswith("/")
        return cls((socket.AF_UNIX, f"{folder}/.s.PGSQL.{port}") if local else (socket.AF_INET, (url.host, port)))

    def url(self, postgres_url: str) -> str:
        """The database's URL through this proxy."""
        through: URL = make_url(postgres_url).set(host="127.0.0.1", port=self.port, query={})
        return through.render_as_string(hide_password=False)

    def lead_to(self, server: tuple[int, object]) -> None:
        """Lead new connections to another server."""
        self._server = server

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
                self._sockets.append(client)
                try:
                    self._join(client)
                except OSError:  # the server is away
                    client.close()

    def _join(self, client: socket.socket) -> None:
        family, address = self._server
        server = socket.socket(family)
        self._sockets.append(server)
        server.connect(address)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
