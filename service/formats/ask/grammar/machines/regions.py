"""Regions by the beginning of their names (us-east), and by the city or state that they lie in (Frankfurt, Ohio)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, compact

LONGEST = 3
"""Words of the longest name of a place."""
NORTH = "n"
COUNTRIES = "Jκ"
STEMS = frozenset({*COUNTRIES, FILLER, UNKNOWN})
"""Kinds of pieces that the first part of a region's name may be: us, asia, me, ap."""
WHERE = frozenset({"in", "near", "around", "at", "from"})
TEAMS = frozenset({"team", "teams", "office", "offices", "lab", "group", "people", "folks", "colleagues", "university"})
EITHER = ({"or"}, {"vs"}, {"versus"}, {"and"}, {"/"}, {"&"})
APART = "a region or a country: no offer is in both, so one of these"
"""What is asked about places of two kinds."""
OTHERS = frozenset({"else", "elsewhere", "other"})
WIDENING = OTHERS | {"or", "anywhere", "somewhere", "any", "in", "within", "the", "of", ",", "at", "-", "region"}
"""Words between a place and the larger one that it is a part of: Frankfurt or anywhere else in the EU."""
PLACES = "RJκ"
WIDER = "the place that is named is a part of it: all of it is read"
PEOPLE = TEAMS | {"users", "customers"}


