"""One request to a running service: what of its answers becomes a problem, and where the key goes."""

from __future__ import annotations

import pytest

from service.remote.problems import RemoteProblem
from service.remote.transport import Server
from tests.support.servers import find_free_port
from tests.unit.providers.misbehaving_server import Server as Fake
from tests.unit.providers.misbehaving_server import listening


def test_no_redirect_is_followed() -> None:
    """The key would go with it."""
    with listening(Fake()) as server:
        elsewhere = server.on(lambda handler: handler.answer(b"{}"), "/elsewhere")
        server.on(lambda handler: handler.answer(b"", 302, Location=elsewhere), "/moved")
        with pytest.raises(RemoteProblem, match="302"):
            Server(f"http://{server.host}", "key").get("/moved")
        assert server.asked == {"/moved": 1}
        assert server.seen[0][2]["Authorization"] == "Bearer key"


@pytest.mark.parametrize("body", [b"<h1>Bad gateway</h1>", b"[]", b"null", b'{"detail": 1, "errors": 2}'])
def test_an_answer_of_something_else_is_named(body: bytes) -> None:
    """Such as a proxy's."""
    with listening(Fake()) as server:
        server.on(lambda handler: handler.answer(body, 502), "/v1/models")
        with pytest.raises(RemoteProblem, match=r"502.*is not a service of Outlay") as problem:
            Server(f"http://{server.host}").get("/v1/models")
    assert problem.value.status == 502


def test_an_answer_that_is_no_json_is_named() -> None:
    """Such as a login page with status 200."""
    with listening(Fake()) as server:
        server.on(lambda handler: handler.answer(b"<h1>Log in</h1>"), "/v1/models")
        with pytest.raises(RemoteProblem, match="is not a service of Outlay"):
            Server(f"http://{server.host}").get("/v1/models")


def test_a_server_that_is_not_there_is_named() -> None:
    """Its address, and that it cannot be reached."""
    with pytest.raises(RemoteProblem, match="cannot be reached") as problem:
        Server(f"http://127.0.0.1:{find_free_port()}").get("/v1/models")
    assert problem.value.status == 0
