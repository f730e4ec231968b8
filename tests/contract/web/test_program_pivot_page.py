"""The button of a decided gate that goes on with its pivot: it shows what changes, asks, and does what the API does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.contract.tracking.test_gates_http import decide, run_of, tracked
from tests.contract.tracking.tracked_program import Body
from tests.contract.web.visitor import text_of, words_of
from tests.support.service import served
from tests.unit.usecases.programs.test_branches import PIVOT

HTTPS = "https://localhost"
QUERY = "pivot_at=validation&pivot_from=2025-08-21"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys."""
    with served(tmp_path_factory.mktemp("pivots")) as made:
        yield made


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A program whose gate after validation is decided: pivot."""
    made = tracked(client)
    decide(client, run_of(client, made, "validation", "scale check", 0.5), "validation", "pivot")
    return made


def sent_by(page: Any) -> dict[str, str]:
    """What the button that asks sends."""
    form = text_of(page).partition('method="post"')[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_a_decided_pivot_has_a_button(client: FlaskClient, program: Body) -> None:
    """Of that gate alone; it leads to the page that asks."""
    page = text_of(client.get(f"/programs/{program['id']}"))
    assert re.findall(r'href="(/programs/[^"]+/pivot\?[^"]+)"', page) == [f"/programs/{program['id']}/pivot?pivot_at=validation"]
    assert f"Go on with {PIVOT['name']}" in page
    assert "/pivot?" not in text_of(client.get(f"/programs/{tracked(client)['id']}"))


def test_looking_changes_nothing(client: FlaskClient, program: Body) -> None:
    """It says what changes, and which runs are closed."""
    page = client.get(f"/programs/{program['id']}/pivot?{QUERY}")
    assert page.status_code == 200
    words = words_of(page)
    assert "These runs are closed, and their plan is what they did: ablations, scale check" in words
    assert PIVOT["name"] in words
    assert "budget, USD" in words
    assert client.get(f"/v1/track/programs/{program['id']}").get_json() == program


def test_confirmed_it_goes_on_as_over_the_api(client: FlaskClient, program: Body) -> None:
    """The plan is the pivot's, the runs are closed, the difference is shown, and the button is gone."""
    address = f"/programs/{program['id']}"
    answer = client.post(f"{address}/pivot", data=sent_by(client.get(f"{address}/pivot?{QUERY}")), base_url=HTTPS)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{address}/versions?before=1&after=2")
    body = client.get(f"/v1/track/programs/{program['id']}").get_json()
    assert body["pivoted"] == {"gate": "validation", "program": PIVOT["name"], "from": "2025-08-21"}
    runs = client.get(f"/v1/track/programs/{program['id']}/runs").get_json()["items"]
    assert {run["state"] for run in runs} == {"closed"}
    assert PIVOT["name"] in words_of(client.get(answer.headers["Location"]))
    assert "/pivot?" not in text_of(client.get(address))
    assert "The plan is that of the pivot" in words_of(client.get(f"{address}?tab=plan"))


def test_a_program_that_has_changed_is_looked_at_again(client: FlaskClient, program: Body) -> None:
    """409, and nothing done."""
    sent = sent_by(client.get(f"/programs/{program['id']}/pivot?{QUERY}"))
    client.patch(f"/v1/track/programs/{program['id']}", json={"name": "renamed"}, headers={"If-Match": '"1"'})
    late = client.post(f"/programs/{program['id']}/pivot", data=sent, base_url=HTTPS)
    assert (late.status_code, sent_by(late)["version"]) == (409, "2")
    assert client.get(f"/v1/track/programs/{program['id']}").get_json()["pivoted"] is None


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("pivot_at=prototype", "no pivot of the gate prototype is known"),
        ("pivot_at=nothing", "must be one of"),
        ("", "no pivot of the gate"),
        ("pivot_at=validation&pivot_from=soon", "must be a"),
    ],
)
def test_what_cannot_be_followed_is_said(client: FlaskClient, program: Body, query: str, error: str) -> None:
    """Without a button."""
    page = client.get(f"/programs/{program['id']}/pivot?{query}")
    assert page.status_code == 422
    assert error in words_of(page)
    assert not sent_by(page).get("version")


def test_an_undecided_pivot_is_not_followed(client: FlaskClient) -> None:
    """Decide first."""
    undecided = tracked(client)
    page = client.get(f"/programs/{undecided['id']}/pivot?{QUERY}")
    assert page.status_code == 422
    assert "decide first" in words_of(page)
