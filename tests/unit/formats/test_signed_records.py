"""Signed records: verified by another implementation, and any change of any byte is found."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from service.formats.signed_records import BadRecord, attach, join_record, new_key, public_part, sign, verify
from service.serialization import to_json

KEY, OTHER = new_key(), new_key()
KEYS = [public_part(OTHER), public_part(KEY)]
ANSWER = {"cost": {"total_usd": 1.5}, "text": "größer – 80 %"}


def digest(value: object) -> str:
    """SHA-256 of a value as it is written."""
    return hashlib.sha256(to_json(value).encode()).hexdigest()


def record(request: Any, answer: Any = ANSWER) -> bytes:
    """A signed record."""
    head = {"request": request, "request_sha256": digest(request), "answer_sha256": digest(answer)}
    payload = join_record(to_json(head).encode(), to_json(answer).encode())
    return attach(sign(payload, KEY), payload).encode()


RECORD = record({"model": {"preset": "llama-2-7b"}})


def decoded(part: bytes) -> bytes:
    """Content of a base64url part."""
    return base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))


class TestAnotherImplementation:
    def test_cryptographys_ed25519_verifies_it(self) -> None:
        """RFC 7515 and RFC 8037 by hand: signature over header and payload as they are written."""
        header, payload, signature = RECORD.split(b".")
        public = Ed25519PublicKey.from_public_bytes(decoded(KEY["x"].encode()))
        public.verify(decoded(signature), header + b"." + payload)
        assert json.loads(decoded(header)) == {"alg": "EdDSA", "kid": KEY["kid"], "typ": "outlay-record"}
        assert json.loads(decoded(payload))["answer"] == ANSWER
        with pytest.raises(InvalidSignature):
            public.verify(decoded(signature), header + b".x" + payload)

    def test_the_keys_id_is_its_thumbprint(self) -> None:
        """RFC 7638: the digest of the required members in lexicographic order."""
        required = json.dumps({name: KEY[name] for name in ("crv", "kty", "x")}, separators=(",", ":"), sort_keys=True)
        assert decoded(KEY["kid"].encode()) == hashlib.sha256(required.encode()).digest()
        assert "d" not in public_part(KEY)


class TestTampering:
    def test_it_is_verified_as_it_is(self) -> None:
        """With the line feed of an editor too."""
        assert verify(RECORD, KEYS)["answer"] == ANSWER
        assert verify(RECORD + b"\n", KEYS) == verify(RECORD, KEYS)

    @given(at=st.integers(0, len(RECORD) - 1), flip=st.integers(1, 255))
    def test_any_changed_byte_is_found(self, at: int, flip: int) -> None:
        """Wherever it is, whatever it becomes."""
        changed = bytearray(RECORD)
        changed[at] ^= flip
        with pytest.raises(BadRecord):
            verify(bytes(changed), KEYS)

    def test_every_single_flipped_bit_is_found(self) -> None:
        """All of them, the meaningless ones of a part's last character included."""
        for at in range(len(RECORD)):
            for bit in range(8):
                changed = bytearray(RECORD)
                changed[at] ^= 1 << bit
                with pytest.raises(BadRecord):
                    verify(bytes(changed), KEYS)

    @given(st.integers(0, len(RECORD) - 1), st.binary(min_size=1, max_size=3))
    def test_nothing_can_be_added_or_cut_off(self, at: int, more: bytes) -> None:
        """At any place."""
        for changed in (RECORD[:at], RECORD[:at] + more + RECORD[at:]):
            with pytest.raises(BadRecord):
                verify(changed, KEYS)

    @given(st.binary(max_size=200))
    def test_anything_else_is_no_record(self, content: bytes) -> None:
        """And no other error comes of it."""
        with pytest.raises(BadRecord):
            verify(content, KEYS)

    def test_an_unknown_key_is_named(self) -> None:
        """Among those that are known."""
        with pytest.raises(BadRecord, match=f"'{KEY['kid']}', which is not among the 1 known"):
            verify(RECORD, [public_part(OTHER)])

    def test_a_key_under_a_false_id_verifies_nothing(self) -> None:
        """The id only says which key to try."""
        with pytest.raises(BadRecord, match="signature"):
            verify(RECORD, [public_part(OTHER) | {"kid": KEY["kid"]}])

    def test_no_other_algorithm_is_taken(self) -> None:
        """Least of all none."""
        header = base64.urlsafe_b64encode(to_json({"alg": "none", "kid": KEY["kid"]}).encode()).rstrip(b"=")
        with pytest.raises(BadRecord):
            verify(b".".join((header, RECORD.split(b".")[1], b"")), KEYS)

    def test_a_digest_that_is_not_of_its_part_is_found(self) -> None:
        """Even where a known key has signed it."""
        payload = join_record(to_json({"request": {}, "request_sha256": "0" * 64, "answer_sha256": digest({})}).encode(), b"{}")
        with pytest.raises(BadRecord, match="request_sha256"):
            verify(attach(sign(payload, KEY), payload).encode(), KEYS)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8")),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_is_signed_is_verified(value: Any) -> None:
    """Numbers and texts survive to the last digit."""
    assert verify(record(value, {"value": value}), KEYS)["answer"] == {"value": value}
