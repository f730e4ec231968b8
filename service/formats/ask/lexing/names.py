"""Names in a sentence: exact ones, and doubtful ones with candidates."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rapidfuzz import fuzz, process

from service.formats.ask.lexing.dates import DATE_WORDS
from service.formats.ask.lexing.numbers import Figure, read_figure
from service.formats.ask.lexing.tokens import Piece, Token, normalise, tokenise
from service.formats.ask.lexing.vocabulary import WORDS_TOO, Name, Vocabulary, compact, has_numbers, load_lexicon

SAME_SIZE = 0.12
"""Relative difference of a size as people round it from the published count: Gemma 7B has 8.5 billion."""
MOST_CANDIDATES = 5
LONGEST_CODE = 5
_CORES = re.compile(r"v(?:2|3|4|5p)$")
"""Generations of TPU whose slices are named by the number of their cores."""
RELEASE_WORDS = frozenset({"instruct", "chat"})
RELEASE_SUFFIXES = frozenset({"hf", "base", "instruct", "chat", "it", "pt"})
BEFORE_COUNTRY = frozenset(
    {"in", "within", "across", "inside", "outside", "the", "only", "price", "cheapest", "/", "or", "and", "vs", "versus"}
    | {"y", "yr", "year", "years", "spot", "demand", "reserved", "h100", "h200", "b200", "a100"}
)
BEHIND_COUNTRY = frozenset(
    {"only", "region", "regions", "datacenter", "datacenters", "soil", "based", "-", "/", "east", "west", "central", "$"}
    | {"provider", "providers", "seller", "sellers", "vendor", "vendors", "cloud", "clouds", "hosts", "offers"}
)
"""Words before and behind `us` in lower case that make it the country: elsewhere it is the pronoun."""
AFTER_PRONOUN = frozenset(
    {"need", "needs", "want", "have", "had", "are", "were", "to", "can", "could", "will", "would", "do", "guys", "folks"}
)
"""Words behind `us` that make it the pronoun behind `and`."""
MEMORY_UNITS = frozenset({"gb", "g", "gib", "giga", "gigs", "gig", "gigabytes", "gigabyte"})
_TOKEN_WORDS = frozenset({"token", "tokens", "tok", "toks", "trillion", "tkns"})
_SAMPLE_WORDS = frozenset({"samples", "sample", "images", "image", "imgs", "pairs", "pictures", "pics", "photos", "examples", "sequences"})
_ENDS = frozenset({",", ".", ";", ")", "?", "!", "for", "with", "and", "on"})
"""What follows a memory that has no unit, and no number of things."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VERSION = re.compile(r"v?\d{1,2}(?:\.\d)?$")


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A name that may be one of several, or none."""

    text: str
    what: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A name that is known, as it was written; `others` are what it could mean too."""

    name: Name
    written: str
    others: tuple[str, ...] = ()
    plural: bool = False


def read_as(chosen: Chosen) -> str:
    """That a model is read as one of another version, where its alias names one: Llama 3.3 70B, of the shape of Llama 3.1."""
    numbers = set(_NUMBER.findall(chosen.written)) - set(_NUMBER.findall(chosen.name.value))
    return f"{chosen.written} is read as {chosen.name.value}" if chosen.name.kind == "M" and numbers else ""


