"""Who sees pages: everybody without keys, with keys whoever has signed in with one, and with that key's scopes only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from service.api.http.sessions import ATTEMPTS, COOKIE
from service.config import Settings, load_settings
from service.context import AppContext
from service.usecases.web_sessions import LONGEST, begin_session
from service.web.blueprint import OPEN_TO_ALL
from tests.contract.doors import House, house, key_id
from tests.contract.web.visitor import Visitor, text_of, words_of

COMPARISON = "model=7B&workload.data.tokens=100B&candidates.accelerators=H100&candidates.counts=64&limit=5"
ESTIMATE = "model=7B&data.tokens=1T&hardware.accelerator=H100&hardware.count=256"
CHROMIUM = ",".join(
    (
        "text/html",
        "application/xhtml+xml",
        "application/xml;q=0.9",
        "image/avif",
        "image/webp",
        "image/apng",
        "*/*;q=0.8",
        "application/signed-exchange;v=b3;q=0.7",
    )
)
"""What a browser says it takes of an address that was typed."""
PURCHASE = "demand.accelerator=H100&demand.count=256&own.0.capex_usd_per_accelerator=32000&trials=200"


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with two teams and keys of every kind."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("web") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


@pytest.fixture
def visitor(doors: House) -> Visitor:
    """Somebody who is not signed in."""
    return Visitor(doors)


def test_every_page_but_the_sign_in_needs_a_session(doors: House, visitor: Visitor) -> None:
    """And changes nothing without the session's token, whatever is sent."""
    pages = [rule for rule in doors.app.url_map.iter_rules() if rule.endpoint.startswith("web.")]
    assert {rule.endpoint for rule in pages} > OPEN_TO_ALL
    signed_in = Visitor(doors)
    signed_in.sign_in("ours")
    for rule in pages:
        address = re.sub("<[^>]*>", "x", rule.rule)
        if rule.endpoint in OPEN_TO_ALL:
            continue
        if "POST" in (rule.methods or ()):
            assert signed_in.send(address).status_code == 403, address
            assert visitor.send(address).status_code == 303, address
        else:
            assert visitor.open(address).status_code == 303, address


@pytest.mark.parametrize("path", ["/", "/estimate", f"/estimate?{ESTIMATE}", "/estimate/cost.svg", "/estimate/levers"])
def test_a_page_leads_to_the_sign_in_and_back(visitor: Visitor, path: str) -> None:
    """Nothing of the team's is answered before."""
    led = visitor.open(path)
    assert (led.status_code, led.headers["Location"].partition("?")[0]) == (303, "/sign-in")
    signed = visitor.sign_in("ours", to=visitor.open(led.headers["Location"]).request.args["next"])
    assert (signed.status_code, signed.headers["Location"]) == (303, path)


