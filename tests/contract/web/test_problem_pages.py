"""Problems in a browser: a page with the way on, wherever it goes wrong; programs get problem+json."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from service.config import Settings
from tests.contract.doors import house
from tests.contract.web.visitor import text_of, words_of

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("address", ["/nowhere", "/estimat", "/r/nobodys", "/programs/nobodys", "/programs/nobodys/runs/none"])
def test_a_browser_gets_a_page_that_leads_on(client: FlaskClient, address: str) -> None:
    """With the policy of pages, for an address that is not there and for a thing that is not there."""
    found = client.get(address, headers=BROWSER)
    assert found.status_code == 404
    assert "Not found" in words_of(found)
    assert '<a href="/programs">programs</a>' in text_of(found)
    assert "script-src 'self'" in found.headers["Content-Security-Policy"]


@pytest.mark.parametrize("accept", ["application/json", "*/*"])
def test_a_program_gets_a_problem(client: FlaskClient, accept: str) -> None:
    found = client.get("/nowhere", headers={"Accept": accept})
    assert (found.status_code, found.content_type) == (404, "application/problem+json")


def test_the_api_answers_with_problems_alone(client: FlaskClient) -> None:
    """Also to a person who looks at an address of it."""
    assert client.get("/v1/track/programs/nobodys", headers=BROWSER).content_type == "application/problem+json"


def test_an_error_of_the_service_has_what_to_quote(settings: Settings) -> None:
    with house(settings) as doors:
        doors.app.add_url_rule("/broken", view_func=lambda: str(1 / 0))
        found = doors.app.test_client().get("/broken", headers=BROWSER)
    assert found.status_code == 500
    assert f"Request {found.headers['X-Request-Id']}" in words_of(found)


def test_what_is_said_is_a_sentence(client: FlaskClient) -> None:
    assert "There is no program of this id." in words_of(client.get("/programs/nobodys", headers=BROWSER))
