"""Sentences of answers and errors as pages show them: names of the API in words with the name and its meaning as an aside, days as read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Literal

from markupsafe import Markup, escape

from service.formats.field_words import choice_words, field_words, path_words
from service.formats.headline import day
from service.schemas.field_names import NAME, choice_names, field_meanings, is_path

Kind = Literal["text", "field", "choice"]
_DAY = re.compile(r"(?<![\w.-])\d{4}-\d\d-\d\d(?![\w-])", re.ASCII)


def in_words(text: str) -> Markup:
    """A sentence as markup: each field's name in words, which the name itself and its meaning stand behind."""
    return Markup().join(_aside(part) if kind == "field" else escape(_plain(kind, part)) for kind, part in _pieces(text))


def in_typed_words(text: str) -> Markup:
    """The same of what is wrong with a field: what it takes stays as it is typed."""
    typed = Markup("<code>{}</code>")
    return Markup().join(
        _aside(part) if kind == "field" else typed.format(part) if kind == "choice" else escape(part) for kind, part in _pieces(text)
    )


def in_plain_text(text: str) -> str:
    """A sentence without markup, for titles and labels."""
    return "".join(_plain(kind, part) for kind, part in _pieces(text))


def meaning_of(path: str, description: str = "") -> str:
    """What a field means, and its name in the API. `description`: that of the field, else that of one of its name."""
    meaning = description or field_meanings().get(path.rpartition(".")[2], "")
    return f"{in_plain_text(meaning)} · {path}" if meaning else path


def field_in_words(path: str) -> Markup:
    """A field's dotted path in words: what it is a part of, then itself."""
    return Markup('<span title="{}">{}</span>').format(meaning_of(path), path_words(path))


def _pieces(text: str) -> Iterator[tuple[Kind, str]]:
    """The text in pieces: names of fields, names of choices, and what stands between."""
    at = 0
    for found in NAME.finditer(text):
        kind = _kind(found[0])
        if kind != "text":
            yield "text", text[at : found.start()]
            yield kind, found[0]
            at = found.end()
    yield "text", text[at:]


def _kind(name: str) -> Kind:
    if "." in name:
        return "field" if is_path(name) else "text"
    return "field" if name in field_meanings() else "choice" if name in choice_names() else "text"


def _plain(kind: Kind, part: str) -> str:
    return _said(part) if kind == "field" else choice_words(part) if kind == "choice" else _DAY.sub(_day, part)


def _day(found: re.Match[str]) -> str:
    """A day as people read it; what is no day as it is."""
    try:
        return day(date.fromisoformat(found[0]))
    except ValueError:
        return found[0]


def _aside(name: str) -> Markup:
    return Markup('<span title="{}">{}</span>').format(meaning_of(name), _said(name))


def _said(name: str) -> str:
    """A field's name within a sentence: what it is a part of follows in brackets."""
    above, _, last = name.rpartition(".")
    if above and last.isdecimal():
        return path_words(name)
    return f"{field_words(last)} ({path_words(above).replace(':', ',')})" if above else field_words(last)
