"""/results/{id}/links: who may open a kept result is seen and changed on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from service.config import load_settings
from tests.contract.doors import House, house
from tests.contract.web.visitor import HTTPS, Visitor, text_of, words_of

KEPT = {
    "kind": "estimate",
    "request": {"model": {"params": "7B"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 256}},
}
MADE = re.compile(r'id="made" value="([^"]+)"')


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with two teams and keys of every kind."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("links") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


@pytest.fixture
def result(doors: House) -> str:
    """Id of a kept result of ours."""
    return str(doors.ask("ours", "POST", "/v1/results", json=KEPT).get_json()["id"])


@pytest.fixture
def visitor(doors: House) -> Visitor:
    """Somebody of our team who may write."""
    made = Visitor(doors)
    made.sign_in("ours")
    return made


def shared(visitor: Visitor, result: str, **fields: str) -> str:
    """Address of a new link, within the service."""
    page = f"/results/{result}/links"
    answer = visitor.send(page, {"csrf_token": visitor.form_token(page)} | fields)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    (found,) = MADE.findall(text_of(answer))
    return unescape(found).removeprefix(HTTPS)


def test_a_kept_result_leads_its_team_there(visitor: Visitor, result: str) -> None:
    """And nobody who came by a link."""
    assert f'href="/results/{result}/links"' in text_of(visitor.open(f"/r/{result}"))
    assert "/links" not in text_of(visitor.open(shared(visitor, result)))


def test_keeping_leads_to_sharing_at_once(visitor: Visitor) -> None:
    """Where that is what is wanted."""
    page = "/estimate?model=7B&data.tokens=1T&hardware.accelerator=H100&hardware.count=256"
    token = visitor.form_token(page)
    kept = [visitor.send(page.replace("?", "/keep?"), {"csrf_token": token, **more}) for more in ({}, {"then": "share"})]
    assert [each.status_code for each in kept] == [303, 303]
    assert re.fullmatch(r"/r/[\w-]+", kept[0].headers["Location"])
    assert re.fullmatch(r"/results/[\w-]+/links", kept[1].headers["Location"])
    assert "Make a link" in text_of(visitor.open(kept[1].headers["Location"]))


def test_a_kept_result_is_asked_again_with_changes(visitor: Visitor, result: str) -> None:
    """Its request stands in the form; the page leads there, and a page of a link does not."""
    assert f'href="/results/{result}/again"' in text_of(visitor.open(f"/r/{result}"))
    assert "/again" not in text_of(visitor.open(shared(visitor, result)))
    leads = visitor.open(f"/results/{result}/again")
    assert leads.status_code == 303
    form = text_of(visitor.open(leads.headers["Location"]))
    assert 'name="hardware.count" type="text" value="256"' in form
    assert "About $" in form


def test_what_no_page_asks_is_not_asked_again(doors: House, visitor: Visitor) -> None:
    asked = {"kind": "optimal", "request": {"budget": {"flops": 1e21}, "hardware": {"accelerator": "H100", "count": 64}}}
    kept = str(doors.ask("ours", "POST", "/v1/results", json=asked).get_json()["id"])
    assert "/again" not in text_of(visitor.open(f"/r/{kept}"))
    assert visitor.open(f"/results/{kept}/again").status_code == 404


def test_a_kept_result_speaks_to_people(visitor: Visitor, result: str) -> None:
    """Fields in words, days without their hours, choices without underscores."""
    page = words_of(visitor.open(f"/r/{result}"))
    assert "hardware: accelerators a node" in page
    assert "hardware.accelerators_per_node" not in page
    assert " on demand " in page
    assert "T00:00:00Z" not in page


def test_a_link_opens_the_result_to_whoever_has_it(doors: House, visitor: Visitor, result: str) -> None:
    """Signed in elsewhere or not at all; its address is shown once, and it opens nothing once it is revoked."""
    link = shared(visitor, result, expires_in_days="30")
    other = Visitor(doors)
    other.sign_in("theirs")
    for somebody in (Visitor(doors), other):
        assert somebody.open(link).status_code == 200
    page = f"/results/{result}/links"
    listed = text_of(visitor.open(page))
    assert link.partition("token=")[2] not in listed
    (revoke,) = re.findall(r'action="([^"]+/revoke)"', listed)
    assert visitor.send(revoke, {"csrf_token": visitor.form_token(page)}).status_code == 303
    assert "No link yet" in words_of(visitor.open(page))
    assert Visitor(doors).open(link).status_code == 404


def test_results_of_other_teams_are_not_known(doors: House, visitor: Visitor) -> None:
    """Neither seen nor shared."""
    theirs = doors.ask("theirs", "POST", "/v1/results", json=KEPT).get_json()["id"]
    assert visitor.open(f"/results/{theirs}/links").status_code == 404
    assert visitor.send(f"/results/{theirs}/links", {"csrf_token": visitor.form_token("/settings")}).status_code == 404


def test_whoever_may_only_read_sees_links_and_makes_none(doors: House, result: str) -> None:
    """The form is not there, and what is sent all the same is refused."""
    reader = Visitor(doors)
    reader.sign_in("we may read")
    page = f"/results/{result}/links"
    assert "Make a link" not in text_of(reader.open(page))
    assert reader.send(page, {"csrf_token": reader.form_token(page)}).status_code == 403


@pytest.mark.parametrize("days", ["0", "many", "1e9"])
def test_what_is_wrong_stands_beside_its_field(visitor: Visitor, result: str, days: str) -> None:
    """With what was typed."""
    page = f"/results/{result}/links"
    answer = visitor.send(page, {"csrf_token": visitor.form_token(page), "expires_in_days": days})
    assert answer.status_code == 422
    assert 'id="e-expires_in_days"' in text_of(answer)
    assert f'value="{days}"' in text_of(answer)
