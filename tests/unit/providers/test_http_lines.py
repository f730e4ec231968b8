"""Large files, read line by line as they arrive."""

from __future__ import annotations

import gzip

import pytest

from providers.http import BULK_LIMITS, DEFAULT_LIMITS, MAX_LINE_CHARS, Http, Limits
from providers.offer import ProviderError
from tests.unit.providers.misbehaving_server import Handler, Server


def test_lines_arrive_one_by_one_whatever_ends_them(server: Server, http: Http) -> None:
    """Only line ends end a line; a form feed or U+2028 inside of a field does not."""
    url = server.serving("\ufeffa,b\r\n1,x\u2028y\n\n2,\x0cz".encode())
    assert list(http.lines(url)) == ["a,b", "1,x\u2028y", "", "2,\x0cz"]


def test_lines_come_before_the_file_is_complete(server: Server, http: Http) -> None:
    """A file of hundreds of megabytes is not kept in memory."""
    lines = http.lines(server.on(lambda h: h.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nfirst\n", b"")))
    assert next(lines) == "first"
    lines.close()  # type: ignore[attr-defined]  # it is a generator


def test_lines_are_more_than_a_call_may_bring_and_have_limits_of_their_own(server: Server, http: Http) -> None:
    """The bulk limits allow what the usual ones refuse; stated ones hold."""
    url = server.serving(gzip.compress(b"0123456789\n" * 20_000), Content_Encoding="gzip")
    assert BULK_LIMITS.max_bytes > DEFAULT_LIMITS.max_bytes
    assert sum(1 for _ in http.lines(url)) == 20_000
    with pytest.raises(ProviderError, match="more than the 100000 bytes"):
        list(http.lines(url, limits=Limits(max_bytes=100_000)))


def test_a_file_that_breaks_off_is_an_error_midway(server: Server, http: Http) -> None:
    """What came before stands; the reader must not take it for all."""

    def cut(handler: Handler) -> None:
        handler.answer(b"a\nb\nc", Content_Length="1000")
        handler.close_connection = True

    lines = http.lines(server.on(cut))
    assert [next(lines), next(lines)] == ["a", "b"]
    with pytest.raises(ProviderError, match="broke off"):
        next(lines)


def test_a_file_without_line_ends_is_refused(server: Server, http: Http) -> None:
    """It would fill the memory as one line."""
    url = server.serving(b"x" * (MAX_LINE_CHARS + 2**17))
    with pytest.raises(ProviderError, match=f"a line of more than {MAX_LINE_CHARS} characters"):
        list(http.lines(url))


def test_lines_that_are_not_utf_8_are_an_error(server: Server, http: Http) -> None:
    """Also when the file ends within a letter."""
    for body in (b"a\n\xff\n", "a\nü".encode()[:-1]):
        with pytest.raises(ProviderError, match="not UTF-8"):
            list(http.lines(server.serving(body)))
