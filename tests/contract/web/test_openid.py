"""Signing in with an OpenID Connect issuer: who is let in as what, and all that must not be believed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from providers.http import Http
from service.api.http.sessions import ATTEMPTS, COOKIE
from service.cache import MemoryCache
from service.config import Settings, load_settings
from service.domain.teams import Key
from service.usecases.openid import KEYS_AGAIN_S, KEYS_AGE_S, LIMITS, OUTAGE_S, Issuer
from service.web.pages.openid import ID_TOKEN_COOKIE, LONGEST_ID_TOKEN
from tests.contract.doors import House, house
from tests.contract.web.visitor import HTTPS, Visitor, text_of, words_of
from tests.support.openid_issuer import CLIENT, SECRET, StandIn, served
from tests.support.servers import DEADLINE_S

PATIENT = replace(LIMITS, connect_s=DEADLINE_S, read_s=DEADLINE_S, total_s=DEADLINE_S)
BACK = "https://localhost/sign-in/callback"
US = {"outlay_team": "ours", "outlay_role": "editor", "email": "ada@example.com"}


class Ticks:
    """A clock that stands until it is moved [s]."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(scope="module")
def served_issuer() -> Iterator[StandIn]:
    """An issuer on this machine."""
    with served() as made:
        yield made


@pytest.fixture
def issuer(served_issuer: StandIn) -> StandIn:
    """The same as it should be: it knows one of us."""
    served_issuer.claims, served_issuer.sign, served_issuer.is_away = dict(US), served_issuer.signed, False
    served_issuer.described = {}
    return served_issuer


def configured(folder: Any, issuer: StandIn) -> Settings:
    """Settings of a service that knows the issuer."""
    known = {"ISSUER": issuer.url, "CLIENT_ID": CLIENT, "CLIENT_SECRET": SECRET, "REDIRECT_URI": BACK}
    env = {f"OUTLAY_OIDC_{name}": value for name, value in known.items()}
    return load_settings({"OUTLAY_DATA_DIR": str(folder / "data"), "OUTLAY_OFFLINE": "1", **env})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, served_issuer: StandIn) -> Iterator[House]:
    """A service with two teams and keys of every kind that knows the issuer."""
    with house(configured(tmp_path_factory.mktemp("openid"), served_issuer)) as made:
        yield made


@pytest.fixture
def ticks() -> Ticks:
    """The clock of what the service knows of the issuer."""
    return Ticks()


@pytest.fixture
def doors(shared: House, issuer: StandIn, ticks: Ticks) -> House:
    """The service, which has not asked the issuer yet and has counted no attempts."""
    shared.app.extensions["openid"] = Issuer(shared.context.settings, Http(PATIENT, configured=(issuer.url,)), ticks)
    shared.app.extensions["counts"] = MemoryCache()
    return shared


@pytest.fixture
def visitor(doors: House) -> Visitor:
    """Somebody who is not signed in."""
    return Visitor(doors)


def sign_in(visitor: Visitor, issuer: StandIn, to: str = "/", **changed: str) -> Any:
    """The answer to the address that the issuer leads back to, with `changed` in it."""
    led = visitor.open("/sign-in/openid", query_string={"next": to})
    assert led.status_code == 303
    return visitor.open("/sign-in/callback", query_string=issuer.approve(led.headers["Location"]) | changed)


def test_a_person_signs_in_and_goes_on(visitor: Visitor, issuer: StandIn) -> None:
    """As a member of the team that the issuer names, with the scopes of the role."""
    assert "Sign in with 127.0.0.1" in words_of(visitor.open("/sign-in"))
    answer = sign_in(visitor, issuer, to="/settings?x=1")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/settings?x=1")
    cookie = next(text for text in answer.headers.getlist("Set-Cookie") if text.startswith(COOKIE))
    assert {"Secure", "HttpOnly", "SameSite=Lax"} < set(cookie.split("; "))
    assert "You act for the team ours as ada@example.com, who may read, write." in words_of(visitor.open("/settings"))
    assert visitor.send("/settings/keys", {"csrf_token": visitor.form_token()}).status_code == 403


