"""The session of all providers against a real server on this machine that misbehaves in every way we know of."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from requests.auth import HTTPBasicAuth

from providers.http import USER_AGENT, Http
from providers.offer import ProviderError
from tests.support.servers import wait_for
from tests.unit.providers.conftest import PATIENT
from tests.unit.providers.misbehaving_server import Handler, Server, redirect, reset

KEY = "sk-confidential-0123456789"


def test_an_answer_is_json_with_exact_numbers(server: Server, http: Http) -> None:
    """What has a fraction comes as Decimal, as written."""
    url = server.serving(b'{"price": 1.10, "count": 8, "tiny": 1e-3, "name": "H100"}')
    assert http.get_json(url) == {"price": Decimal("1.10"), "count": 8, "tiny": Decimal("0.001"), "name": "H100"}


def test_a_call_says_who_asks_and_carries_headers_and_parameters(server: Server, http: Http) -> None:
    """The user agent names the program; parameters are encoded."""
    http.get_json(server.serving(b"{}"), headers={"X-API-KEY": KEY}, params={"gpu": "H100 SXM"})
    command, path, headers, _ = server.seen[0]
    assert (command, path, headers["User-Agent"], headers["X-API-KEY"]) == ("GET", "/prices?gpu=H100+SXM", USER_AGENT, KEY)


def test_a_post_carries_json_or_form_fields(server: Server, http: Http) -> None:
    """Both kinds of body arrive as they should."""
    assert http.post_json(server.serving(b'{"data": []}'), {"query": "{ gpuTypes }"}) == {"data": []}
    assert http.post_form(server.serving(b"<ok/>"), {"Action": "DescribeSpotPriceHistory"}) == "<ok/>"
    (_, _, _, first), (_, _, _, second) = server.seen
    assert (json.loads(first), second) == ({"query": "{ gpuTypes }"}, b"Action=DescribeSpotPriceHistory")


def test_text_is_utf_8_with_or_without_a_byte_order_mark(server: Server, http: Http) -> None:
    """requests would take ISO-8859-1 for text without a character set."""
    url = server.serving("\ufeffcloud,region\ngcp,Zürich\n".encode(), Content_Type="text/csv")
    assert http.get_text(url) == "cloud,region\ngcp,Zürich\n"


def test_netrc_does_not_replace_the_key(server: Server, http: Http, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """requests would send the user's password of that host in the place of the bearer token (psf/requests#3929)."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    http.get_json(server.serving(b"{}"), headers={"Authorization": f"Bearer {KEY}"})
    assert server.seen[0][2]["Authorization"] == f"Bearer {KEY}"


def test_cookies_are_not_kept(server: Server, http: Http) -> None:
    """An answer does not depend on what was asked before."""
    url = server.serving(b"{}", Set_Cookie="session=1")
    http.get_json(url)
    http.get_json(url)
    assert "Cookie" not in server.seen[1][2]


def test_nobody_listening_is_told_as_a_refused_connection(free_port: int, http: Http) -> None:
    """A refused connection is not tried again."""
    with pytest.raises(ProviderError, match=rf"^127\.0\.0\.1:{free_port}/x: the connection failed: Connection refused$"):
        http.get_json(f"http://127.0.0.1:{free_port}/x")


