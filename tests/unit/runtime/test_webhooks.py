"""Messages to addresses that callers give: nothing is connected to but what they may go to, and little is believed of the other side."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.runtime import webhooks
from service.runtime.webhooks import Forbidden, Gone, Undelivered, destination, permitted, post
from tests.support.rows import for_each
from tests.unit.providers.misbehaving_server import Handler, Server, listening, redirect, reset

HUNG = "no answer within"
NAMES: dict[str, Sequence[str]] = {
    "loop.example.com": ["127.0.0.1"],
    "localhost": ["127.0.0.1", "::1"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "metadata.example.com": ["169.254.169.254"],
    "metadata.google.internal": ["169.254.169.254"],
    "ten.example.com": ["10.1.2.3"],
    "both.example.com": ["93.184.215.14", "10.0.0.1"],
    "mapped.example.com": ["::ffff:127.0.0.1"],
    "translated.example.com": ["64:ff9b::7f00:1"],
    "scoped.example.com": ["fe80::1%1"],
}
"""What the test's resolver says."""
REFUSED = (
    # this machine
    "https://127.0.0.1/",
    "https://127.0.0.1:8080/v1/models",
    "https://127.8.9.10/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://localhost/",
    "https://loop.example.com/",
    "https://127.0.0.1.nip.io/",
    # this machine, written otherwise
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0x0.0x0.0x1/",
    "https://0x7f.1/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://0177.0.0.01/",
    "https://127.1/",
    "https://127.0.1/",
    "https://00127.0.0.1/",
    "https://127.0.0.1./",
    "https://127.0.0.256/",
    "https://①②⑦.⓪.⓪.①/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://127。0。0。1/",
    "https://%31%32%37.0.0.1/",
    # IPv4 inside of IPv6
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::127.0.0.1]/",
    "https://[::7f00:1]/",
    "https://[64:ff9b::127.0.0.1]/",
    "https://[64:ff9b:1::a00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a9fe:a9fe::1]/",
    "https://[2001:0:53aa:64c:0:fbff:80ff:fffe]/",
    "https://mapped.example.com/",
    "https://translated.example.com/",
    # machines' own services of clouds
    "https://169.254.169.254/latest/meta-data/",
    "https://169.254.170.2/",
    "https://[fe80::a9fe:a9fe]/",
    "https://[fd00:ec2::254]/latest/meta-data/",
    "https://[fd20:ce::254]/",
    "https://100.100.100.200/latest/meta-data/",
    "https://192.0.0.192/",
    "https://168.63.129.16/",
    "https://metadata.example.com/",
    "https://metadata.google.internal/computeMetadata/v1/",
    # private networks
    "https://10.0.0.1/",
    "https://10.255.255.255/",
    "https://172.16.0.1/",
    "https://172.31.255.254/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://[fc00::1]/",
    "https://[fd12:3456:789a::1]/",
    "https://[fec0::1]/",
    "https://ten.example.com/",
    "https://both.example.com/",
    "https://scoped.example.com/",
    # what nobody has, and everybody
    "https://169.254.1.1/",
    "https://192.0.2.1/",
    "https://198.18.0.1/",
    "https://198.51.100.7/",
    "https://203.0.113.9/",
    "https://[2001:db8::1]/",
    "https://224.0.0.1/",
    "https://239.255.255.250/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[ff02::1]/",
    # no such address, or not https
    "http://93.184.215.14/",
    "http://example.com/",
    "HTTP://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "https:example.com",
    "https:///example.com",
    "//example.com/",
    "https://",
    "https://?x",
    "https://user@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1\\@example.com/",
    "https://127.0.0.1#@example.com/",
    "https://example.com#fragment",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:port/",
    "https://example.com\r\nHost: 127.0.0.1/",
    "https://example.com/a b",
    "https://example.com/\r\nX: y",
    "https://exa\tmple.com/",
    " https://example.com/",
    "https://-example.com/",
    "https://exa_mple.c_m/",
    "https://[example.com]/",
    "https://[::1/",
    "https://[fe80::1%25eth0]/",
    "https://bücher.example/",
    "https://example.com/" + "a" * 2000,
)


def looked_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name of the table, or one in public."""
    return NAMES.get(host, ["93.184.215.14"])


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every attempt of a socket of this process to connect, none of which succeeds; threads that other tests have left go on."""
    tried: list[object] = []
    others, really = set(threading.enumerate()) - {threading.current_thread()}, socket.socket.connect

    def connect(this: socket.socket, address: Any) -> None:
        if threading.current_thread() in others:
            really(this, address)
            return
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    return tried


