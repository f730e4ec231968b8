"""What is believed of an OpenID Connect issuer's description, and which texts of a claim count."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from service.config import load_settings
from service.usecases import openid
from service.usecases.openid import Attempt, Issuer, IssuerUnavailable, claim_at, new_attempt

ISSUER = "https://login.example.com"
DESCRIBED = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": "https://other.example.com/token",
    "jwks_uri": f"{ISSUER}/keys",
}


class Answers:
    """What the issuer answers, and what it was asked."""

    def __init__(self, described: object) -> None:
        self.described, self.asked = described, list[str]()

    def get_json(self, url: str) -> object:
        """The description, or keys."""
        self.asked.append(url)
        return self.described if url.endswith("/.well-known/openid-configuration") else {"keys": []}


def issuer_that_answers(described: object) -> tuple[Issuer, Answers]:
    """The issuer, and its answers."""
    known = {"ISSUER": ISSUER, "CLIENT_ID": "outlay", "REDIRECT_URI": "https://outlay.example/sign-in/callback"}
    answers = Answers(described)
    made: Any = answers
    return Issuer(load_settings({f"OUTLAY_OIDC_{name}": value for name, value in known.items()}), made, lambda: 1000.0), answers


def test_a_description_is_asked_for_once() -> None:
    """With the keys; further attempts have it at hand."""
    issuer, answers = issuer_that_answers(DESCRIBED)
    for _ in range(3):
        assert issuer.address(new_attempt("/")).startswith(f"{ISSUER}/authorize?response_type=code&client_id=outlay&")
    assert answers.asked == [f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/keys"]


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize(
    "address", ["http://169.254.169.254/latest", "http://login.example.com/x", "file:///etc/passwd", "/x", "https://", None, 5]
)
def test_endpoints_elsewhere_must_be_https(name: str, address: object) -> None:
    """None of them is called."""
    issuer, answers = issuer_that_answers(DESCRIBED | {name: address})
    with pytest.raises(IssuerUnavailable, match=name):
        issuer.address(new_attempt("/"))
    assert len(answers.asked) == 1


@pytest.mark.parametrize("described", [DESCRIBED | {"issuer": f"{ISSUER}/"}, {}, [], "x"])
def test_a_description_of_another_issuer_is_not_believed(described: object) -> None:
    """OpenID Connect Discovery 1.0, section 4.3: the issuer is exactly the configured one."""
    with pytest.raises(IssuerUnavailable, match="not that of this issuer"):
        issuer_that_answers(described)[0].address(new_attempt("/"))


def test_an_issuer_that_hangs_holds_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on without it."""
    monkeypatch.setattr(openid, "TURN_S", 0.01)
    issuer, answers = issuer_that_answers(DESCRIBED)
    entered, release = Event(), Event()

    def hang(url: str) -> object:
        entered.set()
        release.wait(60)
        return Answers.get_json(answers, url)

    monkeypatch.setattr(answers, "get_json", hang)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(issuer.address, new_attempt("/"))
        entered.wait(60)
        with pytest.raises(IssuerUnavailable, match="others wait"):
            issuer.address(new_attempt("/"))
        release.set()
        assert first.result(60).startswith(ISSUER)


def test_all_of_an_attempt_follows_from_its_secret() -> None:
    """State, nonce and verifier are different, and others for another secret; the state for another page, too."""
    first, other, elsewhere = Attempt("a", "/"), Attempt("b", "/"), Attempt("a", "/prices")
    derived = [value for attempt in (first, other) for value in (attempt.state, attempt.nonce, attempt.verifier, attempt.challenge)]
    assert len(set(derived)) == 8
    assert {len(value) for value in derived} == {43}
    assert elsewhere.state != first.state


def test_the_challenge_is_that_of_rfc_7636() -> None:
    """Appendix B of the RFC."""

    class Known(Attempt):
        verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"  # type: ignore[assignment]  # in place of the property

    assert Known("a", "/").challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        ({"team": "a"}, ["a"]),
        ({"team": ["a", 5, "b"]}, ["a", "b"]),
        ({"team": {"a": True}}, []),
        ({"team": None}, []),
        ({}, []),
    ],
)
def test_texts_of_a_claim_count(claims: dict[str, Any], found: list[str]) -> None:
    """Its own, or those of its list."""
    assert claim_at(claims, "team") == found


def test_a_claim_is_a_member_of_objects_or_has_points_in_its_name() -> None:
    """As Keycloak and as namespaced claims have it."""
    assert claim_at({"realm_access": {"roles": ["a"]}}, "realm_access.roles") == ["a"]
    assert claim_at({"x.example/team": "a", "x": {"example/team": "b"}}, "x.example/team") == ["a"]
    assert claim_at({"realm_access": "roles"}, "realm_access.roles") == []
