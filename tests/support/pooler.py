"""PgBouncer in transaction mode before a PostgreSQL: each transaction of a client may run on another of the server's connections."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from service.store.database import POOLER
from tests.support.freezing_proxy import FreezingProxy
from tests.support.servers import find_free_port, listens, running, wait_for

CONNECTIONS = 4
"""Of the server, fewer than the clients have."""
CONFIGURATION = """[databases]
* = host=127.0.0.1 port={server} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
{other_user}
"""


@contextmanager
def pooled(postgres_url: str, folder: Path) -> Iterator[str]:
    """The URL of the database through a PgBouncer of its own; a named skip where there is none."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if program is None:
        pytest.skip("needs the program pgbouncer")
    url, port = make_url(postgres_url), find_free_port()
    with closing(FreezingProxy.before(postgres_url)) as server:
        file = folder / "pgbouncer.ini"
        other_user = "user = nobody" if os.geteuid() == 0 else ""  # it refuses to run as root
        places = {"server": server.port, "port": port, "user": url.username or "postgres"}
        file.write_text(CONFIGURATION.format(**places, connections=CONNECTIONS, other_user=other_user))
        with running([program, str(file)], folder / "pgbouncer.log"):
            wait_for(lambda: listens(port), "PgBouncer to listen")
            through = url.set(host="127.0.0.1", port=port, query={POOLER: "transaction"})
            yield through.render_as_string(hide_password=False)
