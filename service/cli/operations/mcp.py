"""`outlay mcp`: tools and resources for assistants, over standard input and output."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from typing import TYPE_CHECKING

import click

from service.cli.terminal.context import make_context
from service.cli.terminal.server import server_options, stated_server

if TYPE_CHECKING:
    from service.mcp.backends import Backend


@click.command()
@server_options
def mcp() -> None:
    """Serve the Model Context Protocol on standard input and output, for assistants; needs the extra outlay[mcp]."""
    if importlib.util.find_spec("mcp") is None:
        raise click.ClickException("the package mcp is not installed; pip install 'outlay[mcp]' installs it")
    from service.mcp.backends import LocalBackend, RemoteBackend
    from service.mcp.server import serve

    server = stated_server()
    backend: Backend = LocalBackend(make_context()) if server is None else RemoteBackend(server)
    serve(backend, version("outlay"))
