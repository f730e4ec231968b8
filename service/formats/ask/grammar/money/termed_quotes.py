"""Several prices of an hour, each with its own term: Crusoe 1.95 for 2 years, Lambda 1.79 for 3; bid A 1.60 for 18 months, 25% upfront."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.money.reservations import TERMS
from service.formats.ask.grammar.money.unsigned_sums import SELLER, TRAINED, is_bought, weighs_quotes
from service.formats.ask.grammar.money.upfront import UPFRONT
from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

TERM, NAMED = "τ", "β"
"""Kinds of pieces: the term of the price beside it, and who states a price."""
JOINTS = frozenset({FILLER, "t", "=", "o", "v", "x", "H"})
"""Kinds of pieces that may stand between a price and its term."""
COMMA = "comma"
QUOTES = frozenset({"quote", "offer", "bid", "price", "rate"})
"""Words between a term and its price: a two-year quote of $2.05."""
ENDS = frozenset({".", "?", ";", "!"})
RESERVED, PER_HOUR = "reserved", frozenset({"on_demand", "spot"})
CONTRACT = "§"
"""The kind of pieces that say a term: contract, commitment."""
LEAST_QUOTES = 2
LEAST_DAYS, MOST_YEARS = 27, 20
"""A shorter time is no term of a price, and none is longer."""
COUNTED = frozenset("TQVAgNsefhHWIx%p@")
"""Kinds of nouns of which a figure before them is a number."""
LABELS = frozenset({"bid", "quote", "offer", "vendor", "supplier", "option", "proposal", "provider", "seller", "contract"})
"""Words of a quote or its seller that a letter or a figure names: bid A, vendor 2."""
NAMELESS = frozenset({"alternative", "alternatives", "option", "other", "market", "competitor", "hyperscaler", "neocloud", "going"})
"""Words before a price that are no name of a seller, also with a capital."""
LABEL = re.compile(r"[a-hx-z]|[1-9]")
STATED = frozenset({"offered", "offers", "quoted", "quotes", "proposed", "proposes"})
QUOTES_OF_RUN = (
    "quotes with terms are weighed by a question of buying or renting; a run is estimated at one price: `at $2.05 an hour`, "
    "or the quotes without the run?"
)
INSTEAD = frozenset({"instead of", "rather than"})
QUOTING = frozenset({"wants", "offers", "quotes", "charges", "asks", "says", "at", "is", ":", "=", "for", "quoted", "offered", "a", "-"})
"""Words between a seller and its price."""


@dataclass(frozen=True, slots=True)
class _Quote:
    """A price by its place among the pieces, its term or kind of pricing, and the places that say it."""

    price: int
    term: Duration | str
    places: tuple[int, ...]


def with_termed_quotes(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with such prices in dollars, their terms beside them, and the names of bids and sellers."""
    quotes = _quotes_of(sentence, pieces)
    timed = any(isinstance(quote.term, Duration) or quote.term in TERMS.values() for quote in quotes)
    sellers = len([piece for piece in pieces if piece.kind in ("P", SELLER)]) or len(list(_labels(sentence, pieces)))
    trained = any(piece.kind in TRAINED for piece in pieces)
    stated = len(quotes) >= LEAST_QUOTES or any(_is_stated(sentence, pieces, quote) for quote in quotes)
    if (trained or any(is_trained(piece) for piece in pieces)) and stated and timed and not is_bought(pieces):
        return _without_quotes(sentence, pieces, quotes)
    weighed = is_bought(pieces) or weighs_quotes(pieces) or (sellers >= LEAST_QUOTES and not trained)
    if len(quotes) < LEAST_QUOTES or not timed or not weighed:
        return _with_named(sentence, pieces) if is_bought(pieces) else list(pieces), []
    letters = [] if any(_labels(sentence, pieces)) else _letters(sentence, pieces, quotes)
    named = letters or [name for quote in quotes for name in _sellers(sentence, pieces, quotes, quote)]
    left_out = {at for quote in quotes for at in quote.places} | {at for first, last in named for at in range(first, last)}
    left_out |= _numbers(sentence, pieces, quotes)
    found = [_as_joint(sentence, piece) for at, piece in enumerate(pieces) if at not in left_out]
    for quote in quotes:
        price = pieces[quote.price]
        assert isinstance(price.value, Figure)
        found += [replace(price, kind="m", value=replace(price.value, unit="usd")), _term(pieces, quote)]
    found += [_as_name(sentence, pieces, label) for label in named]
    return sorted(found, key=lambda piece: piece.first), []


