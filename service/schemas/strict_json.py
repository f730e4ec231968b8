"""Strict JSON (RFC 8259), parsed and written.

The standard library's parser is fast but lenient: it accepts NaN, turns 1e400 into infinity, keeps the last of two equal keys, accepts lone
surrogates and unbounded nesting. `parse` refuses all of these and reports where they are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from service.serialization import to_json

MAX_DEPTH = 32
MAX_INTEGER_DIGITS = 30
MAX_NUMBER_LENGTH = 100
MAX_ERRORS = 50
MAX_POINTER_LENGTH = 300

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_DIGIT_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
_EXPONENT = b"e000"
"""Of three digits or more, once every digit is a zero and plus signs are gone: a smaller one is within a float's range."""
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE_OR_NUL = re.compile("[\x00\ud800-\udfff]")


dumps = to_json


class BadJson(ValueError):
    """A body that is not acceptable JSON; `errors` are `{"pointer", "message"}` entries."""

    def __init__(self, detail: str, errors: list[dict[str, Any]] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or [{"pointer": "", "message": detail}]


class _SuspectError(Exception):
    """Something to refuse was found; the slow pass locates it."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """Placeholder of a refused value in the parsed tree."""

    message: str


def parse(body: bytes) -> Any:
    """The value of `body`.

    Raises BadJson for what is not UTF-8 or not RFC 8259, for nesting beyond 32, integers beyond 30 digits, numbers out of a float's range,
    repeated keys, NUL and lone surrogates; its errors have a JSON pointer or, for broken text, the position.
    """
    text = _decode(body)
    _check_depth(body, text)
    try:
        value = (_CHECKING if _may_hold_large_number(body) else _FAST).decode(text)
    except _SuspectError:
        _refuse_with_pointers(text)
    except json.JSONDecodeError as error:
        raise BadJson(_syntax_message(error)) from None
    if _SUSPECT_ESCAPE.search(text) is not None:
        _check_strings(value)
    return value


def pointer_of(path: Iterable[object]) -> str:
    """JSON pointer (RFC 6901) of a path of keys and list indices; an overlong one is cut off at a parent."""
    pointer = ""
    for step in path:
        longer = f"{pointer}/{str(step).replace('~', '~0').replace('/', '~1')}"
        if len(longer) > MAX_POINTER_LENGTH:
            break
        pointer = longer
    return _SURROGATE_OR_NUL.sub("\ufffd", pointer)


def _decode(body: bytes) -> str:
    if not body or body.isspace():
        raise BadJson("the body is empty; send a JSON document")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"the body is not UTF-8 (byte {error.start})") from None


def _syntax_message(error: json.JSONDecodeError) -> str:
    return f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"


def _check_depth(body: bytes, text: str) -> None:
    # Every other part between quotes stands outside strings, once the escaped quotes are gone, and two quotes in a row part nothing.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body
    marks = plain.translate(_SQUARE, _NO_MARKS).replace(b'""', b"")
    # Peel the innermost pairs off, one level a round: a few passes in C however many brackets there are.
    skeleton = b"".join(marks.split(b'"')[::2])
    for _ in range(MAX_DEPTH):
        skeleton = skeleton.replace(b"[]", b"")
        if not skeleton:
            return
    _find_depth(text)


def _find_depth(text: str) -> None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise BadJson(f"nested deeper than {MAX_DEPTH} levels (character {match.start()})")


def _may_hold_large_number(body: bytes) -> bool:
    """Whether it has a run of digits or an exponent that one of the refused numbers must have; so may a text."""
    zeros = body.translate(_DIGIT_AS_ZERO, b"+")
    return b"0" * (MAX_INTEGER_DIGITS + 1) in zeros or _EXPONENT in zeros


def _integer(text: str) -> int:
    if len(text) > MAX_INTEGER_DIGITS and len(text.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _SuspectError
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= MAX_NUMBER_LENGTH else math.inf
    if math.isinf(value):
        raise _SuspectError
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _SuspectError
    return found


def _constant(_: str) -> NoReturn:
    raise _SuspectError


def _marked_integer(text: str) -> int | _Refused:
    digits = len(text.lstrip("-"))
    return int(text) if digits <= MAX_INTEGER_DIGITS else _Refused(f"an integer of {digits} digits; at most {MAX_INTEGER_DIGITS} are taken")


def _marked_float(text: str) -> float | _Refused:
    if len(text) > MAX_NUMBER_LENGTH:
        return _Refused(f"a number of {len(text)} characters; at most {MAX_NUMBER_LENGTH} are taken")
    value = float(text)
    return _Refused("too large a number") if math.isinf(value) else value


def _marked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = _Refused("this key appears more than once") if key in found else value
    return found


def _marked_constant(text: str) -> _Refused:
    return _Refused(f"{text} is not JSON")


_CHECKING = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_object)
# Without a call for each number it takes half the time.
_FAST = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_object)
_MARKING = json.JSONDecoder(
    parse_int=_marked_integer, parse_float=_marked_float, parse_constant=_marked_constant, object_pairs_hook=_marked_object
)
# What is answered is made anew and holds no circle: to look for one takes a third of the time.


def _refuse_with_pointers(text: str) -> NoReturn:
    try:
        value = _MARKING.decode(text)
    except json.JSONDecodeError as error:
        raise BadJson(_syntax_message(error)) from None
    errors = [{"pointer": pointer_of(path), "message": leaf.message} for path, leaf in _leaves(value, ()) if isinstance(leaf, _Refused)]
    raise BadJson("the body holds values that are not taken", errors[:MAX_ERRORS])


def _check_strings(value: Any) -> None:
    errors = [
        {"pointer": pointer_of(path), "message": "NUL and lone surrogates are not text"}
        for path, leaf in _leaves(value, ())
        if any(isinstance(part, str) and _SURROGATE_OR_NUL.search(part) for part in (leaf, *path))
    ]
    if errors:
        raise BadJson("the body holds strings that are not text", errors[:MAX_ERRORS])


def _leaves(value: Any, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], Any]]:
    """Every scalar and empty container with its path. The depth was checked, so recursion is bounded."""
    children: Iterable[tuple[object, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    if not value or not isinstance(value, dict | list):
        yield path, value
    for key, child in children:
        yield from _leaves(child, (*path, key))