def test_the_issuer_is_told_no_more_than_it_needs(visitor: Visitor, issuer: StandIn) -> None:
    """The challenge, not the verifier; everything anew at each attempt."""
    sent = [dict(parse_qsl(urlsplit(visitor.open("/sign-in/openid").headers["Location"]).query)) for _ in range(2)]
    assert sent[0].keys() == {
        "response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
    }  # fmt: skip
    assert (sent[0]["code_challenge_method"], sent[0]["redirect_uri"]) == ("S256", BACK)
    for name in ("state", "nonce", "code_challenge"):
        assert sent[0][name] != sent[1][name]
    assert issuer.url


def persons(doors: House) -> list[Key]:
    """All who have signed in."""
    everybody = doors.context.store.keys()
    return [key for key in everybody if key.is_person]


NOW = int(time.time())


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"exp": NOW - 3600}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": NOW + 86_400}, "iat"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "azp"),
        ({"aud": [CLIENT, "another"]}, "azp"),
        ({"iss": "https://evil.test"}, "iss"),
        ({"sub": None}, "sub"),
        ({"outlay_team": "nobody's"}, "names no team"),
        ({"outlay_team": None}, "names no team"),
        ({"outlay_team": ["ours", "theirs"]}, "several teams"),
        ({"outlay_role": "owner"}, "no role here"),
        ({"outlay_role": None}, "no role here"),
        ({"outlay_role": {"admin": True}}, "no role here"),
    ],
)
def test_a_token_that_states_something_else_lets_nobody_in(visitor: Visitor, issuer: StandIn, claims: dict[str, Any], words: str) -> None:
    """The page says why, and an API key still signs in."""
    issuer.claims |= claims
    refused = sign_in(visitor, issuer)
    assert (refused.status_code, words in words_of(refused).lower()) == (403, True), words_of(refused)
    assert not [text for text in refused.headers.getlist("Set-Cookie") if text.startswith(COOKIE)]
    assert visitor.open("/").status_code == 303
    assert visitor.sign_in("we may read").status_code == 303


@pytest.mark.parametrize("way", ["unsigned", "signed_by_public_key", "signed_by_another", "garbled"])
def test_a_token_that_the_issuer_has_not_signed_lets_nobody_in(visitor: Visitor, issuer: StandIn, way: str) -> None:
    """Neither none, nor a public key taken for a shared secret, nor a foreign key under a known id."""
    issuer.sign = getattr(issuer, way)
    refused = sign_in(visitor, issuer)
    assert (refused.status_code, "ID token is not good" in words_of(refused)) == (403, True)
    assert visitor.open("/").status_code == 303


@pytest.mark.parametrize("changed", [{"state": "x" * 43}, {"state": ""}, {"iss": "https://evil.test"}, {"code": "unknown"}])
def test_an_answer_to_something_else_lets_nobody_in(visitor: Visitor, issuer: StandIn, changed: dict[str, str]) -> None:
    """A forged state, another issuer, a code that it has not given."""
    assert sign_in(visitor, issuer, **changed).status_code in (403, 503)
    assert visitor.open("/").status_code == 303


def test_an_answer_counts_in_the_browser_that_has_asked(doors: House, visitor: Visitor, issuer: StandIn) -> None:
    """And once: nobody is signed in as somebody else by a link."""
    led = visitor.open("/sign-in/openid")
    answer = issuer.approve(led.headers["Location"])
    assert Visitor(doors).open("/sign-in/callback", query_string=answer).status_code == 403
    assert visitor.open("/sign-in/callback", query_string=answer).status_code == 303
    assert visitor.open("/sign-in/callback", query_string=answer).status_code == 403


def test_who_is_refused_by_the_issuer_is_told(visitor: Visitor) -> None:
    """Its own words are not shown: whoever makes a link could write them."""
    state = dict(parse_qsl(urlsplit(visitor.open("/sign-in/openid").headers["Location"]).query))["state"]
    refused = visitor.open(
        "/sign-in/callback", query_string={"error": "access_denied", "error_description": "<b>call us</b>", "state": state}
    )
    assert (refused.status_code, "call us" in text_of(refused)) == (403, False)


