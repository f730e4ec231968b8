"""Signing in to pages with an OpenID Connect issuer: authorization code flow with PKCE, state and nonce.

A person who is signed in has a key of the team that no token opens: sessions, limits, the audit trail and the list of keys treat it as any.

References: OpenID Connect Core 1.0, section 3.1; OpenID Connect RP-Initiated Logout 1.0; RFC 7636 (PKCE); RFC 9207 (iss); RFC 9700
(OAuth 2.0 security).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from requests.auth import HTTPBasicAuth

from providers.http import Http, Limits
from providers.offer import ProviderError
from service.config import Settings
from service.context import AppContext
from service.domain.teams import PERSON_PREFIX, SCOPES, Key, Scope, Team, checked_name
from service.domain.web_sessions import WebSession
from service.formats.id_tokens import BadIdToken, ExpectedToken, UnknownSigningKey, verified_claims
from service.usecases.keys import hash_secret
from service.usecases.web_sessions import LONGEST, store_session

KEYS_AGE_S = 3600.0
"""How long the issuer's description and keys are believed [s]."""
KEYS_AGAIN_S = 60.0
"""Pause between two looks for a key that was not there [s]."""
OUTAGE_S = 10.0
"""Pause after the issuer did not answer: meanwhile nobody waits for it [s]."""
TURN_S = 2.0
"""How long a thread waits while another asks the issuer [s]."""
LIMITS = Limits(total_s=6.0, max_bytes=2**20, retries=0)
SCOPE = "openid profile email"
_ID_CHARACTERS = 15
Json = Mapping[str, Any]


class IssuerUnavailable(Exception):
    """The issuer cannot be reached, or answers nothing that can be used; the text says which, without secrets."""


class SignInRefused(Exception):
    """The person is not let in; the text says why, as far as anybody may know."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to sign in. Only the browser keeps its `secret`, from which all else follows; `to` is the page to go on to."""

    secret: str
    to: str

    @property
    def state(self) -> str:
        """What the issuer sends back with the code."""
        return self._derived(f"state {self.to}")

    @property
    def nonce(self) -> str:
        """What the ID token must state."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """What the code can be redeemed with (RFC 7636, section 4.1)."""
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        """Its digest, which the issuer is told first (RFC 7636, section 4.2)."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())

    def _derived(self, purpose: str) -> str:
        return _encoded(hmac.new(self.secret.encode(), purpose.encode(), hashlib.sha256).digest())


def new_attempt(to: str) -> Attempt:
    """An attempt that leads to a page."""
    return Attempt(secrets.token_urlsafe(32), to)


