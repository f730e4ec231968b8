"""ID tokens of OpenID Connect: signature by the issuer's keys, and the claims that must hold before anything in them is believed.

References: OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725, JSON Web Token Best Current Practices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures that only the issuer can make: neither none, nor by a secret that both know."""
KEY_TYPES = ("RSA", "EC", "OKP")
CLOCK_SKEW_S = 60
"""How far the issuer's clock may be off [s]."""
MOST_CHARACTERS = 64_000


class BadIdToken(ValueError):
    """A token that proves nothing; the text says why."""


class UnknownSigningKey(BadIdToken):
    """No known key has its id: the issuer may have new ones."""


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    """What a token must state: who issues it, for whom, and in answer to which request."""

    issuer: str
    client_id: str
    nonce: str


def verified_claims(token: str, keys: Mapping[str, Any], expected: ExpectedToken, now: datetime) -> dict[str, Any]:
    """Claims of a token whose signature and statements hold. `keys`: the issuer's JWK set. Raises BadIdToken."""
    if len(token) > MOST_CHARACTERS:
        raise BadIdToken("it is too long")
    try:
        decoded = jwt.decode(token, _signing_keys(keys), algorithms=list(ALGORITHMS))
        claims = dict(decoded.claims)
        registry = jwt.JWTClaimsRegistry(
            now=int(now.timestamp()),
            leeway=CLOCK_SKEW_S,
            iss={"essential": True, "value": expected.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": expected.client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": expected.nonce},
        )
        registry.validate(claims)
    except InvalidKeyIdError as error:
        raise UnknownSigningKey("no key of the issuer has signed it") from error
    except (JoseError, ValueError, TypeError) as error:
        raise BadIdToken(_reason(error)) from error
    _check_party(claims, expected.client_id)
    return claims


def _signing_keys(keys: Mapping[str, Any]) -> KeySet:
    """The public keys of a set that may sign."""
    listed = keys.get("keys")
    found = [key for key in listed if _may_sign(key)] if isinstance(listed, list) else []
    if not found:
        raise BadIdToken("the issuer shows no key that signs")
    return KeySet.import_key_set({"keys": found})


def _may_sign(key: object) -> bool:
    return isinstance(key, dict) and key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"


def _check_party(claims: Mapping[str, Any], client_id: str) -> None:
    """Raises BadIdToken for a token that was issued to another client."""
    party = claims.get("azp")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (party is not None or several) and party != client_id:
        raise BadIdToken("it was issued to another client (azp)")


def _reason(error: Exception) -> str:
    """What is wrong, without anything of the token."""
    claim = getattr(error, "claim", None)
    name = getattr(error, "error", "") or type(error).__name__
    return f"{name.replace('_', ' ')}: {claim}" if claim else str(name).replace("_", " ")