def test_while_the_issuer_is_away_keys_go_on(visitor: Visitor, issuer: StandIn, ticks: Ticks) -> None:
    """Nobody waits for it again for a while; then it is asked."""
    issuer.is_away = True
    away = visitor.open("/sign-in/openid")
    assert (away.status_code, "does not answer" in words_of(away)) == (503, True)
    issuer.is_away = False
    assert visitor.open("/sign-in/openid").status_code == 503
    assert visitor.sign_in("ours").status_code == 303
    ticks.now_s += OUTAGE_S
    led = visitor.open("/sign-in/openid")
    assert led.status_code == 303
    issuer.is_away = True
    assert visitor.open("/sign-in/callback", query_string=issuer.approve(led.headers["Location"])).status_code == 503


def test_new_keys_of_the_issuer_are_found(doors: House, visitor: Visitor, issuer: StandIn, ticks: Ticks) -> None:
    """Looked for at most once a minute."""
    assert sign_in(visitor, issuer).status_code == 303
    earlier = issuer.key
    issuer.key = type(earlier).generate_key(2048, {"kid": "second", "use": "sig"})
    try:
        assert sign_in(Visitor(doors), issuer).status_code == 403
        ticks.now_s += KEYS_AGAIN_S
        assert sign_in(Visitor(doors), issuer).status_code == 303
    finally:
        issuer.key = earlier


def test_a_person_may_what_the_role_says_at_the_last_sign_in(doors: House, visitor: Visitor, issuer: StandIn) -> None:
    """Of a list all roles count, of a nested claim its members."""
    issuer.claims |= {"sub": "a person of two roles", "email": "grace@example.com"}
    sign_in(visitor, issuer)
    issuer.claims["outlay_role"] = ["guests", "viewer", "admin"]
    again = Visitor(doors)
    sign_in(again, issuer)
    assert "who may read, write, admin." in words_of(again.open("/settings"))
    assert [key.team_name for key in persons(doors) if key.name == "grace@example.com"] == ["ours"]


