"""What is asked again, when, and what is not."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from providers.http import Http
from providers.offer import ProviderError
from tests.unit.providers.conftest import PATIENT
from tests.unit.providers.misbehaving_server import Handler, Server, in_turn, reset


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_get_is_asked_again_when_the_source_is_busy(server: Server, status: int) -> None:
    """Twice at most, with a pause that grows."""
    waits: list[float] = []
    url = server.on(in_turn(lambda h: h.answer(b"", status), lambda h: h.answer(b"", status), lambda h: h.answer(b"[1]")))
    assert Http(PATIENT, sleep=waits.append).get_json(url) == [1]
    assert (server.asked["/prices"], waits) == (3, [0.5, 1.0])


def test_retry_after_in_seconds_is_honoured(server: Server) -> None:
    """The source's own word counts, counted once."""
    waits: list[float] = []
    url = server.on(in_turn(lambda h: h.answer(b"", 429, Retry_After="2"), lambda h: h.answer(b"[1]")))
    assert Http(PATIENT, sleep=waits.append).get_json(url) == [1]
    assert (server.asked["/prices"], waits) == (2, [2])


def test_retry_after_as_a_date_is_honoured(server: Server) -> None:
    """As an HTTP date it means the time until then."""
    waits: list[float] = []
    date = formatdate(time.time() + 5, usegmt=True)
    url = server.on(in_turn(lambda h: h.answer(b"", 503, Retry_After=date), lambda h: h.answer(b"[1]")))
    assert Http(PATIENT, sleep=waits.append).get_json(url) == [1]
    assert len(waits) == 1
    assert 0 <= waits[0] <= 5


@pytest.mark.parametrize("value", ["soon", "9" * 5000, "Mon, 99 Foo 99999 99:99:99 GMT", "-1"])
def test_a_retry_after_that_cannot_be_read_counts_as_none(server: Server, value: str) -> None:
    """The usual pause is made instead."""
    waits: list[float] = []
    url = server.on(in_turn(lambda h: h.answer(b"", 429, Retry_After=value), lambda h: h.answer(b"[1]")))
    assert Http(PATIENT, sleep=waits.append).get_json(url) == [1]
    assert waits == [0.5]


def test_a_retry_after_beyond_the_call_ends_it_at_once(server: Server) -> None:
    """Nobody waits an hour, nor asks sooner than was asked for."""
    url = server.serving(b"slow down", 429, Retry_After="3600")
    with pytest.raises(ProviderError, match=r"429 Too Many Requests: slow down \(to wait 3600 s is longer than the call may take\)"):
        Http(PATIENT, sleep=lambda _: pytest.fail("waited")).get_json(url)
    assert server.asked["/prices"] == 1


def test_a_storm_of_429_ends_after_two_repeats(server: Server, http: Http) -> None:
    """Three requests in all, then an error that names the status."""
    with pytest.raises(ProviderError, match="429 Too Many Requests"):
        http.get_json(server.serving(b"", 429, Retry_After="0"))
    assert server.asked["/prices"] == 3


def test_a_reset_connection_is_asked_again(server: Server, http: Http) -> None:
    """Before the answer and in the midst of it."""

    def break_off(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n[")
        reset(handler)

    assert http.get_json(server.on(in_turn(reset, break_off, lambda h: h.answer(b"[1]")))) == [1]
    assert server.asked["/prices"] == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 501])
def test_other_refusals_are_final(server: Server, http: Http, status: int) -> None:
    """Asking again would change nothing, even where a Retry-After says so."""
    with pytest.raises(ProviderError, match=rf"^{server.host}/prices: answered {status} "):
        http.get_json(server.serving(b"", status, Retry_After="0"))
    assert server.asked["/prices"] == 1


@pytest.mark.parametrize("status", [204, 206, 304, 599])
def test_only_status_200_is_an_answer(server: Server, http: Http, status: int) -> None:
    """Not a part of it, nor none."""
    with pytest.raises(ProviderError, match=f"answered {status}"):
        http.get_json(server.serving(b"", status))


def test_a_post_is_never_sent_twice(server: Server, http: Http) -> None:
    """Neither when the source is busy nor when the connection breaks."""
    for path, script in (("/busy", lambda h: h.answer(b"", 503, Retry_After="0")), ("/reset", reset)):
        with pytest.raises(ProviderError):
            http.post_json(server.on(script, path), {})
    assert server.asked == {"/busy": 1, "/reset": 1}
