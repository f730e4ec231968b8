"""Nobody calls over HTTP but the session of all providers, the one sender of messages, and the command line that asks a server."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLIENTS = ("requests", "urllib3", "urllib.request", "http.client", "httpx", "aiohttp")
IMPORTS = re.compile(rf"\b(?:import|from)\b[^\n]*\b(?:{'|'.join({name.partition('.')[0] for name in CLIENTS})})\b")
HARMLESS = ("requests.auth", "requests.PreparedRequest")


def clients_used(source: str) -> list[str]:
    """The names of HTTP clients that a module imports or reaches for; one that has no such import need not be read further."""
    if not IMPORTS.search(source):
        return []
    names: list[str] = []
    nodes = list(ast.walk(ast.parse(source)))
    library = any(isinstance(node, ast.Import) and any(alias.name == "requests" for alias in node.names) for node in nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names if alias.name != "requests"]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "requests" and library:
            names.append(f"requests.{node.attr}")
    return [name for name in names if f"{name}.".startswith(tuple(f"{c}." for c in CLIENTS)) and not name.startswith(HARMLESS)]


def test_no_other_module_calls_anybody_over_http() -> None:
    """Prices come by the session of providers, messages go by the sender, a server is asked by the transport."""
    own = {ROOT / "providers" / name for name in ("http.py", "transport.py", "error_text.py")}
    own |= {ROOT / "service" / "runtime" / "webhooks.py", ROOT / "service" / "remote" / "transport.py"}
    modules = [path for room in ("providers", "service") for path in (ROOT / room).rglob("*.py") if path not in own]
    assert {str(path.relative_to(ROOT)): used for path in modules if (used := clients_used(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import requests\nrequests.get('x')",
        "from requests import Session",
        "import urllib.request",
        "from urllib3 import PoolManager",
        "from http.client import HTTPSConnection",
    ],
)
def test_that_check_finds_what_it_looks_for(source: str) -> None:
    """Each way around the session is seen."""
    assert clients_used(source)
