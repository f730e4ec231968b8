"""Pages of other sites cannot use a service without API keys through its user's browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import Settings, load_settings, to_env
from service.usecases.keys import Authenticator, make_key

PROGRAMS = "/v1/track/programs"
PROGRAM = {"name": "p"}
OTHER_SITE = {"Origin": "https://evil.example"}


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of a service without keys that is also called plan.internal."""
    app = create_app(replace(settings, allowed_hosts=("plan.internal",)))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        yield app.test_client()


def test_without_allowed_names_a_foreign_name_is_refused_all_the_same(settings: Settings) -> None:
    """421, not an error, with OUTLAY_ALLOWED_HOSTS unset."""
    app = create_app(load_settings(to_env(settings) | {"OUTLAY_ALLOWED_HOSTS": ""}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        assert app.test_client().get("/v1/offers", headers={"Host": "rebound.example"}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "outlay.localhost", "plan.internal:8080"])
def test_its_own_names_are_answered(client: FlaskClient, host: str) -> None:
    """Loopback names and addresses, and the names in OUTLAY_ALLOWED_HOSTS."""
    assert client.get(PROGRAMS, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::1"]
)
def test_a_name_made_to_resolve_to_this_machine_is_refused(client: FlaskClient, host: str) -> None:
    """DNS rebinding reads nothing: the browser sends the page's name as Host; health stays open to supervisors."""
    answer = client.get(PROGRAMS, headers={"Host": host})
    assert (answer.status_code, answer.get_json()["type"]) == (421, "/problems/misdirected-request")
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        OTHER_SITE,
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:3000"},
    ],
)
@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data; boundary=x"])
def test_a_page_of_another_site_changes_nothing(client: FlaskClient, headers: dict[str, str], kind: str) -> None:
    """With the content types that need no permission of the browser too; nothing is written."""
    sent = client.post("/v1/track/imports?kind=sacct", data=b"JobID|State", headers={**headers, "Content-Type": kind})
    assert sent.status_code == 403
    assert client.post(PROGRAMS, json=PROGRAM, headers=headers).status_code == 403
    assert client.get(PROGRAMS).get_json()["items"] == []


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}])
def test_its_own_pages_and_programs_may_write(client: FlaskClient, headers: dict[str, str]) -> None:
    """Requests of this service's pages, and of whatever is no browser."""
    assert client.post(PROGRAMS, json=PROGRAM, headers=headers).status_code == 201


def test_with_keys_the_key_decides(client: FlaskClient) -> None:
    """A browser holds no key: where there are keys, names and origins do not matter."""
    app = client.application
    _, token = make_key(app.extensions["context"], "a", "k", ("read", "write"), "never")
    app.extensions["authenticator"] = Authenticator(app.extensions["context"])
    headers = {"Authorization": f"Bearer {token}", "Host": "plan.example", **OTHER_SITE}
    assert client.post(PROGRAMS, json=PROGRAM, headers=headers).status_code == 201