class Issuer:
    """The configured issuer as one process knows it."""

    def __init__(self, settings: Settings, http: Http | None = None, ticks: Callable[[], float] = time.monotonic) -> None:
        self.url = settings.oidc_issuer or ""
        self._settings = settings
        self._http = http or Http(LIMITS, configured=(self.url,))
        self._ticks = ticks
        self._lock = threading.Lock()
        self._found: tuple[float, Json, Json] | None = None
        self._away_until = self._again_at = 0.0

    def address(self, attempt: Attempt) -> str:
        """Where the browser is led to. Raises IssuerUnavailable."""
        asked = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": self._settings.oidc_redirect_uri,
            "scope": SCOPE,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(str(self._described()[0]["authorization_endpoint"]), asked)

    def sign_out_address(self, id_token: str, page: str) -> str | None:
        """Where the browser ends its session at the issuer, which leads back to a page here (RP-Initiated Logout 1.0, section 2).

        `id_token` may be empty: the issuer then asks whom to sign out. None where the issuer has no such address. Raises IssuerUnavailable.
        """
        endpoint = self._described()[0].get("end_session_endpoint")
        if not self._is_usable(endpoint):
            return None
        stated = {
            "client_id": str(self._settings.oidc_client_id),
            "post_logout_redirect_uri": urljoin(str(self._settings.oidc_redirect_uri), page),
        }
        return _with_query(str(endpoint), stated | ({"id_token_hint": id_token} if id_token else {}))

    def redeem(self, context: AppContext, attempt: Attempt, code: str) -> tuple[str, dict[str, Any]]:
        """The ID token that a code is redeemed for, and its claims. Raises IssuerUnavailable, BadIdToken."""
        token = self._redeem(code, attempt.verifier)
        expected = ExpectedToken(self.url, str(self._settings.oidc_client_id), attempt.nonce)
        try:
            return token, verified_claims(token, self._described()[1], expected, context.clock())
        except UnknownSigningKey:
            return token, verified_claims(token, self._described(fresh=True)[1], expected, context.clock())

    def _redeem(self, code: str, verifier: str) -> str:
        """The ID token of a code. Raises IssuerUnavailable."""
        described, settings = self._described()[0], self._settings
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": str(settings.oidc_redirect_uri),
            "code_verifier": verifier,
            "client_id": str(settings.oidc_client_id),
        }
        auth = None
        if settings.oidc_client_secret is not None:
            if "client_secret_basic" in (described.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]):
                auth = HTTPBasicAuth(quote(fields["client_id"], safe=""), quote(settings.oidc_client_secret, safe=""))
            else:
                fields["client_secret"] = settings.oidc_client_secret
        try:
            with self._turn():
                answer = json.loads(self._http.post_form(str(described["token_endpoint"]), fields, auth=auth))
            return str(answer["id_token"])
        except ProviderError as error:
            raise IssuerUnavailable(f"the code was not redeemed: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise IssuerUnavailable("the issuer answered the code without an ID token") from error

    def _described(self, *, fresh: bool = False) -> tuple[Json, Json]:
        """The issuer's description and keys, at most an hour old. Raises IssuerUnavailable."""
        if (known := self._known(fresh=fresh)) is not None:
            return known
        with self._turn():
            if (known := self._known(fresh=fresh)) is not None:
                return known
            now = self._ticks()
            if now < self._away_until:
                raise IssuerUnavailable("the issuer did not answer a moment ago")
            try:
                found = self._fetch()
            except ProviderError as error:
                self._away_until = self._ticks() + OUTAGE_S
                raise IssuerUnavailable(str(error)) from error
            self._found, self._again_at = (now, *found), now + KEYS_AGAIN_S
            return found

    def _known(self, *, fresh: bool) -> tuple[Json, Json] | None:
        """What is at hand, unless it is too old, or a look for new keys is due."""
        now, found = self._ticks(), self._found
        if found is None or now - found[0] >= KEYS_AGE_S or (fresh and now >= self._again_at):
            return None
        return found[1], found[2]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Context in which the issuer is asked: by one thread at a time, so that an issuer that hangs holds no more than one."""
        if not self._lock.acquire(timeout=TURN_S):
            raise IssuerUnavailable("others wait for the issuer")
        try:
            yield
        finally:
            self._lock.release()

    def _fetch(self) -> tuple[Json, Json]:
        described = self._http.get_json(f"{self.url.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(described, dict) or described.get("issuer") != self.url:
            raise ProviderError(f"the description at {self.url} is not that of this issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not self._is_usable(described.get(name)):
                raise ProviderError(f"the issuer's {name} is no https address")
        keys = self._http.get_json(described["jwks_uri"])
        if not isinstance(keys, dict):
            raise ProviderError("the issuer's keys are no JWK set")
        return described, keys

    def _is_usable(self, address: object) -> bool:
        """Whether it is an https address, or on the issuer's own host where that is this machine."""
        if not isinstance(address, str):
            return False
        parts, own = urlsplit(address), urlsplit(self.url)
        return bool(parts.netloc) and (parts.scheme == "https" or (parts.scheme, parts.netloc) == (own.scheme, own.netloc))


def finish_sign_in(context: AppContext, issuer: Issuer, attempt: Attempt, answer: Mapping[str, str]) -> tuple[WebSession, str, str]:
    """A session of the person whom the issuer's answer names, its token, and the issuer's ID token.

    Raises SignInRefused, IssuerUnavailable and StoreUnavailable.
    """
    if not attempt.secret or not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
        raise SignInRefused("This sign-in was not begun in this browser, or has ended; begin it again.")
    if answer.get("iss", issuer.url) != issuer.url:
        raise SignInRefused("The answer is of another issuer; begin again.")
    if "code" not in answer:
        raise SignInRefused("The issuer has not signed you in.")
    try:
        id_token, claims = issuer.redeem(context, attempt, answer["code"])
    except BadIdToken as error:
        raise SignInRefused(f"The issuer's ID token is not good: {error}.") from error
    return *_begin(context, claims), id_token


def _begin(context: AppContext, claims: Json) -> tuple[WebSession, str]:
    settings, now = context.settings, context.clock()
    scopes = _scopes(settings, claim_at(claims, settings.oidc_role_claim))
    team = _team(context, claim_at(claims, settings.oidc_team_claim))
    person = Key(
        _person_id(str(settings.oidc_issuer), str(claims["sub"]), team.id),
        team.id,
        team.name,
        _name(claims),
        scopes,
        now,
        now + LONGEST,
        None,
    )
    context.store.put_person(person, hash_secret(secrets.token_urlsafe(32)))
    return store_session(context, person.id)


def claim_at(claims: Json, path: str) -> list[str]:
    """The texts of a claim: of itself or of its list. A claim whose name has points counts before members of objects."""
    found: Any = claims
    for part in [path] if path in claims else path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    listed = found if isinstance(found, list) else [found]
    return [text for text in listed if isinstance(text, str)]


def _scopes(settings: Settings, roles: list[str]) -> tuple[Scope, ...]:
    """All that the roles allow. Raises SignInRefused where that is nothing."""
    allowed = {scope for role in roles for scope in settings.scopes_by_role.get(role, ())}
    if not allowed:
        raise SignInRefused(f"You have no role here: the claim {settings.oidc_role_claim} has none that Outlay knows.")
    return tuple(scope for scope in SCOPES if scope in allowed)


def _team(context: AppContext, names: list[str]) -> Team:
    """The team that is named. Raises SignInRefused where that is none, or several."""
    found = [team for name in dict.fromkeys(names) if (team := context.store.find_team(name)) is not None]
    if len(found) != 1:
        what = "no team that there is here" if not found else "several teams"
        raise SignInRefused(f"You have no team here: the claim {context.settings.oidc_team_claim} names {what}.")
    return found[0]


def _person_id(issuer: str, subject: str, team: str) -> str:
    """Id of a person's key in a team: the same at each sign-in, and none that a token can have."""
    digest = hashlib.sha256(json.dumps([issuer, subject, team]).encode()).digest()
    return PERSON_PREFIX + _encoded(digest)[:_ID_CHARACTERS]


def _name(claims: Json) -> str:
    """What a person is called in lists; nothing depends on it."""
    for claim in ("email", "preferred_username", "name"):
        text = re.sub(r"[^A-Za-z0-9 ._@+-]", "", str(claims.get(claim) or ""))[:100].lstrip(" ._@+-")
        if text:
            return checked_name(text, "")
    return "person"


def _with_query(endpoint: str, fields: Mapping[str, str | None]) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(fields)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
