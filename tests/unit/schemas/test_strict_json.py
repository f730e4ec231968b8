"""The strict JSON reader."""

from __future__ import annotations

import contextlib
import json as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.schemas import strict_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**29), 10**29)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().filter(lambda text: "\x00" not in text),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text().filter(lambda text: "\x00" not in text), inner, max_size=4),
    max_leaves=20,
)


def refused(body: bytes) -> strict_json.BadJson:
    with pytest.raises(strict_json.BadJson) as caught:
        strict_json.parse(body)
    return caught.value


@given(VALUES)
def test_whatever_json_can_say_is_read_as_the_standard_library_reads_it(value: object) -> None:
    """Strictness costs no valid document."""
    body = standard.dumps(value).encode()
    assert strict_json.parse(body) == standard.loads(body)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """No input raises anything but BadJson."""
    with contextlib.suppress(strict_json.BadJson):
        strict_json.parse(body)


@pytest.mark.parametrize("body", [b"", b"  \n"])
def test_an_empty_body_is_called_empty(body: bytes) -> None:
    """Nothing sent is told apart from nonsense."""
    assert "empty" in refused(body).detail


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"a": [1, 1e400]}', "/a/1"),
        (b'{"a": {"b": NaN}}', "/a/b"),
        (b'{"a": -Infinity}', "/a"),
        (b'{"a/b~c": ' + b"9" * 5000 + b"}", "/a~1b~0c"),
        (b'{"n": -' + b"1" * 31 + b"}", "/n"),
        (b'{"n": 0.' + b"1" * 200 + b"}", "/n"),
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', "/b/c"),
        (b'["x", "\\ud800"]', "/1"),
        (b'["\\u0000"]', "/0"),
    ],
)
def test_a_refused_value_is_pointed_at(body: bytes, pointer: str) -> None:
    """Values that JSON allows and the service does not carry their place."""
    assert [entry["pointer"] for entry in refused(body).errors] == [pointer]


def test_every_refused_value_is_named_at_once() -> None:
    """The caller need not find them one by one, up to as many as a problem shows."""
    assert len(refused(b"[NaN, 1e400, 1]").errors) == 2
    assert len(refused(b"[" + b"NaN," * 1000 + b"1]").errors) == strict_json.MAX_ERRORS


def test_an_integer_of_thirty_digits_is_taken_whole() -> None:
    """The limit itself is allowed, and exact."""
    assert strict_json.parse(b"9" * 30) == 10**30 - 1


@pytest.mark.parametrize("body", [b"[1,]", b"{'a': 1}", b"01", b"[1] 2", b"nul", b"+1", b".5", b"1.", b'"\t"', b"\xef\xbb\xbf{}", b'"\\x"'])
def test_broken_text_is_refused_with_its_position(body: bytes) -> None:
    """What RFC 8259 does not allow is refused, with line and column."""
    assert "line 1, column" in refused(body).detail


@pytest.mark.parametrize("body", [b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"'])
def test_bytes_that_are_not_utf8_are_refused(body: bytes) -> None:
    """Invalid, surrogate and overlong encodings do not get in."""
    assert "UTF-8" in refused(body).detail


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 33 + b"]" * 33, b'["\\"[",' + b"[" * 32 + b"]" * 33])
def test_deep_nesting_is_refused_before_the_parser_recurses(body: bytes) -> None:
    """More than 32 levels are an error of the caller, complete or not."""
    assert "32 levels" in refused(body).detail


def test_depth_counts_levels_and_not_brackets() -> None:
    """32 levels, any number of brackets beside each other and brackets inside strings are fine."""
    assert strict_json.parse(b"[" * 32 + b"]" * 32)
    assert len(strict_json.parse(b"[" + b"[]," * 100 + b"{}]")) == 101
    assert strict_json.parse(b'"' + b"[" * 100 + b'"') == "[" * 100


def test_a_key_too_long_for_a_pointer_is_left_out_of_it() -> None:
    """An error does not echo a megabyte back."""
    assert refused(b'{"a": {"' + b"k" * 10_000 + b'": NaN}}').errors[0]["pointer"] == "/a"


def test_answers_are_json_too() -> None:
    """NaN in an answer is a bug that shows, keys keep their order, text stays text."""
    assert strict_json.dumps({"b": "€", "a": 1}) == '{"b":"€","a":1}'
    with pytest.raises(ValueError, match="JSON"):
        strict_json.dumps([float("nan")])


@given(st.from_regex(r"\A-?(0|[1-9][0-9]{0,120})(\.[0-9]{1,120})?([eE][+-]?[0-9]{1,5})?\Z"), st.text("0123456789eE+", max_size=40))
def test_every_number_is_read_or_refused_as_with_a_check_of_each(number: str, beside: str) -> None:
    """The search for long runs of digits and large exponents finds every number that is refused."""
    body = standard.dumps({"text": beside})[:-1] + f', "number": {number}}}'
    try:
        expected = strict_json._CHECKING.decode(body)
    except strict_json._SuspectError:
        assert refused(body.encode()).errors[0]["pointer"] == "/number"
    else:
        assert strict_json.parse(body.encode()) == expected
