"""`outlay mcp`: tools and resources for assistants, over standard input and output."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import version
from typing import TYPE_CHECKING

import click

from service.cli.terminal.context import make_context
from service.cli.terminal.server import server_options, stated_server

if TYPE_CHECKING:
    from service.mcp.backends import Backend

KEY = "OUTLAY_MCP_KEY"
LOOPBACK = "127.0.0.1"


@click.command()
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve at http://HOST:PORT/mcp instead; HOST left out: 127.0.0.1.")
@server_options
def mcp(address: str | None) -> None:
    """Serve the Model Context Protocol on standard input and output, for assistants; needs the extra outlay[mcp].

    With --http it is served to others: beyond this machine they need the key of OUTLAY_MCP_KEY.
    """
    if importlib.util.find_spec("mcp") is None:
        raise click.ClickException("the package mcp is not installed; pip install 'outlay[mcp]' installs it")
    from service.mcp.backends import LocalBackend, RemoteBackend
    from service.mcp.server import serve, serve_http

    key = os.environ.get(KEY) or None
    where = None if address is None else _checked(address, key)
    server = stated_server()
    backend: Backend = LocalBackend(make_context()) if server is None else RemoteBackend(server)
    if where is None:
        serve(backend, version("outlay"))
    else:
        serve_http(backend, version("outlay"), *where, key)


def _checked(address: str, key: str | None) -> tuple[str, int]:
    """Host and port of an address. Beyond this machine a key is required."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or LOOPBACK
    if not port.isdecimal() or int(port) >= 2**16:
        raise click.BadParameter("must be a port, or a host and a port: 8765, 0.0.0.0:8765", param_hint="--http")
    if host not in (LOOPBACK, "::1", "localhost") and not key:
        raise click.ClickException(f"beyond this machine a key is required: set {KEY}, and give it to who may ask as their bearer token")
    return host, int(port)