def read_name(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Piece | None:
    """The longest name that begins at a token, or a doubtful one."""
    slash = next((here for here in range(at + 1, min(at + 5, len(tokens) - 1)) if not tokens[here].glued or tokens[here].text == "/"), None)
    if slash is not None and tokens[slash].text == "/" and tokens[slash + 1].start == tokens[slash].end and tokens[at].text.isalpha():
        owned = read_name(tokens, slash + 1, vocabulary)  # meta-llama/Llama-3.1-8B
        if owned is not None and owned.kind in ("M", "F") and tokens[slash].glued:
            return Piece(owned.kind, owned.value, at, owned.last)
    found = next(_exact(tokens, at, vocabulary), None) or _memory_before(tokens, at, vocabulary)
    if found is not None and found.kind == "A":
        return _with_memory(tokens, found, vocabulary)
    if found is not None and found.kind == "M" and _goes_on_in_digits(tokens, found):
        return _family_name(tokens, at, vocabulary) or found
    if found is not None and found.kind == "M":
        return _with_release(tokens, _with_size(tokens, found, vocabulary))
    if found is None and any(prefix.startswith(tokens[at].text) for prefix in vocabulary.unmodelled):
        found = _unmodelled(tokens, at, vocabulary)
    return found or _family_name(tokens, at, vocabulary) or _sized_family(tokens, at, vocabulary)


def _unmodelled(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Piece | None:
    """A model of a family whose layers are not modelled: flux.1-dev."""
    end = at + 1
    while (
        end < len(tokens) and tokens[end].glued and (tokens[end].text[0].isalnum() or (tokens[end].text == "." and _goes_on(tokens, end)))
    ):
        end += 1
    written = _written(tokens, at, end)
    name = compact(written)
    near = next((near for prefix, near in vocabulary.unmodelled.items() if name.startswith(prefix)), ())
    return Piece("F", Doubtful(written, "model", near), at, end) if near else None


def _goes_on(tokens: Sequence[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].start == tokens[at].end and tokens[at + 1].text[0].isdigit()


def _exact(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Iterator[Piece]:
    for end in range(min(len(tokens), at + vocabulary.longest), at, -1):
        window = tokens[at:end]
        joined = "".join(token.text for token in window if token.text != "/")
        names = vocabulary.names.get(joined) or _of_plural(joined, vocabulary) or _of_owner(joined, vocabulary)
        if names is None or "/" in (window[0].text, window[-1].text) or not has_numbers(names[0], window):
            continue
        last, plural = _past_plural(tokens, end)
        if last < 0 or not _is_meant(tokens, at, end, names[0]) or (names[0].kind == "A" and _has_article(tokens, at, end)):
            continue
        written = _written(tokens, at, end)
        as_written = [name for name in names if name.value.casefold() == written.casefold()]
        if names[0].kind == "R" and as_written:
            yield Piece("R", Chosen(as_written[0], written), at, last)
        elif names[0].kind == "R" and len({name.value for name in names}) > 1:
            yield Piece("F", Doubtful(written, "region", tuple(dict.fromkeys(name.value for name in names))[:MOST_CANDIDATES]), at, last)
        elif names[0].kind == "A" and not plural and compact(written).removesuffix("s") != compact(written):
            yield Piece("A", Chosen(names[0], written, _without_plural(written, names[0], vocabulary)), at, last)
        elif names[0].kind == "G" and len(names) > 1 and names[1].kind == "G":
            programs = tuple(name.id for name in names if name.kind == "G")
            yield Piece("F", Doubtful(written, "program", programs[:MOST_CANDIDATES]), at, last)
        else:
            yield Piece(names[0].kind, Chosen(names[0], written, names[0].also, plural), at, last)


def _of_plural(joined: str, vocabulary: Vocabulary) -> tuple[Name, ...] | None:
    """The accelerator of a plural whose s is written to its last letter: A10Gs, MI300Xs."""
    found = vocabulary.names.get(joined[:-1]) if joined[-2:-1].isalpha() and joined.endswith("s") else None
    return found if found and found[0].kind == "A" else None


def _of_owner(joined: str, vocabulary: Vocabulary) -> tuple[Name, ...] | None:
    """The provider of a possessive: lambda's price."""
    found = vocabulary.names.get(joined.removesuffix("'s")) if joined.endswith("'s") else None
    return found if found and found[0].kind == "P" else None


def _without_plural(written: str, name: Name, vocabulary: Vocabulary) -> tuple[str, ...]:
    """What a name with an s at its end could mean too: of l40s, several L40."""
    single = vocabulary.names.get(compact(written).removesuffix("s"), ())
    return (*name.also, *(other.value for other in single if other.kind == "A"))


def _past_plural(tokens: Sequence[Token], end: int) -> tuple[int, bool]:
    """The token after a name and its plural s; -1 where the name is only a part of a word."""
    if end < len(tokens) and tokens[end].start == tokens[end - 1].end:
        if tokens[end].text == "s":
            return end + 1, True
        if tokens[end].text == "'" and end + 1 < len(tokens) and tokens[end + 1].text == "s":
            return end + 2, True
        counted = tokens[end].text == "x" and end + 1 < len(tokens) and tokens[end + 1].text[0].isdigit()
        if tokens[end].text[0].isalnum() and not counted:
            return -1, False
    return end, False


def _is_meant(tokens: Sequence[Token], at: int, end: int, name: Name) -> bool:
    """Whether a short code is one: US and DE in capitals, no pronoun and no preposition; of names that are words nothing else."""
    word = tokens[at]
    if end - at > 1:  # `to go` is not Togo
        return name.kind != "J" or any(len(tokenise(normalise(label))) == end - at for label in name.labels)
    if name.kind == "J" and len(word.text) <= 3:
        if word.text in ("eu", "uk", "usa", "eea", "uae"):
            return True
        lower_case = any(token.written.islower() for token in tokens)
        if word.text == "us":
            return (word.written.isupper() and lower_case) or _is_country(tokens, at)
        placed = at > 0 and tokens[at - 1].text in ("in", "or", "and", ",", "/") and lower_case
        return word.written.isupper() and word.text not in DATE_WORDS and (word.text not in load_lexicon().words or placed)
    if name.kind == "R" and word.text.isalpha():
        return len(word.text) > LONGEST_CODE
    return not (name.kind == "M" and word.text in load_lexicon().words)


def _is_country(tokens: Sequence[Token], at: int) -> bool:
    """Whether the words beside `us` make it the country: in the us, us regions; wants us to is the pronoun."""
    before = tokens[at - 1].text if at else ""
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    placed = at == 0 or before in BEFORE_COUNTRY or after in BEHIND_COUNTRY
    return placed and not (before in ("and", "or") and after in AFTER_PRONOUN)


def _has_article(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Whether an a before a number is no part of a name: a 10% discount, a 10-person team, a 100 GPUs; but 8 A 100."""
    if tokens[at].text != "a" or end - at == 1 or tokens[at + 1].glued:
        return False
    after = tokens[end] if end < len(tokens) else None
    goes_on = after is not None and (after.text == "%" or (after.glued and after.text.isalpha() and after.text != "s"))
    counted = at > 0 and tokens[at - 1].text[0].isdigit()
    lower = tokens[at].written == "a" or at == 0 or not any(token.written.islower() for token in tokens)
    return goes_on or (lower and not counted)


def _goes_on_in_digits(tokens: Sequence[Token], found: Piece) -> bool:
    """Whether a version that is not known follows a family: of gpt-4, the gpt."""
    bare = found.last == found.first + 1 and found.last < len(tokens)
    return bare and tokens[found.last].glued and tokens[found.last].text[0].isdigit() and _read_size(tokens, found.last) is None


def _with_memory(tokens: Sequence[Token], found: Piece, vocabulary: Vocabulary) -> Piece:
    """The accelerator with its memory behind it: A100s (40GB), A100-40."""
    chosen = found.value
    assert isinstance(chosen, Chosen)
    at = found.last
    if _CORES.search(compact(chosen.name.value)) and at < len(tokens) and tokens[at].glued and tokens[at].text.isdigit():
        cores = int(tokens[at].text)
        readings = (f"{cores // 2} {chosen.name.value}", f"{cores} {chosen.name.value}")
        return Piece(
            "F",
            Doubtful(_written(tokens, found.first, at + 1), "slice, which is named by its cores, two a chip", readings),
            found.first,
            at + 1,
        )
    opened = at < len(tokens) and tokens[at].text == "("
    at += opened or (at + 2 < len(tokens) and tokens[at].text in ("of", "with") and tokens[at + 2].text in MEMORY_UNITS)
    if at >= len(tokens) or not tokens[at].text.isdigit():
        return found
    end = at + 1
    unit = end < len(tokens) and (tokens[end].text in MEMORY_UNITS or (tokens[end].text == "s" and tokens[end].glued))
    single = found.first > 0 and tokens[found.first - 1].text in ("a", "an") and not chosen.plural  # an A100 40
    if not (opened or tokens[at].glued or unit or single or _is_counted(tokens, found.first, end)):
        return found
    end += unit
    names = vocabulary.names.get(f"{compact(chosen.name.value)}{tokens[at].text}gb")
    if names is None or names[0].kind != "A" or (opened and (end >= len(tokens) or tokens[end].text != ")")):
        return found
    return Piece("A", Chosen(names[0], _written(tokens, found.first, end), names[0].also, chosen.plural), found.first, end + opened)


def _memory_before(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Piece | None:
    """The accelerator with its memory before it: 40GB A100s."""
    if at + 2 >= len(tokens) or not tokens[at].text.isdigit() or tokens[at + 1].text not in MEMORY_UNITS:
        return None
    named = next(_exact(tokens, at + 2, vocabulary), None)
    if named is None or not isinstance(named.value, Chosen) or named.kind != "A":
        return None
    found = vocabulary.names.get(f"{compact(named.value.name.value)}{tokens[at].text}gb", ())
    if not found or found[0].kind != "A":
        return None
    return Piece("A", Chosen(found[0], _written(tokens, at, named.last), found[0].also, named.value.plural), at, named.last)


def _is_counted(tokens: Sequence[Token], first: int, end: int) -> bool:
    """Whether a number stands before the accelerator, and the one after it ends a part of the sentence: 16xA100 80, 3 epochs.

    So it does before another number: 4 A100 80 20M tokens.
    """
    before = [token.text for token in tokens[:first] if token.text != "x"]
    return bool(before) and before[-1][0].isdigit() and (end >= len(tokens) or tokens[end].text in _ENDS or tokens[end].text[0].isdigit())


def _with_size(tokens: Sequence[Token], found: Piece, vocabulary: Vocabulary) -> Piece:
    """A model whose name has no size, with a size behind it: the same model, or a doubtful one."""
    chosen = found.value
    assert isinstance(chosen, Chosen)
    size = _read_size(tokens, found.last)
    if size is None or (chosen.name.has_size and chosen.name.value.split("-")[-1] in compact(chosen.written)):
        return _same_size(found, vocabulary)
    end, figure = size
    if abs(float(figure.value) - chosen.name.params) <= SAME_SIZE * chosen.name.params:
        return Piece("M", Chosen(chosen.name, f"{chosen.written} {_written(tokens, found.last, end)}"), found.first, end)
    if any(token.text.isalpha() and token.text != "v" for token in tokens[found.first + 1 : found.last]):  # vit-h 2B is not another ViT
        return _same_size(found, vocabulary)
    family = vocabulary.families.get(tokens[found.first].text, (chosen.name,))
    return _doubtful(tokens, found.first, end, family, float(figure.value), "")


def _with_release(tokens: Sequence[Token], found: Piece) -> Piece:
    """The model with the suffixes of tuned releases, which have its shape."""
    end = found.last
    while end < len(tokens) and tokens[end].text in (RELEASE_SUFFIXES if tokens[end].glued else RELEASE_WORDS):
        end += 1
    versioned = [token.text for token in tokens[end : end + 2]]
    if len(versioned) == 2 and tokens[end + 1].glued and versioned[0] == "v" and _VERSION.fullmatch(versioned[1]):
        end += 2
        if isinstance(found.value, Chosen) and versioned[1] not in _NUMBER.findall(found.value.name.value):
            written = _written(tokens, found.first, end)
            named = replace(found.value.name, why=f"{written} is read as {found.value.name.value}")
            return Piece(found.kind, replace(found.value, name=named), found.first, end)
    return Piece(found.kind, found.value, found.first, end)


def _same_size(found: Piece, vocabulary: Vocabulary) -> Piece:
    """An exact name without a version, with what other versions of its size are called: llama-7b, and llama-2-7b."""
    chosen = found.value
    assert isinstance(chosen, Chosen)
    name, written = chosen.name, compact(chosen.written)
    family = re.match(r"[a-z]+", written)
    size = re.search(r"\d+(?:\.\d+)?[bm]$", written)
    if family is None or size is None or family.end() != size.start():
        return found
    alike = [
        other.value
        for other in vocabulary.families.get(family.group(), ())
        if other is not name and compact(other.value).endswith(size.group()) and compact(other.value)[: -len(size.group())][-1:] != "."
    ]
    alike = [value for value in alike if re.search(rf"(?<![\d.]){re.escape(size.group())}$", value)]
    return Piece("M", Chosen(name, chosen.written, tuple(alike[:MOST_CANDIDATES])), found.first, found.last)


def _read_size(tokens: Sequence[Token], at: int) -> tuple[int, Figure] | None:
    """A bare size such as 70B; None where it counts tokens or something else."""
    if at >= len(tokens):
        return None
    read = read_figure(tokens, at)
    if read is None or read[1].unit or read[1].spoken or read[1].scale not in (10**6, 10**9):
        return None
    end, figure = read
    after = tokens[end].text if end < len(tokens) else ""
    return None if after in _TOKEN_WORDS or after in _SAMPLE_WORDS or after == "x" else (end, figure)


def _family_name(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Piece | None:
    """A family with a version or size that no model has exactly."""
    word = tokens[at].text
    family = vocabulary.families.get(word)
    if family is None:
        return None
    end, version = _read_version(tokens, at + 1)
    size = _read_size(tokens, end)
    if size is not None:
        end = size[0]
    if end == at + 1 and (word in WORDS_TOO or word in load_lexicon().words):
        return None
    return _doubtful(tokens, at, end, family, 0.0 if size is None else float(size[1].value), version)


def _read_version(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """The version of a family and the token after it: 3.1, v2."""
    here = at + (at < len(tokens) and tokens[at].text == "v")
    if here >= len(tokens) or not _VERSION.fullmatch(tokens[here].text) or _read_size(tokens, here) is not None:
        return at, ""
    read = read_figure(tokens, here)
    return (at, "") if read is not None and read[1].scale > 1 else (here + 1, tokens[here].text)


def _sized_family(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Piece | None:
    """A size before its family: 65B llama, 8b llama 3."""
    size = _read_size(tokens, at)
    if size is None or size[0] >= len(tokens):
        return None
    end, figure = size
    named = next(_exact(tokens, end, vocabulary), None)
    known = named is not None and isinstance(named.value, Chosen) and (named.value.name.has_size or named.kind != "M")
    family = vocabulary.families.get(tokens[end].text)
    if known or family is None or tokens[end].text in WORDS_TOO:
        return None
    begin, size_text = end, "".join(token.text for token in tokens[at:end])
    end, version = _read_version(tokens, end + 1)
    exact = vocabulary.names.get(f"{tokens[begin].text}{version}{size_text}", ())
    if exact and exact[0].kind == "M":
        return _same_size(Piece("M", Chosen(exact[0], f"{tokens[begin].text}{version}{size_text}"), at, end), vocabulary)
    return _doubtful(tokens, at, end, family, float(figure.value), version)


def _doubtful(tokens: Sequence[Token], at: int, end: int, family: Sequence[Name], params: float, version: str) -> Piece:
    """The only model of a family, version and size; else what it may be."""
    written = _written(tokens, at, end)
    near = [name for name in family if params and abs(name.params - params) <= SAME_SIZE * params]
    word = re.escape(tokenise(normalise(family[0].value))[0].text)
    versions = re.compile(rf"{word}-?v?{re.escape(version.removeprefix('v'))}(?![\db])")
    versioned = [name for name in (near or family) if version and versions.match(name.value)]
    if len(near) == 1 and (versioned or not version):
        return Piece("M", Chosen(near[0], written), at, end)
    among = versioned or near or family
    ranked = process.extract(compact(written), [name.value for name in among], scorer=fuzz.ratio, processor=compact, limit=MOST_CANDIDATES)
    return Piece("F", Doubtful(written, "model", tuple(value for value, _, _ in ranked)), at, end)


def _written(tokens: Sequence[Token], first: int, last: int) -> str:
    """Tokens as they were written."""
    parts = [tokens[first].written]
    for before, token in itertools.pairwise(tokens[first:last]):
        parts += ["" if token.start == before.end else "-" if token.glued else " ", token.written]
    return "".join(parts)
