"""Requests while they arrive."""

from __future__ import annotations

import pytest

from service.api.http.web_worker.arriving_requests import ArrivingRequest

BODY = b"Authorization: Bearer other"


def arrived(*parts: bytes) -> ArrivingRequest:
    """A request whose bytes came in these parts."""
    request = ArrivingRequest(connection=None)
    for part in parts:
        request.add(part)
    return request


@pytest.mark.parametrize("header", [b"Authorization: Bearer one\r\n", b"authorization:Bearer one\r\n"])
def test_a_client_is_known_by_the_key_in_its_head(header: bytes) -> None:
    one = arrived(b"GET / HTTP/1.1\r\n" + header + b"\r\n")
    assert one.client == arrived(b"GET /other HTTP/1.1\r\nAuthorization: Bearer one\r\n\r\n").client != ""
    assert one.client != arrived(b"GET / HTTP/1.1\r\nAuthorization: Bearer two\r\n\r\n").client


def test_a_body_names_no_client() -> None:
    head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (len(BODY) + 2)
    request = arrived(head, b"\r\n" + BODY)
    assert request.is_complete
    assert request.client == ""


def test_a_request_is_complete_with_its_last_byte() -> None:
    whole = b"POST /v1/x?y=1 HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
    request = arrived(*(whole[place : place + 1] for place in range(len(whole) - 1)))
    assert not request.is_complete
    request.add(whole[-1:])
    assert request.is_complete
    assert request.path == b"/v1/x"