class TestAddresses:
    def test_enough_addresses_are_tried(self) -> None:
        """The promise is about 60 and more, none of them twice."""
        assert len(set(REFUSED)) == len(REFUSED) >= 60

    @for_each("url", REFUSED)
    def test_no_connection_is_made_to_what_is_not_in_public(self, url: str, connections: list[object]) -> None:
        """Whatever way it is written, and whatever a name resolves to."""
        with pytest.raises(Forbidden):
            post(url, b"{}", {}, lookup=looked_up)
        assert connections == []

    @pytest.mark.parametrize(
        ("url", "place"),
        [
            ("https://example.com", ("93.184.215.14", 443)),
            ("HTTPS://Example.COM:8443/a?b=c", ("93.184.215.14", 8443)),
            ("https://8.8.8.8/", ("8.8.8.8", 443)),
            ("https://[2606:4700:4700::1111]/", ("2606:4700:4700::1111", 443, 0, 0)),
            ("https://xn--bcher-kva.example/", ("93.184.215.14", 443)),
        ],
    )
    def test_what_is_in_public_is_connected_to_at_the_address_that_was_checked(
        self, url: str, place: object, connections: list[object]
    ) -> None:
        """So the refusals above are none of the test's own making."""
        with pytest.raises(Undelivered, match=r"no connection$"):
            post(url, b"{}", {}, lookup=looked_up)
        assert connections == [place]

    def test_a_name_that_changes_its_mind_is_asked_once(self, connections: list[object]) -> None:
        """The connection is made to the address that was checked, not to what the name says by then."""
        answers = iter([["93.184.215.14"], ["127.0.0.1"], ["169.254.169.254"]])
        with pytest.raises(Undelivered):
            post("https://rebind.example.com/", b"{}", {}, lookup=lambda host, port: next(answers))
        assert connections == [("93.184.215.14", 443)]
        assert next(answers) == ["127.0.0.1"]

    def test_every_address_of_a_name_is_tried_until_one_takes_the_connection(self, connections: list[object]) -> None:
        """A host may be dead on one of two networks."""
        with pytest.raises(Undelivered, match=r"^two.example.com: no connection$"):
            post("https://two.example.com/", b"{}", {}, lookup=lambda host, port: ["2606:4700:4700::1111", "8.8.8.8"])
        assert connections == [("2606:4700:4700::1111", 443, 0, 0), ("8.8.8.8", 443)]

    @pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long")])
    def test_a_name_that_nobody_knows_is_told(self, error: Exception, connections: list[object]) -> None:
        """Without the resolver's own words."""

        def lookup(host: str, port: int) -> Sequence[str]:
            raise error

        with pytest.raises(Undelivered, match=r"^gone.example.com: its name was not found$"):
            post("https://gone.example.com/", b"{}", {}, lookup=lookup)
        assert connections == []

    def test_a_resolver_that_hangs_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch, connections: list[object]) -> None:
        """It takes no timeout of its own."""
        monkeypatch.setattr(webhooks, "CONNECT_S", 0.05)
        over = threading.Event()

        def lookup(host: str, port: int) -> Sequence[str]:
            over.wait(60)
            return ["93.184.215.14"]

        with pytest.raises(Undelivered, match="not resolved within"):
            post("https://slow.example.com/", b"{}", {}, lookup=lookup)
        over.set()
        assert connections == []

    @given(st.ip_addresses())
    def test_only_global_addresses_are_permitted(self, address: object) -> None:
        """By the registry of the standard library; what it calls private never is, unless private networks are allowed."""
        ip = ip_address(str(address))
        if permitted(ip):
            assert ip.is_global
            assert True not in (ip.is_private, ip.is_loopback, ip.is_link_local, ip.is_multicast, ip.is_reserved)


