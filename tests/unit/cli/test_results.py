"""`outlay results` and `outlay verify`: kept here, the same as over HTTP; records checked against any of three sources of keys."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from werkzeug.serving import make_server

from service import create_app
from service.api.resources.results.results import EXAMPLE
from service.config import Settings
from tests.support.servers import find_free_port
from tests.unit.cli.invoke import output_of, run

REQUEST: dict[str, Any] = EXAMPLE["request"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A request."""
    made = tmp_path / "request.json"
    made.write_text(json.dumps(REQUEST))
    return made


@pytest.fixture
def kept(settings: Settings, file: Path) -> dict[str, Any]:
    """A result that the command has kept."""
    found: dict[str, Any] = json.loads(output_of(settings, "results", "keep", "estimate", str(file), "--title", "Llama", "--json"))
    return found


@pytest.fixture
def record(settings: Settings, kept: dict[str, Any], tmp_path: Path) -> Path:
    """Its record in a file."""
    made = tmp_path / "record.jws"
    output_of(settings, "results", "show", kept["id"], "--record", "--out", str(made))
    return made


def failed(settings: Settings, *arguments: str) -> Result:
    """A command that says in one line what is wrong."""
    result = run(settings, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.output
    return result


class TestResults:
    def test_what_is_kept_here_is_there_over_http(self, settings: Settings, kept: dict[str, Any]) -> None:
        """The same to the byte, but for the server in its address."""
        client = create_app(settings).test_client()
        assert client.get(f"/v1/results/{kept['id']}").get_json() == kept | {"url": f"http://localhost{kept['url']}"}
        shown = output_of(settings, "results", "show", kept["id"], "--format", "json")
        assert hashlib.sha256(shown.encode()).hexdigest() == kept["sha256"]
        assert client.get(f"/v1/results/{kept['id']}?format=md").text == output_of(settings, "results", "show", kept["id"])

    def test_lists_show_it(self, settings: Settings, kept: dict[str, Any]) -> None:
        """As a table and as JSON, with filters."""
        assert kept["id"] in output_of(settings, "results", "list")
        listed = json.loads(output_of(settings, "results", "list", "--title", "llama", "--kind", "estimate", "--json"))
        assert [entry["title"] for entry in listed] == ["Llama"]
        assert json.loads(output_of(settings, "results", "list", "--kind", "compare", "--json")) == []

    def test_what_is_deleted_is_gone(self, settings: Settings, kept: dict[str, Any]) -> None:
        """And named when it is asked for."""
        output_of(settings, "results", "delete", kept["id"])
        assert "no result of this id" in failed(settings, "results", "show", kept["id"]).stderr
        assert "no result of this id" in failed(settings, "results", "delete", kept["id"]).stderr

    def test_what_is_wrong_with_the_request_is_pointed_at(self, settings: Settings, file: Path) -> None:
        """In the file, as everywhere."""
        file.write_text(json.dumps(REQUEST | {"colour": 1}))
        assert "request.json, colour: " in failed(settings, "results", "keep", "estimate", str(file)).stderr

    def test_looking_makes_no_database(self, settings: Settings) -> None:
        """Where nothing was ever kept."""
        assert "nothing is kept here yet" in failed(settings, "results", "list").stderr
        assert not settings.data_dir.exists()


class TestVerify:
    def test_it_needs_no_network(self, settings: Settings, kept: dict[str, Any], record: Path) -> None:
        """With the keys of the data directory, and after a rotation too."""
        shown = output_of(settings, "verify", str(record))
        assert shown.startswith(f"verified: estimate {kept['id']}")
        output_of(settings, "keys", "rotate-signing")
        assert output_of(settings, "verify", str(record)) == shown
        assert json.loads(output_of(settings, "verify", str(record), "--json"))["answer"] == kept["answer"]

    def test_it_takes_keys_from_a_file(self, settings: Settings, record: Path, tmp_path: Path) -> None:
        """Those of another service do not fit, and what holds no keys is named."""
        keys = tmp_path / "jwks.json"
        keys.write_text(create_app(settings).test_client().get("/.well-known/jwks.json").text)
        assert "verified" in output_of(settings, "verify", str(record), "--jwks", str(keys))
        keys.write_text('{"keys": []}')
        assert "not among the 0 known" in failed(settings, "verify", str(record), "--jwks", str(keys)).stderr
        for content in ("", "[]", '{"keys": 1}', '{"keys": [1]}'):
            keys.write_text(content)
            assert "no JWK set" in failed(settings, "verify", str(record), "--jwks", str(keys)).stderr

    def test_it_takes_keys_from_a_server(self, settings: Settings, record: Path, tmp_path: Path) -> None:
        """The one that has signed, from another machine's data directory; a server that is away is named."""
        port = find_free_port()
        other = Settings(**{name: getattr(settings, name) for name in Settings.__dataclass_fields__} | {"data_dir": tmp_path / "other"})
        with served(settings, port):
            assert "verified" in output_of(other, "verify", str(record), "--server", f"http://127.0.0.1:{port}")
        assert "not among the 0 known" in failed(other, "verify", str(record)).stderr
        assert "cannot be reached" in failed(other, "verify", str(record), "--server", f"http://127.0.0.1:{port}").stderr

    def test_a_changed_record_is_refused(self, settings: Settings, record: Path) -> None:
        """With its name, and why."""
        content = bytearray(record.read_bytes())
        content[len(content) // 2] ^= 1
        record.write_bytes(content)
        assert f"{record} is not verified" in failed(settings, "verify", str(record)).stderr


@contextmanager
def served(settings: Settings, port: int) -> Iterator[None]:
    """The service on a port of the loopback interface."""
    server = make_server("127.0.0.1", port, create_app(settings), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