def test_a_name_that_does_not_exist_is_told(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the name, nothing is connected to."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ProviderError, match=r"^prices\.invalid/: its name was not found$"):
        http.get_json("https://prices.invalid/")


def test_a_resolver_that_does_not_answer_holds_nobody(quick: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up of a name takes no timeout; it is left behind."""
    over = threading.Event()

    def hang(*_: object, **__: object) -> None:
        over.wait(60)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(ProviderError, match=r"^prices\.invalid/: no connection within 0\.2 s$"):
        quick.get_json("https://prices.invalid/")
    over.set()


def test_a_hung_server_is_given_up(server: Server) -> None:
    """It accepts, and says nothing: not asked again either, since it has had its time."""
    url = server.on(lambda handler: handler.drip(b"", b""))
    with pytest.raises(ProviderError, match=rf"^{server.host}/prices: no answer within 0\.15 s$"):
        Http(replace(PATIENT, read_s=0.15)).get_json(url)
    wait_for(lambda: server.asked["/prices"], "the server to see the request")
    assert server.asked["/prices"] == 1


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n[", b"1"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n[\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
        (b"HTTP/1.1 200 OK\r\n", b"X"),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"", b"H"),
    ],
    ids=["body", "chunks", "size of a chunk", "one header", "many headers", "status"],
)
def test_a_trickling_server_ends_at_the_limit_for_the_whole_call(server: Server, head: bytes, drop: bytes) -> None:
    """Each wait is short, all of them together are not."""
    limits = replace(PATIENT, total_s=0.2)
    with pytest.raises(ProviderError, match=r"took longer than 0\.2 s in all"):
        Http(limits).get_json(server.on(lambda handler: handler.drip(head, drop)))


def test_a_truncated_answer_is_an_error(server: Server, http: Http) -> None:
    """Less than Content-Length has promised."""

    def cut(handler: Handler) -> None:
        handler.answer(b'{"price": 1}', Content_Length="1000")
        handler.close_connection = True

    with pytest.raises(ProviderError, match="the answer broke off"):
        http.get_json(server.on(cut))


def test_truncated_chunks_are_an_error(server: Server, http: Http) -> None:
    """The last chunk is missing."""

    def cut(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        handler.close_connection = True

    with pytest.raises(ProviderError, match="the answer broke off"):
        http.get_json(server.on(cut))


def test_two_lengths_are_an_error(server: Server, http: Http) -> None:
    """Nobody knows where such an answer ends."""
    with pytest.raises(ProviderError, match="headers contradict each other"):
        http.get_json(server.on(lambda h: h.answer(b"{}", Content_Length="2, 3")))


def test_a_compressed_answer_is_unpacked(server: Server, http: Http) -> None:
    """As most sources send it."""
    assert http.get_json(server.serving(gzip.compress(b'{"price": 2.5}'), Content_Encoding="gzip")) == {"price": Decimal("2.5")}


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(server: Server, http: Http) -> None:
    """50 MB of spaces travel as 50 kB; no more is unpacked than is taken, and a piece."""
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(ProviderError, match=r"more than the 100000 bytes that are taken \(unpacked\)"):
        http.get_json(server.serving(bomb, Content_Encoding="gzip"))


def test_what_only_claims_to_be_compressed_is_an_error(server: Server, http: Http) -> None:
    """It is not passed on as it is."""
    with pytest.raises(ProviderError, match="cannot be unpacked"):
        http.get_json(server.serving(b'{"price": 1}', Content_Encoding="gzip"))


def test_an_answer_that_announces_too_much_is_not_read(server: Server, http: Http) -> None:
    """Content-Length is enough to refuse it."""
    with pytest.raises(ProviderError, match=r"more than the 100000 bytes that are taken \(999999 bytes\)"):
        http.get_json(server.on(lambda handler: handler.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", b"")))


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><title>Log in</title>", b"\n <html><body>Maintenance</body></html>"])
def test_a_web_page_is_named_as_such(server: Server, http: Http, page: bytes) -> None:
    """Whatever its type says; also where text or lines were asked for."""
    url = server.serving(page, Content_Type="application/json")
    for ask in (http.get_json, http.get_text, lambda address: list(http.lines(address)), lambda address: http.post_form(address, {})):
        with pytest.raises(ProviderError, match="a web page"):
            ask(url)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "nothing where JSON"),
        (b"  \n", "nothing where JSON"),
        (b'{"price": ', "no JSON: Expecting value"),
        (b'{"price": NaN}', "NaN is no JSON"),
        (b'{"price": -Infinity}', "-Infinity is no JSON"),
        (b'{"price": 1e400}', "1e400 is no number that can be held"),
        (b'{"price": 1e9999999999999999999}', "no number that can be held"),
        (b'{"count": ' + b"9" * 31 + b"}", "an integer of 31 digits; at most 30"),
        (b'{"count": ' + b"9" * 5000 + b"}", "an integer of 5000 digits"),
        (b'{"price": 0.' + b"1" * 5000 + b"}", "a number of 5002 characters"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64 levels"),
        (b"[" * 40_000 + b"]" * 40_000, "nested deeper than 64 levels"),
        (b'{"name": "\xff"}', "can't decode byte 0xff"),
        (b"PK\x03\x04", "no JSON"),
    ],
)
def test_what_is_no_strict_json_is_an_error_that_says_why(server: Server, http: Http, body: bytes, said: str) -> None:
    """Nothing is guessed, nothing costs more than it should."""
    with pytest.raises(ProviderError, match=said):
        http.get_json(server.serving(body))


def test_the_bounds_of_json_themselves_are_taken(server: Server, http: Http) -> None:
    """30 digits and 64 levels."""
    assert http.get_json(server.serving(b"[" * 63 + b"9" * 30 + b"]" * 63))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_is_not_followed(server: Server, elsewhere: Server, http: Http, status: int) -> None:
    """No connection is made there, so no key gets there."""
    url = server.on(redirect(f"http://{elsewhere.host}/prices?key=1", status))
    with pytest.raises(ProviderError, match=rf"redirects to another host, http://{elsewhere.host}, which is not followed"):
        http.get_json(url, headers={"Authorization": f"Bearer {KEY}"})
    assert elsewhere.seen == []


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest/meta-data", "//evil.example/x", "file:///etc/passwd", "https://127.0.0.1/"]
)
def test_no_redirect_leaves_the_origin(server: Server, http: Http, target: str) -> None:
    """Metadata services, other schemes, other ports."""
    with pytest.raises(ProviderError, match="redirects to another host"):
        http.get_json(server.on(redirect(target)))


def test_a_redirect_within_the_host_is_followed_with_the_headers(server: Server, http: Http) -> None:
    """Moved pages are found, as the source wrote the address."""
    server.on(lambda h: h.answer(b"[1]"), "/new")
    url = server.on(redirect("/new?page=2", 308))
    assert http.get_json(url, headers={"X-API-KEY": KEY}, params={"page": "1"}) == [1]
    _, path, headers, _ = server.seen[1]
    assert (path, headers["X-API-KEY"]) == ("/new?page=2", KEY)


def test_a_redirect_loop_ends(server: Server, http: Http) -> None:
    """Three are followed."""
    with pytest.raises(ProviderError, match="redirects more than 3 times"):
        http.get_json(server.on(redirect("/prices")))
    assert server.asked["/prices"] == 4


def test_the_body_of_a_redirect_is_not_read(server: Server, http: Http) -> None:
    """requests would unpack all of it, however large, before it looks at the address."""

    def endless(handler: Handler) -> None:
        head = b"HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        handler.drip(head, b"1\r\nx\r\n")

    server.on(lambda h: h.answer(b"[1]"), "/new")
    assert http.get_json(server.on(endless)) == [1]


def test_a_post_is_not_redirected(server: Server, http: Http) -> None:
    """A redirect would make a GET of it, or send the body twice."""
    with pytest.raises(ProviderError, match="redirects a POST"):
        http.post_json(server.on(redirect("/new")), {})


def test_plain_http_is_for_loopback_and_configured_addresses(http: Http) -> None:
    """A key is not sent in the clear because an address lacks an s."""
    with pytest.raises(ProviderError, match=r"^mirror\.example/v1: plain http is allowed for loopback"):
        http.get_json("http://mirror.example/v1")


def test_a_configured_mirror_may_be_asked_by_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has said so, for that host and port alone."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    http = Http(configured=("http://mirror.example:8080/aws",))
    with pytest.raises(ProviderError, match="its name was not found"):
        http.get_json("http://mirror.example:8080/other")
    with pytest.raises(ProviderError, match="plain http is allowed for loopback"):
        http.get_json("http://mirror.example/other")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "prices.json", "https://", "http://[::1/x", "https://a..b/x"])
def test_what_is_no_web_address_is_an_error(http: Http, url: str) -> None:
    """A wrong setting is told like any other trouble."""
    with pytest.raises(ProviderError):
        http.get_json(url)


def test_a_proxy_of_the_environment_is_used(server: Server, elsewhere: Server, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """Companies reach the clouds through one."""
    monkeypatch.setenv("http_proxy", f"http://{elsewhere.host}")
    monkeypatch.setenv("no_proxy", "")
    url = server.serving(b"[1]")
    elsewhere.scripts[f"http://{server.host}/prices"] = lambda h: h.answer(b"[2]")
    elsewhere.scripts[url] = elsewhere.scripts[f"http://{server.host}/prices"]
    assert (http.get_json(url), server.seen) == ([2], [])


def test_no_error_tells_the_key(server: Server, free_port: int, quick: Http) -> None:
    """Neither in its text nor in what a log prints below it, whatever goes wrong, even where the source echoes it."""
    echo = f"invalid key {KEY} / {KEY}%3D"
    troubles = {
        "/echo": lambda h: h.answer(echo.encode(), 401),
        "/hang": lambda h: h.drip(b"", b""),
        "/cut": lambda h: h.answer(b"{", Content_Length="99"),
        "/reset": reset,
        "/away": redirect(f"https://elsewhere.example/?key={KEY}"),
        "/loop": redirect(f"/loop?key={KEY}"),
    }
    urls = [server.on(script, path) for path, script in troubles.items()]
    for url in [*urls, f"http://127.0.0.1:{free_port}/", "http://mirror.example/"]:
        with pytest.raises(ProviderError) as caught:
            quick.get_json(url, headers={"Authorization": f"Bearer {KEY}", "X-Key": KEY}, params={"key": KEY + "="})
        assert KEY not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        assert str(caught.value).startswith(url.split("/")[2])


def test_a_password_in_an_address_or_a_login_is_not_told(server: Server, http: Http) -> None:
    """The part before the @ is left out; so are the words of a basic login."""
    url = server.serving(b"no dXNlcjpzay1jb25maWRlbnRpYWw=", 403)
    with pytest.raises(ProviderError, match=rf"^{server.host}/prices: answered 403 Forbidden: no …$"):
        http.get_json(url.replace("//", f"//user:{KEY}@"), auth=HTTPBasicAuth("user", "sk-confidential"))


def test_a_secret_in_a_body_of_ours_is_not_told(server: Server, http: Http) -> None:
    """Some servers answer a bad request with the request, be it JSON or a form."""
    for post, said in ((http.post_json, b'{"client_secret": "%s"}'), (http.post_form, b"client_secret=%s")):
        with pytest.raises(ProviderError, match=r"answered 400 Bad Request: .*…") as caught:
            post(server.serving(said.replace(b"%s", KEY.encode()), 400), {"grant_type": "client", "client_secret": KEY})
        assert KEY not in str(caught.value)


def test_a_key_that_no_header_can_carry_is_an_error_without_the_key(server: Server, http: Http) -> None:
    """A line end copied along, or a letter outside Latin-1."""
    for key in (f"{KEY}\n", f"{KEY}Ω"):
        with pytest.raises(ProviderError, match="a character that headers cannot contain") as caught:
            http.get_json(server.serving(b"[]"), headers={"X-API-KEY": key})
        assert KEY not in str(caught.value)


def test_the_sources_reason_is_told(server: Server, http: Http) -> None:
    """On one line and cut short; what helps is mostly in its first words."""
    with pytest.raises(ProviderError) as caught:
        http.get_json(server.serving(b'{"error":\n "the billing API is disabled"}' + b"!" * 1000, 403))
    assert str(caught.value).startswith(f'{server.host}/prices: answered 403 Forbidden: {{"error": "the billing API is disabled"}}!')
    assert len(str(caught.value)) < 300
