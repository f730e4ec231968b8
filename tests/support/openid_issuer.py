"""An OpenID Connect issuer on this machine: it describes itself, shows its keys and redeems codes as RFC 6749 and RFC 7636 have it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from secrets import token_hex
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from flask import Flask, Response, jsonify, request
from flask.typing import ResponseReturnValue
from joserfc import jws, jwt
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

CLIENT, SECRET = "outlay-pages", "secret:of/the+client"


class StandIn:
    """The issuer. `claims` are added to each ID token; `sign` makes the token of its claims; `described` is added to its description."""

    def __init__(self) -> None:
        self.url = ""
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.claims: dict[str, Any] = {}
        self.described: dict[str, Any] = {}
        self.sign = self.signed
        self.is_away = False
        self._codes: dict[str, dict[str, str]] = {}

    def approve(self, address: str) -> dict[str, str]:
        """What the issuer leads back with for the address that the browser was led to."""
        asked = dict(parse_qsl(urlsplit(address).query))
        code = token_hex(8)
        self._codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.url}

    def signed(self, claims: Mapping[str, Any]) -> str:
        """A token as it should be."""
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, dict(claims), self.key)

    def unsigned(self, claims: Mapping[str, Any]) -> str:
        """A token that nobody has signed: alg none (RFC 7518, section 3.6)."""
        return f"{_part({'alg': 'none'})}.{_part(claims)}."

    def signed_by_public_key(self, claims: Mapping[str, Any]) -> str:
        """A token with the public key taken for a secret that both know (RFC 8725, section 2.1)."""
        head, body = _part({"alg": "HS256", "kid": self.key.kid}), _part(claims)
        made = hmac.new(self.key.as_pem(private=False), f"{head}.{body}".encode(), hashlib.sha256).digest()
        return f"{head}.{body}.{_encoded(made)}"

    def signed_by_another(self, claims: Mapping[str, Any]) -> str:
        """A token of a key that is not the issuer's, under the id of the issuer's."""
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, dict(claims), RSAKey.generate_key(2048))

    def garbled(self, claims: Mapping[str, Any]) -> str:
        """Signed, but no claims."""
        del claims
        return jws.serialize_compact({"alg": "RS256", "kid": self.key.kid}, b"no claims", self.key)

    def app(self) -> Flask:
        """Its addresses."""
        app = Flask("issuer", static_folder=None)
        app.before_request(lambda: ("", 503) if self.is_away else None)

        @app.get("/.well-known/openid-configuration")
        def describe() -> ResponseReturnValue:
            places = {name: f"{self.url}/{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
            return jsonify({"issuer": self.url, **places, **self.described})

        @app.get("/end_session_endpoint")
        def sign_out() -> ResponseReturnValue:
            """Who is signed out by the hint, and where to go on (RP-Initiated Logout 1.0, sections 2 and 3)."""
            claims = jwt.decode(request.args["id_token_hint"], self.key, algorithms=["RS256"]).claims
            assert claims["aud"] == request.args["client_id"]
            return Response(claims["sub"], 303, {"Location": request.args["post_logout_redirect_uri"]})

        @app.get("/jwks_uri")
        def show_keys() -> ResponseReturnValue:
            return jsonify({"keys": [self.key.as_dict(private=False), {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}]})

        @app.post("/token_endpoint")
        def redeem() -> ResponseReturnValue:
            asked = self._codes.pop(request.form["code"], None)
            challenge = _encoded(hashlib.sha256(request.form["code_verifier"].encode()).digest())
            known = request.authorization and (request.authorization.username, unquote(request.authorization.password or ""))
            if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != request.form["redirect_uri"]:
                return jsonify({"error": "invalid_grant"}), 400
            if known != (CLIENT, SECRET):
                return jsonify({"error": "invalid_client"}), 401
            now = int(time.time())
            usual = {"iss": self.url, "sub": "248289761001", "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
            stated = {name: value for name, value in (usual | self.claims).items() if value is not None}
            return jsonify({"access_token": "x", "token_type": "Bearer", "id_token": self.sign(stated)})

        return app


def _part(members: Mapping[str, Any]) -> str:
    return _encoded(json.dumps(dict(members)).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def served() -> Iterator[StandIn]:
    """The issuer at an address of this machine."""
    issuer = StandIn()
    server = make_server("127.0.0.1", 0, issuer.app(), threaded=True)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