def _with_named(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a question about buying with who states its one price, and is no known seller: nscale at 1.85, vendor X quotes 1.80."""
    prices = [at for at in range(len(pieces)) if costs_an_hour(sentence, pieces, at)]
    quote = _Quote(prices[0], "", (prices[0],)) if len(prices) == 1 else None
    named = _sellers(sentence, pieces, [quote], quote) if quote is not None else []
    found = list(pieces)
    for first, last in named:
        found[first:last] = [_as_name(sentence, pieces, (first, last))]
    return found


def _as_name(sentence: Sentence, pieces: Sequence[Piece], label: tuple[int, int]) -> Piece:
    """A piece of the name that pieces say."""
    first, last = pieces[label[0]].first, pieces[label[1] - 1].last
    text = sentence.part(first, last)
    return Piece(NAMED, text[0].upper() + text[1:], first, last)


def _is_stated(sentence: Sentence, pieces: Sequence[Piece], quote: _Quote) -> bool:
    """Whether a seller states a price: coreweave offered 1.95 for 12 months."""
    before = list(sentence.texts[: pieces[min(quote.places)].first])[-2:]
    return bool(STATED.intersection(before))


def _without_quotes(sentence: Sentence, pieces: Sequence[Piece], quotes: Sequence[_Quote]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run without quotes and who states them, which no comparison of runs has a place for."""
    left_out: set[int] = set()
    doubts = []
    for quote in quotes:
        first = min(quote.places) - 1
        while (
            first >= 0
            and (pieces[first].kind in JOINTS or sentence.words(pieces[first]) in QUOTING)
            and sentence.words(pieces[first]) not in ENDS
        ):
            first -= 1
        said = first >= 0 and pieces[first].kind in ("P", SELLER, UNKNOWN)
        places = {*quote.places, *([first] if said else [])}
        left_out |= places
        doubts.append(Doubt(sentence.part(pieces[min(places)].first, pieces[max(quote.places)].last), (), QUOTES_OF_RUN))
    return [piece for at, piece in enumerate(pieces) if at not in left_out], doubts


def _as_joint(sentence: Sentence, piece: Piece) -> Piece:
    """One price rather than another: both are weighed."""
    return replace(piece, kind=",", value="list") if piece.kind == "!" and sentence.words(piece) in INSTEAD else piece


def _quotes_of(sentence: Sentence, pieces: Sequence[Piece]) -> list[_Quote]:
    """The prices with a term beside them, all of them behind their prices or before them; behind a comma where each price has one."""
    said = [at for at, piece in enumerate(pieces) if not _joins(sentence, piece)]
    prices = [here for here, at in enumerate(said) if costs_an_hour(sentence, pieces, at)]
    behind = [quote for here in prices if (quote := _term_behind(sentence, pieces, said, here)) is not None]
    before = [quote for here in prices if (quote := _term_before(pieces, said, here)) is not None]
    first, second = (before, behind) if len(before) > len(behind) else (behind, before)
    taken = {at for quote in first for at in quote.places}
    found = sorted([*first, *(quote for quote in second if not taken.intersection(quote.places))], key=lambda quote: quote.price)
    if len(found) >= LEAST_QUOTES or len(prices) < LEAST_QUOTES:
        return found
    said = [at for at in said if pieces[at].value != COMMA]
    prices = [here for here, at in enumerate(said) if costs_an_hour(sentence, pieces, at)]
    behind = [quote for here in prices if (quote := _term_behind(sentence, pieces, said, here)) is not None]
    return behind if len(behind) == len(prices) else found


def _joins(sentence: Sentence, piece: Piece) -> bool:
    """Whether a piece may stand between a price and its term."""
    text = sentence.words(piece)
    return (piece.kind in JOINTS and text not in ENDS) or (piece.kind == "I" and text in QUOTES)


def _term_behind(sentence: Sentence, pieces: Sequence[Piece], said: Sequence[int], here: int) -> _Quote | None:
    """1.95 for 2 years, 1.95 on a 2-year contract, 1.95 with 25% upfront for 2 years, 1.79 for 3 behind another in years."""
    price, begin = said[here], here + 1
    rest = said[begin:]
    while len(rest) > 1 and {pieces[at].kind for at in rest[:2]} == {"p", "K"} and UPFRONT in (pieces[at].value for at in rest[:2]):
        rest = rest[2:]
    direct = len(rest) == len(said) - begin
    read = _term_at(pieces, rest)
    if read is None:
        read = _bare_years(sentence, pieces, rest)
    if read is None:
        return None
    term, number = read
    last = rest[number - 1]
    places = tuple(range(price, last + 1)) if direct else (price, *rest[:number])
    return _Quote(price, term, places)


def _term_before(pieces: Sequence[Piece], said: Sequence[int], here: int) -> _Quote | None:
    """1y: 2.10, a 2-year term at 1.95, reserved for 18 months at 1.95."""
    price = said[here]
    for length in (2, 1):
        beside = said[max(here - length, 0) : here]
        read = _term_at(pieces, beside)
        if read is not None and read[1] == len(beside) == length:
            return _Quote(price, read[0], tuple(range(beside[0], price + 1)))
    return None


def _term_at(pieces: Sequence[Piece], rest: Sequence[int]) -> tuple[Duration | str, int] | None:
    """A term or a kind of pricing that pieces begin with, and how many of them say it."""
    parts = [pieces[at] for at in rest[:2]]
    if not parts:
        return None
    one, other = parts[0], parts[1] if len(parts) > 1 else None
    if one.kind == "S" and one.value in (*TERMS.values(), *PER_HOUR):
        return str(one.value), 1
    if is_length(one):
        assert isinstance(one.value, Duration)
        termed = other is not None and (other.kind == CONTRACT or (other.kind == "S" and other.value == RESERVED))
        return one.value, 1 + termed
    if other is not None and is_length(other) and (one.kind == CONTRACT or (one.kind == "S" and one.value == RESERVED)):
        assert isinstance(other.value, Duration)
        return other.value, 2
    return None


def _bare_years(sentence: Sentence, pieces: Sequence[Piece], rest: Sequence[int]) -> tuple[Duration, int] | None:
    """A bare number behind `for` as years, where other terms are said in years: 1.95 for 2 years, 1.79 for 3."""
    if not rest:
        return None
    piece, after = pieces[rest[0]], pieces[rest[0] + 1 : rest[0] + 2]
    figure = piece.value
    if piece.kind != "n" or not isinstance(figure, Figure) or figure.scale > 1 or not 1 <= figure.value <= MOST_YEARS:
        return None
    if figure.value.denominator > 1 or sentence.texts[piece.first - 1] != "for" or any(each.kind in COUNTED for each in after):
        return None
    in_years = any(is_length(each) and isinstance(each.value, Duration) and each.value.unit == "years" for each in pieces)
    return (Duration(figure.value, "years"), 1) if in_years else None


def is_length(piece: Piece) -> bool:
    time = piece.value
    return piece.kind == "U" and isinstance(time, Duration) and time.days >= LEAST_DAYS and time.years <= MOST_YEARS


def costs_an_hour(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    piece, figure = pieces[at], pieces[at].value
    if piece.kind not in "nm" or not isinstance(figure, Figure) or figure.scale > 1 or figure.unit not in ("", "usd"):
        return False
    hourly = any(each.kind == "H" for each in pieces[at + 1 : at + 2])
    priced = figure.unit == "usd" or "." in sentence.words(piece) or hourly
    return priced and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD


def _term(pieces: Sequence[Piece], quote: _Quote) -> Piece:
    """The term as a piece that touches its price, where nothing is said between them."""
    first, last, price = pieces[min(quote.places)].first, pieces[max(quote.places)].last, pieces[quote.price]
    behind = max(quote.places) > quote.price
    apart = len(quote.places) <= max(quote.places) - min(quote.places)
    begin, end = (price.last, last) if behind else (first, price.first)
    if apart:
        begin = pieces[max(quote.places)].first
    pricing = TERMS.get(quote.term.years, "") if isinstance(quote.term, Duration) else quote.term
    return Piece("S", pricing, begin, end) if pricing and not apart else Piece(TERM, quote.term, begin, end)


def _sellers(sentence: Sentence, pieces: Sequence[Piece], quotes: Sequence[_Quote], quote: _Quote) -> list[tuple[int, int]]:
    """The places of a bid's or unknown seller's name before a price; nothing where there is none, or a provider that is known."""
    begin = max((max(each.places) + 1 for each in quotes if each.price < quote.price), default=0)
    end = min(quote.places)
    labels = [label for label in _labels(sentence, pieces) if begin <= label[0] and label[1] <= end]
    if labels:
        return labels[-1:]
    at = end - 1
    while at >= begin and (pieces[at].kind in ("t", "=", "o") or sentence.words(pieces[at]) in QUOTING):
        at -= 1
    if at < begin:
        return []
    capital = pieces[at].kind == UNKNOWN and sentence.tokens[pieces[at].first].written[0].isupper()
    capital = capital and sentence.words(pieces[at]) not in NAMELESS
    return [(at, at + 1)] if capital or pieces[at].kind == SELLER else []


def _before(pieces: Sequence[Piece], quote: _Quote) -> int:
    """The place of the piece before a quote, and a word of price at it."""
    at = min(quote.places) - 1
    while at >= 0 and pieces[at].kind in ("t", "="):
        at -= 1
    return at


def _letters(sentence: Sentence, pieces: Sequence[Piece], quotes: Sequence[_Quote]) -> list[tuple[int, int]]:
    """The places of letters that name each quote: A at 2.40 for 12 months, B at 2.15 for 24 months."""
    places = [_before(pieces, quote) for quote in quotes]
    words = [sentence.part(pieces[at].first, pieces[at].last) if at >= 0 else "" for at in places]
    return [(at, at + 1) for at in places] if words == [chr(ord("A") + at) for at in range(len(words))] else []


def _numbers(sentence: Sentence, pieces: Sequence[Piece], quotes: Sequence[_Quote]) -> set[int]:
    """The places of numbers that count the quotes: 1) 2.10 for 1 year 2) 1.90 for 2 years."""
    places = [min(quote.places) - 1 for quote in quotes]
    signs = [sentence.words(pieces[at]) if at > 0 else "" for at in places]
    counts = [sentence.words(pieces[at - 1]) if at > 0 else "" for at in places]
    counted = set(signs) <= {")", "."} and counts == [str(at) for at in range(1, len(quotes) + 1)]
    return {at - 1 for at in places} if counted else set()


def _labels(sentence: Sentence, pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Places of words that a letter or a figure names: bid A, vendor 2."""
    for at, piece in enumerate(pieces):
        words = sentence.words(piece).split()
        if len(words) == len(("bid", "a")) and words[0] in LABELS and LABEL.fullmatch(words[1]):
            yield at, at + 1
        elif len(words) == 1 and words[0] in LABELS and at + 1 < len(pieces):
            after = pieces[at + 1]
            if after.last == after.first + 1 and LABEL.fullmatch(sentence.words(after)):
                yield at, at + 2