class TestPrivateNetworks:
    @pytest.mark.parametrize(
        "url", ["http://127.0.0.1/", "http://[::1]/", "https://10.0.0.1/", "https://192.168.1.1/", "https://[fd12::1]/"]
    )
    def test_may_be_allowed(self, url: str) -> None:
        """This machine by plain http, private networks by https."""
        assert destination(url, private=True).path == "/"

    @pytest.mark.parametrize(
        "url", ["http://10.0.0.1/", "https://169.254.169.254/", "https://[fd00:ec2::254]/", "https://224.0.0.1/", "https://0.0.0.0/"]
    )
    def test_the_rest_stays_refused(self, url: str, connections: list[object]) -> None:
        """Machines' own services of clouds above all."""
        with pytest.raises(Forbidden):
            post(url, b"{}", {}, private=True, lookup=looked_up)
        assert connections == []

    def test_plain_http_goes_to_no_name_that_leads_elsewhere(self, connections: list[object]) -> None:
        """A name is not this machine because somebody says so."""
        with pytest.raises(Forbidden, match="https"):
            post("http://example.com/", b"{}", {}, private=True, lookup=looked_up)
        assert connections == []


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on this machine that does as it is told."""
    with listening(Server()) as started:
        yield started


class TestOtherSides:
    @pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
    def test_any_2xx_is_an_acknowledgement(self, server: Server, status: int) -> None:
        """The body arrives as it was sent, under the host's name, and no header is added that tells of this machine."""
        post(server.serving(b"", status) + "?a=b", b'{"a": 1}', {"Webhook-Id": "7"}, private=True)
        ((method, path, headers, body),) = server.seen
        assert (method, path, json.loads(body), headers["Webhook-Id"], headers["Host"]) == (
            "POST",
            "/prices?a=b",
            {"a": 1},
            "7",
            server.host,
        )
        assert set(headers) <= {"Host", "Webhook-Id", "Content-Length", "Accept-Encoding", "User-Agent"}

    @pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
    def test_any_other_status_is_none(self, server: Server, status: int) -> None:
        """What stands in the body is not told: it may be somebody's secret. One attempt is made."""
        with pytest.raises(Undelivered, match=rf"^{server.host}: answered {status}$"):
            post(server.serving(b"secret", status), b"{}", {}, private=True)
        assert len(server.seen) == 1

    def test_a_410_wants_no_more(self, server: Server) -> None:
        """It is told apart."""
        with pytest.raises(Gone):
            post(server.serving(b"", 410), b"{}", {}, private=True)

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize("to", ["/other", "http://169.254.169.254/latest/meta-data/"])
    def test_no_redirect_is_followed(self, server: Server, status: int, to: str) -> None:
        """Not even on the same host."""
        server.serving(b"", 200)
        with pytest.raises(Undelivered, match="a redirect, which is not followed"):
            post(server.on(redirect(to, status), "/away"), b"{}", {}, private=True)
        assert [path for _, path, _, _ in server.seen] == ["/away"]

    @pytest.mark.parametrize(
        ("script", "said"),
        [
            (lambda handler: handler.server.over.wait(60), HUNG),
            (lambda handler: handler.drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), HUNG),
            (lambda handler: handler.drip(b"", b"x"), HUNG),
            (reset, "the connection failed: Connection reset by peer"),
            (lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n"), "the call failed"),
            (lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"), "the call failed"),
        ],
    )
    def test_what_misbehaves_is_left(
        self, server: Server, script: Callable[[Handler], None], said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Hung, dripping for ever, cut off, no HTTP, too many headers."""
        if said == HUNG:
            monkeypatch.setattr(webhooks, "TOTAL_S", 0.3)

        def play(handler: Handler) -> None:
            script(handler)
            handler.close_connection = True

        with pytest.raises(Undelivered, match=f"^{server.host}: {said}"):
            post(server.on(play), b"{}", {}, private=True)

    def test_a_body_without_end_is_not_read(self, server: Server) -> None:
        """The status says all."""
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        post(server.on(lambda handler: handler.drip(head, b"1\r\nx\r\n")), b"{}", {}, private=True)

    @pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
    def test_no_proxy_is_asked(self, server: Server, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """It would look the name up again, and see what is sent."""
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
        post(server.serving(b""), b"{}", {}, private=True)
        assert len(server.seen) == 1


def certificate(folder: Path, name: str) -> Path:
    """A certificate for a name that nobody else has signed, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    path = folder / "server.pem"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run(made, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


class TestTls:
    @pytest.fixture
    def port(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
        """The port of a server with a certificate for hooks.example.com, which is trusted."""
        path = certificate(tmp_path, "hooks.example.com")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        server = Server()
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with listening(server) as started:
            started.serving(b"")
            yield started.server_port

    def test_the_certificate_must_be_the_names(self, port: int) -> None:
        """Although the connection is made to an address."""
        post(f"https://hooks.example.com:{port}/prices", b"{}", {}, private=True, lookup=lambda *_: ["127.0.0.1"])
        with pytest.raises(Undelivered, match="its certificate was not accepted"):
            post(f"https://other.example.com:{port}/prices", b"{}", {}, private=True, lookup=lambda *_: ["127.0.0.1"])
        with pytest.raises(Undelivered, match="its certificate was not accepted"):
            post(f"https://127.0.0.1:{port}/prices", b"{}", {}, private=True)

    def test_a_certificate_that_nobody_vouches_for_is_refused(self, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """As everywhere."""
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        with pytest.raises(Undelivered, match="its certificate was not accepted"):
            post(f"https://hooks.example.com:{port}/prices", b"{}", {}, private=True, lookup=lambda *_: ["127.0.0.1"])