def test_sessions_of_a_person_end(doors: House, visitor: Visitor, issuer: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the person, everywhere, and by an administrator; then one may sign in again."""
    issuer.claims["sub"] = "somebody else"
    admin, other = Visitor(doors), Visitor(doors)
    admin.sign_in("ours")
    for who in (visitor, other):
        assert sign_in(who, issuer).status_code == 303
    visitor.send("/sign-out", {"csrf_token": visitor.form_token()})
    assert [who.open("/").status_code for who in (visitor, other)] == [303, 200]
    people = persons(doors)
    form = {"csrf_token": admin.form_token()}
    assert admin.send(f"/settings/keys/{people[0].id}/rotate", form).status_code == 422
    for person in people:
        assert admin.send(f"/settings/keys/{person.id}/revoke", form).status_code == 303
    monkeypatch.setattr("service.usecases.keys.KEY_CACHE_S", 1e-9)
    assert other.open("/").status_code == 303
    assert sign_in(other, issuer).status_code == 303


def sign_out(visitor: Visitor) -> Any:
    """The answer to the button."""
    return visitor.send("/sign-out", {"csrf_token": visitor.form_token()})


def ends_at(issuer: StandIn) -> dict[str, str]:
    """What the description of an issuer says where sessions end."""
    return {"end_session_endpoint": f"{issuer.url}/end_session_endpoint"}


def test_signing_out_ends_the_session_at_the_issuer(visitor: Visitor, issuer: StandIn) -> None:
    """The page leads there with the person's own ID token; the issuer knows whom it signs out, and leads back to the sign-in."""
    issuer.described = ends_at(issuer)
    cookie = next(text for text in sign_in(visitor, issuer).headers.getlist("Set-Cookie") if text.startswith(ID_TOKEN_COOKIE))
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/sign-out"} < set(cookie.split("; "))
    page = sign_out(visitor)
    assert (page.status_code, "You are signed out of Outlay" in words_of(page)) == (200, True)
    assert "/sign-out" not in text_of(page)
    assert visitor.open("/").status_code == 303
    wait, _, address = page.headers["Refresh"].partition("; url=")
    assert wait == "0"
    assert address.startswith(f"{issuer.url}/end_session_endpoint?client_id={CLIENT}&")
    assert f'href="{escape(address)}"' in text_of(page)
    ended = requests.get(address, allow_redirects=False, timeout=DEADLINE_S)
    assert (ended.text, ended.headers["Location"]) == ("248289761001", "https://localhost/sign-in")


def test_signing_out_again_leads_to_the_issuer_no_more(visitor: Visitor, issuer: StandIn) -> None:
    """Nor does the session of a key: it was not begun there."""
    issuer.described = ends_at(issuer)
    sign_in(visitor, issuer)
    assert sign_out(visitor).status_code == 200
    visitor.sign_in("ours")
    assert sign_out(visitor).headers["Location"] == "/sign-in"


def test_an_id_token_too_long_for_a_cookie_is_no_hint(visitor: Visitor, issuer: StandIn) -> None:
    """The issuer asks whom to sign out."""
    issuer.described = ends_at(issuer)
    issuer.claims["groups"] = LONGEST_ID_TOKEN * "x"
    sign_in(visitor, issuer)
    address = sign_out(visitor).headers["Refresh"].partition("; url=")[2]
    assert dict(parse_qsl(urlsplit(address).query)) == {"client_id": CLIENT, "post_logout_redirect_uri": "https://localhost/sign-in"}


@pytest.mark.parametrize("endpoint", [None, "http://evil.test/out", "javascript:alert(1)", 5])
def test_without_an_address_for_it_the_session_ends_here_alone(visitor: Visitor, issuer: StandIn, endpoint: object) -> None:
    """Also where the address is none that a browser may be led to."""
    issuer.described = {"end_session_endpoint": endpoint}
    sign_in(visitor, issuer)
    assert sign_out(visitor).headers["Location"] == "/sign-in"
    assert visitor.open("/").status_code == 303


def test_one_signs_out_while_the_issuer_is_away(visitor: Visitor, issuer: StandIn, ticks: Ticks) -> None:
    """The session here ends."""
    issuer.described = ends_at(issuer)
    sign_in(visitor, issuer)
    issuer.is_away, ticks.now_s = True, ticks.now_s + KEYS_AGE_S
    assert sign_out(visitor).headers["Location"] == "/sign-in"
    assert visitor.open("/").status_code == 303


def test_each_sign_in_is_in_the_audit_trail(doors: House, visitor: Visitor, issuer: StandIn) -> None:
    """Of the person's team."""
    sign_in(visitor, issuer)
    entry = doors.ask("ours", "GET", "/v1/audit?operation=key.sign_in&limit=1").get_json()["items"][0]
    assert entry["object"].startswith("p")


@pytest.mark.parametrize("to", ["https://evil.test/", "//evil.test", "/x" * 2000])
def test_nobody_is_led_to_another_site(visitor: Visitor, issuer: StandIn, to: str) -> None:
    """As after signing in with a key."""
    assert sign_in(visitor, issuer, to=to).headers["Location"] == "/"


def test_attempts_that_fail_are_counted(visitor: Visitor, issuer: StandIn) -> None:
    """With those by keys."""
    for _ in range(ATTEMPTS):
        assert sign_in(visitor, issuer, state="x").status_code == 403
    assert sign_in(visitor, issuer).status_code == 429


def test_with_an_issuer_nothing_is_open(tmp_path: Any, issuer: StandIn) -> None:
    """Even before the first key is made."""
    from service import create_app

    settings = configured(tmp_path, issuer)
    settings.data_dir.mkdir(parents=True)
    app = create_app(settings)
    app.extensions["context"].store.migrate()
    client = app.test_client()
    assert client.get("/", base_url=HTTPS).status_code == 303
    assert client.get("/v1/track/programs").status_code == 401
    app.extensions["context"].store.close()


def test_without_an_issuer_there_is_no_such_page(client: Any) -> None:
    """Nor a link to it."""
    assert client.get("/sign-in/openid").status_code == 404
    assert client.get("/sign-in/callback?code=x&state=y").status_code == 404
    assert "/sign-in/openid" not in client.get("/sign-in").get_data(as_text=True)
