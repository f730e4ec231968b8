"""Records signed as JWS (RFC 7515) with Ed25519 (RFC 8037): keys as JWK, signatures, and their verification without a network."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey
from joserfc.jws import JWSRegistry

from service.serialization import to_json

Jwk = Mapping[str, Any]
ALGORITHM = "EdDSA"
TYPE = "outlay-record"
MOST_BYTES = 64 * 1024 * 1024
"""Longest payload that is signed or verified."""
ANSWER = b',"answer":'


class BadRecord(ValueError):
    """A record that is not as it was signed, or that no known key has signed; the text says which."""


class _Registry(JWSRegistry):
    """One algorithm, under the name that older tools know too: joserfc warns of it since RFC 9864 names the curve."""

    max_payload_length = MOST_BYTES * 4 // 3 + 4

    def get_alg(self, name: str) -> Any:
        """The algorithm model. Raises BadRecord for any other name."""
        if name != ALGORITHM:
            raise BadRecord(f"signed with {name!r}; records are signed with {ALGORITHM}")
        return self.algorithms[name]


_REGISTRY = _Registry(algorithms=[ALGORITHM])


def new_key() -> dict[str, Any]:
    """A new private key as JWK; its id is its thumbprint (RFC 7638)."""
    key = OKPKey.generate_key("Ed25519", private=True)
    return {**key.as_dict(private=True), "kid": key.thumbprint(), "alg": ALGORITHM, "use": "sig"}


def public_part(key: Jwk) -> dict[str, Any]:
    """The JWK without its private value."""
    return {name: value for name, value in key.items() if name != "d"}


def join_record(record_json: bytes, answer_json: bytes) -> bytes:
    """The payload of a record: the object `record_json` with the answer's bytes, unchanged, as its last member."""
    return record_json.removesuffix(b"}") + ANSWER + answer_json + b"}"


def sign(payload: bytes, key: Jwk) -> str:
    """Signature of a payload as JWS with detached content (RFC 7515, appendix F)."""
    protected = {"alg": ALGORITHM, "kid": key["kid"], "typ": TYPE}
    header, _, signature = jws.serialize_compact(protected, payload, OKPKey.import_key(dict(key)), registry=_REGISTRY).split(".")
    return f"{header}..{signature}"


def attach(signature: str, payload: bytes) -> str:
    """The complete JWS of a detached one and its payload, in compact serialization."""
    header, _, end = signature.split(".")
    return f"{header}.{_encode(payload)}.{end}"


def verify(record: bytes, keys: Sequence[Jwk]) -> dict[str, Any]:
    """The payload of a record that one of the public keys has signed.

    Raises BadRecord where any byte differs from what was signed. One line feed at the end, as editors add it, is no part of a record.
    """
    parts = record.removesuffix(b"\n").split(b".")
    if len(parts) != 3:
        raise BadRecord("this is no JWS in compact serialization: three parts between dots")
    header, payload, _ = (_decode(part) for part in parts)
    key = _signer(header, keys)
    try:
        jws.deserialize_compact(b".".join(parts), OKPKey.import_key(public_part(key)), registry=_REGISTRY)
    except JoseError as error:
        raise BadRecord("the signature is not that of this record") from error
    return _checked(payload)


def _signer(header: bytes, keys: Sequence[Jwk]) -> Jwk:
    stated = _read(header)
    known = [key for key in keys if key.get("kid") == stated.get("kid")]
    if not known:
        raise BadRecord(f"signed with the key {stated.get('kid')!r}, which is not among the {len(keys)} known ones")
    return known[0]


def _checked(payload: bytes) -> dict[str, Any]:
    record = _read(payload)
    for part in ("request", "answer"):
        digest = hashlib.sha256(to_json(record.get(part)).encode()).hexdigest()
        if digest != record.get(f"{part}_sha256"):
            raise BadRecord(f"{part}_sha256 is not the SHA-256 of the {part}")
    return record


def _read(part: bytes) -> dict[str, Any]:
    try:
        found = json.loads(part)
    except (ValueError, RecursionError) as error:
        raise BadRecord("a part of this is no JSON") from error
    if not isinstance(found, dict):
        raise BadRecord("a part of this is no JSON object")
    return found


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode(part: bytes) -> bytes:
    """Content of a base64url part. The last character has bits without meaning, and decoders skip foreign characters: both are refused."""
    try:
        content = base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except binascii.Error as error:
        raise BadRecord("a part of this is not base64url") from error
    if _encode(content).encode() != part:
        raise BadRecord("a part of this is not base64url as it is written")
    return content