def test_the_cookie_is_kept_from_scripts_and_other_sites(visitor: Visitor) -> None:
    """It holds neither the key nor its id."""
    cookie = visitor.sign_in("ours").headers["Set-Cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} < set(cookie.split("; "))
    assert key_id(visitor._tokens["ours"]) not in cookie


@pytest.mark.parametrize("key", ["revoked", "expired"])
def test_a_key_that_is_not_good_opens_nothing(visitor: Visitor, key: str) -> None:
    """The form says why, beside its field."""
    refused = visitor.sign_in(key)
    assert refused.status_code == 422
    assert key in words_of(refused)
    assert "Set-Cookie" not in refused.headers
    assert visitor.open("/").status_code == 303


@pytest.mark.parametrize(
    "to", ["https://evil.test/", "//evil.test", "/\\evil.test", "javascript:alert(1)", "evil.test", "\thttps://evil.test"]
)
def test_nobody_is_led_to_another_site(visitor: Visitor, to: str) -> None:
    """An address that is no page of this service is the first page."""
    assert visitor.sign_in("ours", to=to).headers["Location"] == "/"


def test_a_session_may_do_what_its_key_may(visitor: Visitor) -> None:
    """Who may only read keeps nothing."""
    visitor.sign_in("we may read")
    assert visitor.open(f"/estimate?{ESTIMATE}").status_code == 200
    refused = visitor.send(f"/estimate/keep?{ESTIMATE}", {"csrf_token": visitor.form_token()})
    assert refused.status_code == 403
    assert "scope write" in words_of(refused)


@pytest.mark.parametrize("address", [f"/estimate/keep?{ESTIMATE}", f"/compare/keep?{COMPARISON}", f"/buy-or-rent/keep?{PURCHASE}"])
def test_a_kept_answer_opens_for_its_team_alone(doors: House, visitor: Visitor, address: str) -> None:
    """Another team is told that there is no such result."""
    visitor.sign_in("ours")
    kept = visitor.send(address, {"csrf_token": visitor.form_token()})
    assert kept.status_code == 303
    assert visitor.open(kept.headers["Location"]).status_code == 200
    other = Visitor(doors)
    assert other.open(kept.headers["Location"]).status_code == 401
    led = other.open(kept.headers["Location"], headers={"Accept": CHROMIUM})
    assert (led.status_code, led.headers["Location"]) == (303, f"/sign-in?next={quote(kept.headers['Location'], safe='')}")
    other.sign_in("theirs")
    assert other.open(kept.headers["Location"]).status_code == 404


def test_a_form_of_no_session_changes_nothing(doors: House, visitor: Visitor) -> None:
    """Nor one with the token of another session."""
    visitor.sign_in("ours")
    stranger = Visitor(doors)
    stranger.sign_in("ours")
    for token in ("", "0" * 64, stranger.form_token()):
        assert visitor.send(f"/estimate/keep?{ESTIMATE}", {"csrf_token": token}).status_code == 403


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.test"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])
def test_a_form_of_another_site_changes_nothing(visitor: Visitor, headers: dict[str, str]) -> None:
    """Not even with the right token, nor does it sign anybody in."""
    visitor.sign_in("ours")
    token = visitor.form_token()
    assert visitor.send("/sign-out", {"csrf_token": token}, headers=headers).status_code == 403
    assert visitor.send("/sign-in", {"api_key": visitor._tokens["ours"]}, headers=headers).status_code == 403


def test_signing_out_ends_the_session(doors: House, visitor: Visitor) -> None:
    """Also where somebody has copied the cookie; others go on."""
    visitor.sign_in("ours")
    other = Visitor(doors)
    other.sign_in("ours")
    cookie = visitor._client.get_cookie(COOKIE, domain="localhost")
    assert cookie is not None
    assert visitor.send("/sign-out", {"csrf_token": visitor.form_token()}).status_code == 303
    visitor._client.set_cookie(COOKIE, cookie.value, domain="localhost", secure=True)
    assert visitor.open("/").status_code == 303
    assert other.open("/").status_code == 200


def test_signing_out_everywhere_ends_all_sessions_of_the_key(doors: House, visitor: Visitor) -> None:
    """Those of other keys go on."""
    other, colleague = Visitor(doors), Visitor(doors)
    for who, key in ((visitor, "ours"), (other, "ours"), (colleague, "we may read")):
        who.sign_in(key)
    visitor.send("/sign-out", {"csrf_token": visitor.form_token(), "everywhere": "yes"})
    assert [who.open("/").status_code for who in (visitor, other, colleague)] == [303, 303, 200]


def test_a_session_ends_with_its_day_and_with_its_key(doors: House) -> None:
    """Whichever comes first; a stored session that has ended is deleted with the next one that begins."""
    context: AppContext = doors.context
    authenticator = doors.app.extensions["authenticator"]
    begun, _ = begin_session(context, authenticator, doors.tokens["they may read"])
    assert begun.expires_at - begun.created_at == LONGEST
    later = replace(context, clock=lambda: begun.expires_at + timedelta(seconds=1))
    assert context.store.web_session(begun.digest, begun.expires_at - timedelta(seconds=1)) == begun
    assert context.store.web_session(begun.digest, begun.expires_at) is None
    begin_session(later, authenticator, doors.tokens["theirs"])
    assert context.store.web_session(begun.digest, begun.created_at) is None


def test_a_revoked_key_ends_its_sessions(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the second that keys are remembered for."""
    with house(settings) as doors:
        visitor = Visitor(doors)
        visitor.sign_in("ours")
        assert visitor.open("/").status_code == 200
        doors.context.store.revoke_key(key_id(doors.tokens["ours"]), doors.context.clock())
        monkeypatch.setattr("service.usecases.keys.KEY_CACHE_S", 1e-9)
        assert visitor.open("/").status_code == 303


def test_guessing_is_limited_by_address(settings: Settings) -> None:
    """The right key too is refused meanwhile."""
    with house(settings) as doors:
        visitor = Visitor(doors)
        guesses = [visitor.send("/sign-in", {"api_key": "outlay_guess"}).status_code for _ in range(ATTEMPTS)]
        refused = visitor.sign_in("ours")
        assert guesses == ATTEMPTS * [422]
        assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)


def test_without_keys_nobody_signs_in(client: Any) -> None:
    """Pages are open on this machine, and to no site that is made to resolve to it."""
    assert client.get("/").status_code == 200
    assert "Sign out" not in text_of(client.get("/"))
    assert client.get("/", base_url="http://rebound.test").status_code == 421
    assert client.post(f"/estimate/keep?{ESTIMATE}", headers={"Origin": "https://evil.test"}).status_code == 403