def with_stems(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> list[Piece]:
    """The pieces with the beginning of regions' names as one: us-west, of us-west-1; ap-southeast."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before is None or before.kind not in STEMS or piece.kind != UNKNOWN or not sentence.tokens[piece.first].glued:
            found.append(piece)
            continue
        text = sentence.part(before.first, piece.last).lower()
        stem = Name("R", text, (text,))
        if _numbered(stem, set(), vocabulary):
            found[-1] = Piece("R", Chosen(stem, text), before.first, piece.last)
        else:
            found.append(piece)
    return found


def with_cities(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> list[Piece]:
    """The pieces with a city or state as the regions there, of the providers that are said: aws in Frankfurt or Ohio.

    Where carbon is asked for beside a country, whose grid it is of, a place is no region.
    """
    countries = any(piece.kind in COUNTRIES for piece in pieces)
    if countries and any(piece.kind == "O" and str(piece.value).startswith("carbon") for piece in pieces):
        return list(pieces)
    pieces = _with_grids(sentence, pieces)
    providers = {piece.value.name.value for piece in pieces if piece.kind == "P" and isinstance(piece.value, Chosen)}
    pieces = [piece if not _is_of_team(sentence, piece) else replace(piece, kind=UNKNOWN) for piece in pieces]
    found: list[Piece] = []
    at = 0
    while at < len(pieces):
        end = _end_of_city(sentence, pieces, at, vocabulary)
        text = sentence.part(pieces[at].first, pieces[end - 1].last) if end > at else ""
        names = [name for name in (vocabulary.places.get(compact(text), ()) if text else ()) if not providers or name.provider in providers]
        if names and (_is_place(sentence, found, pieces[end:]) or _is_first_of_several(sentence, pieces[end:], vocabulary)):
            of_city = {name.value: name for name in names}.values()
            found += [
                Piece("R", Chosen(replace(name, why=f"{text} is read as {name.value}"), text), pieces[at].first, pieces[end - 1].last)
                for name in of_city
            ]
            at = end
        else:
            found.append(pieces[at])
            at += 1
    return found


def _with_grids(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a question about carbon with a seller's region, as grids are called, as the place of one: carbon in aws:us-east-2."""
    found = list(pieces)
    if not any(piece.kind == "O" for piece in pieces):
        return found
    for at in range(len(pieces) - 2):
        seller, region = pieces[at].value, pieces[at + 2].value
        kinds = "".join(piece.kind for piece in pieces[at : at + 3])
        text = sentence.part(pieces[at].first, pieces[at + 2].last)
        carbon = any(piece.kind == "O" and str(piece.value).startswith("carbon") for piece in pieces[:at])
        if carbon and kinds == "P=R" and ":" in text and " " not in text and isinstance(seller, Chosen) and isinstance(region, Chosen):
            place = replace(region.name, provider=seller.name.value, why=f"the grid of {text}")
            found[at : at + 3] = [Piece("R", Chosen(place, text), pieces[at].first, pieces[at + 2].last)]
            return found
    return found


def _is_of_team(sentence: Sentence, piece: Piece) -> bool:
    """Whether countries are those of people, and say nothing of where to run: our APAC team."""
    return piece.kind in COUNTRIES and bool(TEAMS.intersection(sentence.texts[piece.last : piece.last + 1]))


def _end_of_city(sentence: Sentence, pieces: Sequence[Piece], at: int, vocabulary: Vocabulary) -> int:
    """The piece after the longest name of a place from a piece on; the piece itself where there is none."""
    end, first = at, pieces[at]
    if first.last == first.first or sentence.texts[first.first] not in vocabulary.place_beginnings:
        return at
    while end < len(pieces) and end < at + LONGEST and _may_name(sentence, pieces[end]):
        end += 1
    while end > at and compact(sentence.part(pieces[at].first, pieces[end - 1].last)) not in vocabulary.places:
        end -= 1
    return end


def _may_name(sentence: Sentence, piece: Piece) -> bool:
    """Whether a piece may be a part of a name: a word that is not known, and the N of N. Virginia."""
    return piece.kind in (UNKNOWN, FILLER) or sentence.words(piece) == NORTH


def _is_place(sentence: Sentence, before: Sequence[Piece], after: Sequence[Piece]) -> bool:
    """Whether a name of a place says where to run: in Frankfurt, aws Ohio, Paris vs London; not our Paris team."""
    if after and sentence.words(after[0]) in PEOPLE:
        return False
    said = [piece for piece in before if piece.kind not in (FILLER, ",")]
    named = bool(said) and said[-1].kind in "PRJκ"
    return named or (bool(before) and sentence.words(before[-1]) in WHERE)


def with_wider_places(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a place that stands beside the larger one around it: Frankfurt or anywhere else in the EU."""
    texts = list(sentence.texts)
    for wider in pieces:
        first = wider.first
        while wider.kind in COUNTRIES and first > 0 and texts[first - 1] in WIDENING:
            first -= 1
        named = [piece for piece in pieces if piece.kind in PLACES and piece.last == first]
        if named and OTHERS.intersection(texts[first : wider.first]):
            begin = min(piece.first for piece in named)
            doubt = Doubt(sentence.part(begin, wider.last), (), WIDER, blocking=False)
            return [piece for piece in pieces if not begin <= piece.first < wider.first], [doubt]
    return list(pieces), []


def _is_first_of_several(sentence: Sentence, after: Sequence[Piece], vocabulary: Vocabulary) -> bool:
    """Whether another place follows a name as its alternative: Texas vs Norway."""
    if (
        len(after) < len(("or", "Norway"))
        or {sentence.words(after[0])} not in EITHER
        or PEOPLE.intersection(map(sentence.words, after[2:3]))
    ):
        return False
    return after[1].kind in "RJκ" or compact(sentence.words(after[1])) in vocabulary.places


def with_numbered(slots: Sequence[Slot], vocabulary: Vocabulary) -> list[Slot]:
    """The slots with the numbered regions of a name (us-east-1 of us-east): those of the providers that are said, else of all."""
    said = {slot.value.value for slot in slots if slot.name == "provider" and isinstance(slot.value, Name)}
    return [found for slot in slots for found in _meant(slot, said, vocabulary)]


def _meant(slot: Slot, said: set[str], vocabulary: Vocabulary) -> Sequence[Slot]:
    """The slot itself but of a region without a number, of a provider that is not said."""
    name = slot.value
    if slot.name != "region" or not isinstance(name, Name) or not name.value[-1].isalpha() or name.provider in said or name.why:
        return [slot]
    found = _numbered(name, said, vocabulary)
    note = (
        f"{name.value} is a region of {name.provider}, and those of others begin so" if name.provider else f"{name.value}: regions begin so"
    )
    others = [replace(slot, value=found[value], note="" if at else note) for at, value in enumerate(sorted(found))]
    return others if others and (said or not name.provider) else [slot, *others]


def _numbered(region: Name, said: set[str], vocabulary: Vocabulary) -> dict[str, Name]:
    """Regions whose name is this one's and a number."""
    numbered = re.compile(rf"{re.escape(region.value)}-?\d+")
    named = (name for names in vocabulary.names.values() for name in names if name.kind == "R" and numbered.fullmatch(name.value))
    return {name.value: name for name in named if not said or name.provider in said}


def with_places_of_a_list(sentence: Sentence, slots: Sequence[Slot], vocabulary: Vocabulary) -> list[Slot]:
    """The slots with a country as its regions, where it is an alternative to a city or state: Norway, Ireland or Texas."""
    spans = sorted({(slot.first, slot.last, slot.name) for slot in slots if slot.name in ("region", "jurisdiction")})
    found = list(slots)
    for begin, end in _lists(sentence, spans):
        within = spans[begin:end]
        countries = [slot for slot in slots if slot.name == "jurisdiction" and (slot.first, slot.last, slot.name) in within]
        regions = [_of_country(sentence, slots, slot, vocabulary) for slot in countries]
        if len({name for _, _, name in within}) > 1 and all(regions):
            found = [slot for slot in found if slot not in countries] + [slot for each in regions for slot in each]
    return sorted(found, key=lambda slot: slot.first)


def _lists(sentence: Sentence, spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    """Where each list of places begins and ends whose last two stand on both sides of a word of alternatives."""
    begin = end = 0
    for at in range(1, len(spans) + 1):
        between = set(sentence.texts[spans[at - 1][1] : spans[at][0]]) - {"in", "the"} if at < len(spans) else {""}
        if between in ({","}, *EITHER, *({",", *words} for words in EITHER)):
            end = end if between == {","} else at + 1
            continue
        if end > begin:
            yield begin, end
        begin = end = at


def _of_country(sentence: Sentence, slots: Sequence[Slot], country: Slot, vocabulary: Vocabulary) -> list[Slot]:
    """A country as its regions, of the providers that are said; as those of a city that stands before it: Frankfurt, Germany."""
    providers = {slot.value.value for slot in slots if slot.name == "provider" and isinstance(slot.value, Name)}
    names = [name for name in _regions_of(country, vocabulary) if not providers or name.provider in providers]
    text = sentence.part(country.first, country.last)
    cities = [slot for slot in slots if slot.name == "region" and _is_its_city(sentence, slot, country, vocabulary)]
    if cities:
        return [replace(slot, first=country.first, last=country.last) for slot in cities]
    of_name = {name.value: replace(name, why=f"{text} is read as {name.value}") for name in names}
    return [replace(country, name="region", value=name, note=name.why) for name in of_name.values()]


def _regions_of(country: Slot, vocabulary: Vocabulary) -> Sequence[Name]:
    return vocabulary.places.get(country.value.value, ()) if isinstance(country.value, Name) else ()


def _is_its_city(sentence: Sentence, region: Slot, country: Slot, vocabulary: Vocabulary) -> bool:
    """Whether a region lies in the country that is named behind it and a comma, or right behind it."""
    between = [token.text for token in sentence.tokens[region.last : country.first] if token.text not in ("in", "the")]
    lies = isinstance(region.value, Name) and region.value.value in {name.value for name in _regions_of(country, vocabulary)}
    return lies and region.last <= country.first and between in ([], [","])


def _lies_outside(region: Slot, countries: Sequence[Slot], vocabulary: Vocabulary) -> bool:
    """Whether a region is in none of the countries that are named: spot in Norway and on demand in Texas."""
    known = [{name.value for name in _regions_of(country, vocabulary)} for country in countries]
    return all(known) and isinstance(region.value, Name) and not any(region.value.value in names for names in known)


def apart_doubts(sentence: Sentence, slots: Sequence[Slot], vocabulary: Vocabulary) -> list[Doubt]:
    """What to ask about a region and a country as alternatives, which two filters would exclude: the EU or Texas; Georgia, Texas."""
    places = [sorted((slot for slot in slots if slot.name == name), key=lambda slot: slot.first) for name in ("region", "jurisdiction")]
    for region in places[0]:
        for country in places[1]:
            one, other = sorted((region, country), key=lambda slot: slot.first)
            between = set(sentence.texts[one.last : other.first]) - {"in", "the", "anywhere", "somewhere"}
            of_list = between == {","} and not _is_its_city(sentence, region, country, vocabulary)
            alternatives = between - {","} in EITHER or (of_list and _regions_of(country, vocabulary))
            if alternatives or _lies_outside(region, places[1], vocabulary):
                text = sentence.part(one.first, other.last)
                return [Doubt(text, tuple(sentence.part(slot.first, slot.last) for slot in (one, other)), APART)]
    return []
