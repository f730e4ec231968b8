"""A running service of a test, at an address of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from flask import Flask
from werkzeug.serving import make_server

from service import create_app
from service.config import Settings
from service.usecases.keys import make_key


@contextmanager
def listening_at(app: Flask) -> Iterator[str]:
    """The address at which the application is served."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def guarded_service(settings: Settings) -> Iterator[tuple[str, str]]:
    """The address of a service that needs a key, and such a key."""
    app = create_app(settings)
    context: Any = app.extensions["context"]
    with closing(context.store) as store:
        store.migrate()
        token = make_key(context, "research", "laptop", ["read", "write"], "1d")[1]
        with listening_at(app) as url:
            yield url, token
