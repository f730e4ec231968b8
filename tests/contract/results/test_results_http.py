"""Kept results over HTTP, on every kind of database: kept, listed, read in every format, signed, shared and deleted."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from flask import Flask
from flask.testing import FlaskClient
from openpyxl import load_workbook

from providers.offer import Fetched
from providers.snapshot import SnapshotProvider
from service.api.resources.comparison import COMPARISON
from service.api.resources.procurement import FLEET
from service.api.resources.programs import EXAMPLE as PROGRAM
from service.api.resources.results.results import EXAMPLE
from service.api.resources.scaling import OPTIMUM
from service.api.resources.serving import EXAMPLE as SERVING
from service.api.resources.training.estimate import EXAMPLE as ESTIMATE
from service.domain.results import KINDS as KIND_NAMES
from service.formats.documents.results.content import MODULES
from service.formats.documents.results.render import MEDIA_TYPES, WRITERS
from service.formats.signed_records import verify
from service.prices.catalog import PriceCatalog
from service.prices.snapshots import SnapshotRepository
from service.schemas.results.kinds import KINDS
from tests.contract.doors import is_problem
from tests.contract.older_answers import without_newer_fields
from workers import tasks

Body = dict[str, Any]
URL = "/v1/results"
REQUESTS: dict[str, tuple[str, Body]] = {
    "estimate": ("/v1/estimate", ESTIMATE),
    "compare": ("/v1/compare", COMPARISON),
    "program": ("/v1/estimate/program", PROGRAM),
    "buy_or_rent": ("/v1/buy-or-rent", FLEET),
    "optimal": ("/v1/optimal", OPTIMUM),
    "serving": ("/v1/serving", SERVING),
}
UNSOLD: Body = {
    "model": {"params": "7B"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "NVIDIA-H800-80GB-SXM", "count": 64},
}
MARKS = {"html": b"<!doctype html>", "md": b"# ", "xlsx": b"PK", "png": b"\x89PNG", "pdf": b"%PDF"}


class WithoutAzure(SnapshotProvider):
    """Other prices than those that ship with the project, under another name."""

    def fetch(self) -> Fetched:
        shipped = super().fetch()
        kept = tuple(offer for offer in shipped.offers if offer.provider in ("azure", "gcp"))
        return replace(shipped, offers=kept, snapshot="snapshot-others")


@pytest.fixture
def client(tracking_app: Flask) -> FlaskClient:
    """A client of the service on each database."""
    return tracking_app.test_client()


def kept(client: FlaskClient, body: Body = EXAMPLE) -> Body:
    """A result that is kept."""
    answer = client.post(URL, json=body)
    assert answer.status_code == 201, answer.text
    found: Body = answer.get_json()
    assert answer.headers["Location"] == f"{URL}/{found['id']}"
    return found


@contextmanager
def later(app: Flask, by: timedelta) -> Iterator[None]:
    """The service so much later."""
    context = app.extensions["context"]
    app.extensions["context"] = replace(context, clock=lambda: context.clock() + by)
    try:
        yield
    finally:
        app.extensions["context"] = context


class TestTables:
    def test_every_kind_is_in_every_table(self) -> None:
        """A new kind is added to all of them."""
        assert set(KIND_NAMES) == set(KINDS) == set(WRITERS) == set(MODULES) == set(REQUESTS)
        assert {name for writers in WRITERS.values() for name in writers} <= set(MEDIA_TYPES)


class TestKeeping:
    @pytest.mark.parametrize("kind", KIND_NAMES)
    def test_the_answer_is_that_of_the_kinds_own_address(self, client: FlaskClient, kind: str) -> None:
        """In bytes whose digest is told; its title is the summary unless one is stated."""
        path, request = REQUESTS[kind]
        found = kept(client, {"kind": kind, "request": request})
        own = client.post(path, json=request)
        plain = client.get(f"/r/{found['id']}?format=json")
        assert plain.data == own.data.rstrip(b"\n")
        assert hashlib.sha256(plain.data).hexdigest() == found["sha256"]
        assert found["answer"] == own.get_json()
        assert found["request"] == request
        assert found["title"][:100] == found["answer"]["summary"]["text"][:100]
        assert (found["price_snapshot"], found["engine_version"]) == (found["answer"]["price_snapshot"], found["answer"]["engine_version"])
        assert found["url"] == f"http://localhost/r/{found['id']}"

    def test_it_does_not_change_when_prices_do(self, client: FlaskClient, tracking_app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor does the same request against the same snapshot answer anything else."""
        request = {**ESTIMATE, "price": {"provider": "verda", "pricing": "on_demand"}, "hardware": {"accelerator": "H100", "count": 64}}
        found = kept(client, {"kind": "estimate", "request": request})
        address = f"{URL}/{found['id']}"
        before = [client.get(address + form).data for form in ("", "?format=json", "?format=md", "/record")]
        context = tracking_app.extensions["context"]
        moved = replace(context, catalog=PriceCatalog(SnapshotRepository(WithoutAzure, context.store)))
        pinned = {**request, "price": {**request["price"], "snapshot": found["price_snapshot"]}}
        assert client.post("/v1/estimate", json=pinned).get_json() == found["answer"]
        monkeypatch.setitem(tracking_app.extensions, "context", moved)
        assert client.post("/v1/estimate", json=request).status_code == 422  # no such offer any more
        assert [client.get(address + form).data for form in ("", "?format=json", "?format=md", "/record")] == before

    def test_the_same_key_keeps_one_result(self, client: FlaskClient) -> None:
        """A repeat has the first answer; another request under the key is refused."""
        headers = {"Idempotency-Key": f"keep-{uuid.uuid4().hex}"}
        first = client.post(URL, json=EXAMPLE, headers=headers)
        again = client.post(URL, json=EXAMPLE, headers=headers)
        assert (again.status_code, again.data, again.headers["Location"]) == (201, first.data, first.headers["Location"])
        is_problem(client.post(URL, json={**EXAMPLE, "title": "another"}, headers=headers), 422)
        listed = client.get(f"{URL}?limit=1").get_json()["items"]
        assert listed[0]["id"] == first.get_json()["id"]

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"kind": "estimate", "request": {**ESTIMATE, "colour": 1}}, "/request/colour"),
            ({"kind": "estimate", "request": {**ESTIMATE, "data": {"tokens": -1}}}, "/request/data/tokens"),
            ({"kind": "estimate", "request": {**ESTIMATE, "model": {"preset": "llama-9"}}}, "/request/model/preset"),
            ({"kind": "estimate", "request": 3}, "/request"),
            ({"kind": "estimate"}, "/request"),
            ({"kind": "weather", "request": {}}, "/kind"),
            ({**EXAMPLE, "title": ""}, "/title"),
            ({**EXAMPLE, "title": "x" * 201}, "/title"),
            ({**EXAMPLE, "expires_in_days": 0}, "/expires_in_days"),
            ({**EXAMPLE, "expires_in_days": 10**9}, "/expires_in_days"),
        ],
    )
    def test_what_is_wrong_is_pointed_at(self, client: FlaskClient, body: Body, pointer: str) -> None:
        """Within the request too, whether its schema refuses it or its use case."""
        problem = is_problem(client.post(URL, json=body), 422)
        assert [entry["pointer"] for entry in problem["errors"]] == [pointer]

    def test_an_expired_result_is_gone(self, client: FlaskClient, tracking_app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
        """From the list, the address, the page and, once the worker has deleted what is old, the database."""
        found = kept(client, {**EXAMPLE, "expires_in_days": 1})
        with later(tracking_app, timedelta(days=1, seconds=1)):
            assert found["id"] not in client.get(URL).text
            for path in (f"{URL}/{found['id']}", f"{URL}/{found['id']}/record", f"/r/{found['id']}"):
                is_problem(client.get(path), 404)
            monkeypatch.setattr(tasks, "context", lambda: tracking_app.extensions["context"])
            tasks._forget()
        is_problem(client.get(f"{URL}/{found['id']}"), 404)

    def test_a_deleted_result_is_gone(self, client: FlaskClient) -> None:
        """And cannot be deleted twice."""
        found = kept(client)
        assert client.delete(f"{URL}/{found['id']}").status_code == 204
        for ask in (client.get, client.delete):
            is_problem(ask(f"{URL}/{found['id']}"), 404)


class TestListing:
    def test_it_has_pages_filters_and_no_answers(self, client: FlaskClient) -> None:
        """The newest first."""
        mark = f"mark {uuid.uuid4().hex}"
        made = [kept(client, {**EXAMPLE, "title": f"{mark} {at}"}) for at in range(3)]
        kept(client, {**EXAMPLE, "title": "another"})
        first = client.get(URL, query_string={"title": mark.upper(), "kind": "estimate", "limit": 2}).get_json()
        rest = client.get(URL, query_string={"title": mark, "limit": 2, "cursor": first["next_cursor"]}).get_json()
        assert [entry["id"] for entry in first["items"] + rest["items"]] == [result["id"] for result in reversed(made)]
        assert rest["next_cursor"] is None
        for entry in first["items"]:
            assert "answer" not in entry
            assert "request" not in entry
        assert client.get(URL, query_string={"title": mark, "kind": "compare"}).get_json()["items"] == []
        soon = client.get(URL, query_string={"title": mark, "expires_before": "2020-01-01T00:00:00Z"}).get_json()
        assert soon["items"] == []
        is_problem(client.get(URL, query_string={"kind": "weather"}), 422)


class TestFormats:
    @pytest.mark.parametrize("kind", KIND_NAMES)
    def test_every_kind_has_its_formats(self, client: FlaskClient, kind: str) -> None:
        """Each is what it says it is."""
        found = kept(client, {"kind": kind, "request": REQUESTS[kind][1], "title": "<b>A & B</b>"})
        address = f"{URL}/{found['id']}"
        for name in WRITERS[kind]:
            answer = client.get(f"{address}?format={name}")
            assert (answer.status_code, answer.content_type) == (200, MEDIA_TYPES[name]), name
            assert answer.data.startswith(MARKS[name]), name
        page = client.get(f"{address}?format=html").text
        assert "<b>A" not in page
        assert "&lt;b&gt;A &amp; B&lt;/b&gt;" in page

    def test_a_picture_needs_a_price(self, client: FlaskClient) -> None:
        """Where nobody sells the accelerator, no range of costs is known; the other formats are there, the PDF without a picture too."""
        found = kept(client, {"kind": "estimate", "request": UNSOLD})
        assert "no chart of this result" in is_problem(client.get(f"{URL}/{found['id']}?format=png"), 406)["detail"]
        assert client.get(f"{URL}/{found['id']}?format=pdf").data.startswith(MARKS["pdf"])

    def test_a_plan_kept_before_fields_were_there_has_its_documents(self, client: FlaskClient, tracking_app: Flask) -> None:
        """In every format and on its page; its JSON stays as it was kept."""
        whole, context = kept(client, {"kind": "program", "request": PROGRAM}), tracking_app.extensions["context"]
        detail = context.store.result("default", whole["id"], context.clock())
        old = json.dumps(without_newer_fields(whole["answer"]), separators=(",", ":")).encode()
        made = context.store.create_result(replace(detail, row=replace(detail.row, id=f"{uuid.uuid4()}"), answer_json=old))
        for name in WRITERS["program"]:
            answer = client.get(f"{URL}/{made.row.id}?format={name}")
            assert answer.status_code == 200, name
            assert answer.data.startswith(MARKS[name]), name
        assert client.get(f"/r/{made.row.id}").status_code == 200
        assert client.get(f"/r/{made.row.id}?format=json").data == old

    def test_a_title_that_nobody_stated_is_the_whole_summary_once(self, client: FlaskClient) -> None:
        """However long; a stated one stands above it."""
        for more, paragraphs in (({}, 0), ({"title": "For the board"}, 1)):
            found = kept(client, {"kind": "serving", "request": SERVING, **more})
            text = found["answer"]["summary"]["text"]
            assert len(text) > 200
            page = client.get(f"{URL}/{found['id']}?format=html").text
            assert page.count(f'<p class="answer">{text}</p>') == paragraphs
            assert page.count(f"<h1>{more.get('title', text)}</h1>") == 1

    def test_accept_chooses_too(self, client: FlaskClient) -> None:
        """JSON is the whole result; what nobody can have is refused."""
        found = kept(client)
        address = f"{URL}/{found['id']}"
        assert client.get(address, headers={"Accept": "text/markdown"}).content_type == MEDIA_TYPES["md"]
        assert client.get(address, headers={"Accept": "*/*"}).get_json() == found
        is_problem(client.get(address, headers={"Accept": "image/gif"}), 406)

    def test_the_answer_stands_in_the_result_byte_for_byte(self, client: FlaskClient) -> None:
        """As its last member; a client that has it gets a 304."""
        found = kept(client)
        whole = client.get(f"{URL}/{found['id']}")
        plain = client.get(f"/r/{found['id']}?format=json").data
        assert whole.data.endswith(b',"answer":' + plain + b"}")
        assert client.get(f"{URL}/{found['id']}?format=json").data == whole.data
        again = client.get(f"{URL}/{found['id']}", headers={"If-None-Match": whole.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")

    def test_a_workbook_has_numbers_and_is_the_same_every_time(self, client: FlaskClient) -> None:
        """Costs can be added up; text is never a formula."""
        found = kept(client, {"kind": "estimate", "request": ESTIMATE, "title": "=1+1"})
        content = client.get(f"{URL}/{found['id']}?format=xlsx").data
        assert content == client.get(f"{URL}/{found['id']}?format=xlsx").data
        book = load_workbook(io.BytesIO(content))
        assert book["Result"]["A1"].value == "=1+1"
        assert book["Result"]["A1"].data_type == "s"
        cost = next(row for row in book["Result"].iter_rows(values_only=True) if row[0] == "cost")
        usd = found["answer"]["cost"]["total_usd"]
        assert cost[1:4] == (usd["p10"], usd["p50"], usd["p90"])

    def test_a_chart_of_what_has_no_price_is_refused(self, client: FlaskClient) -> None:
        """The page shows the rest."""
        request = {"model": {"params": "7B"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "Trainium3", "count": 64}}
        found = kept(client, {"kind": "estimate", "request": request})
        assert found["answer"]["cost"]["total_usd"] is None
        assert client.get(f"{URL}/{found['id']}?format=html").status_code == 200
        assert client.get(f"{URL}/{found['id']}?format=xlsx").status_code == 200
        assert "no price is known" in is_problem(client.get(f"{URL}/{found['id']}?format=png"), 406)["detail"]


class TestTheRecord:
    def test_another_implementation_verifies_it(self, client: FlaskClient) -> None:
        """With the published key, by cryptography's Ed25519 and RFC 7515 by hand; it has all that an audit asks for."""
        found = kept(client, {"kind": "serving", "request": SERVING})
        answer = client.get(f"{URL}/{found['id']}/record")
        assert answer.content_type == "application/jose"
        header, payload, signature = answer.data.split(b".")
        keys = {key["kid"]: key for key in client.get("/.well-known/jwks.json").get_json()["keys"]}
        key = keys[json.loads(decoded(header))["kid"]]
        Ed25519PublicKey.from_public_bytes(decoded(key["x"].encode())).verify(decoded(signature), header + b"." + payload)
        record = json.loads(decoded(payload))
        assert record["answer"] == found["answer"]
        assert record["request"] == SERVING
        for name in ("id", "kind", "title", "created_at", "price_snapshot", "engine_version"):
            assert record[name] == found[name]
        assert record["answer_sha256"] == found["sha256"]
        sellers = {option["price"]["provider"] for option in (found["answer"]["best"], *found["answer"]["alternatives"])}
        assert {offer["provider"] for offer in record["offers"]} >= sellers
        assert all(offer["source"] for offer in record["offers"])
        assert verify(answer.data, list(keys.values())) == record

    def test_no_published_key_is_private(self, client: FlaskClient) -> None:
        """Only what verifies."""
        kept(client)
        for key in client.get("/.well-known/jwks.json").get_json()["keys"]:
            assert set(key) == {"kty", "crv", "x", "kid", "alg", "use"}


def decoded(part: bytes) -> bytes:
    """Content of a base64url part."""
    return urlsafe_b64decode(part + b"=" * (-len(part) % 4))


class TestSharing:
    def shared(self, client: FlaskClient, found: Body, **more: Any) -> Body:
        """A new link."""
        answer = client.post(f"{URL}/{found['id']}/links", json=more)
        assert answer.status_code == 201, answer.text
        link: Body = answer.get_json()
        return link

    def test_a_page_is_for_nobody_else(self, client: FlaskClient) -> None:
        """Not kept by caches, not found by search engines, not told to other sites; no script runs on it."""
        found = kept(client)
        for address in (f"/r/{found['id']}", self.shared(client, found)["url"]):
            page = client.get(address)
            assert page.status_code == 200
            assert page.headers["Cache-Control"] == "no-store"
            assert page.headers["Referrer-Policy"] == "no-referrer"
            assert "noindex" in page.headers["X-Robots-Tag"]
            policy = page.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src" not in policy
            assert "unsafe-inline" not in policy
            assert "<script" not in page.text
            assert found["title"] in page.text
            assert found["sha256"] in page.text

    def test_its_links_to_files_work(self, client: FlaskClient) -> None:
        """With the token where a link has opened it."""
        link = self.shared(client, kept(client))
        page = client.get(link["url"]).text
        token = link["url"].partition("token=")[2]
        for name in ("json", "md", "xlsx", "png"):
            address = f"?format={name}&amp;token={token}"
            assert address in page
            answer = client.get(link["url"].partition("?")[0] + address.replace("&amp;", "&"))
            assert answer.content_type == MEDIA_TYPES[name]
            assert answer.headers["Cache-Control"] == "no-store"

    def test_links_are_listed_without_tokens_and_revoked(self, client: FlaskClient) -> None:
        """The address is shown once; a revoked link is as unknown as any."""
        found = kept(client)
        first, second = self.shared(client, found), self.shared(client, found, expires_in_days=30)
        listed = client.get(f"{URL}/{found['id']}/links")
        assert [entry["id"] for entry in listed.get_json()["items"]] == [first["id"], second["id"]]
        for link in (first, second):
            assert link["url"].partition("token=")[2] not in listed.text
        assert client.delete(f"{URL}/{found['id']}/links/{first['id']}").status_code == 204
        is_problem(client.get(first["url"]), 404)
        is_problem(client.delete(f"{URL}/{found['id']}/links/{first['id']}"), 404)
        assert client.get(second["url"]).status_code == 200

    def test_an_expired_link_opens_nothing(self, client: FlaskClient, tracking_app: Flask) -> None:
        """While the result is still there for its team."""
        found = kept(client)
        link = self.shared(client, found, expires_in_days=1)
        with later(tracking_app, timedelta(days=1, seconds=1)):
            is_problem(client.get(link["url"]), 404)
            assert client.get(f"/r/{found['id']}").status_code == 200

    @pytest.mark.parametrize("change", [lambda token: "", lambda token: token[:-1], lambda token: token.swapcase(), lambda token: "x" * 43])
    def test_only_the_token_opens_it(self, client: FlaskClient, change: Callable[[str], str]) -> None:
        """And only its own result."""
        found, other = kept(client), kept(client)
        address, _, token = self.shared(client, found)["url"].partition("?token=")
        wrong = client.get(f"{address}?token={change(token)}")
        assert wrong.status_code in (404, 422)
        is_problem(client.get(f"/r/{other['id']}?token={token}"), 404)

    def test_a_repeat_under_a_key_makes_one_link_and_keeps_no_token(self, client: FlaskClient, tracking_app: Flask) -> None:
        """The stored answer has no address, so that no token is in the database."""
        found = kept(client)
        headers = {"Idempotency-Key": f"link-{uuid.uuid4().hex}"}
        first = client.post(f"{URL}/{found['id']}/links", json={}, headers=headers).get_json()
        again = client.post(f"{URL}/{found['id']}/links", json={}, headers=headers)
        assert again.status_code == 201
        assert again.get_json() == first | {"url": None}
        assert len(client.get(f"{URL}/{found['id']}/links").get_json()["items"]) == 1
        assert client.get(first["url"]).status_code == 200
