"""Accelerators that are owned already, weighed against rented ones for a run: our own 64 A100, or rent H100."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.formats.ask.grammar.clauses import is_count
from service.formats.ask.grammar.quantities import LEAST_CAPEX_USD
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

OWN_MACHINE, LETTER = "own_machine", "ω"
_PLACE = r"(?:cluster|fleet|hardware|dc|data ?cent(?:er|re)s?|lab|server room)"
_BEFORE = re.compile(
    r"\b(?:(?:we |i )(?:already |currently )?own|already (?:own|have|bought)|(?:already )?owned|(?:our|my|your) own|on[- ]?prem(?:ises?)?"
    rf"|in-house)(?: {_PLACE})?(?: (?:of|with))?(?: the| our)? ?\(?$"
    rf"|\b(?:our|my|your)(?: own| existing| in-house| on[- ]?prem)? {_PLACE} ?(?:of|with|has|,|:|\()? ?$"
)
"""Words right before a number of accelerators that are owned."""
_BEHIND = re.compile(
    rf"^ ?(?:gpus )?(?:(?:in|at|of) (?:our|my) (?:own )?{_PLACE}"
    r"|(?:that |which )?we (?:already )?own|(?:already )?owned|on[- ]?prem(?:ises?)?)\b"
)
_AGAINST = re.compile(r"\b(?:or(?! not\b)|compar(?:e|es|ing|ison)|vs\.?|versus|against|instead of|compared (?:to|with)|rather than)\b")
_RENTED = re.compile(r"\b(?:rent(?:ed|ing|al)?|lease|leasing|clouds?|spot|on[- ]demand|reserved?|reservations?)\b")
_OURS = re.compile(r"\b(?:our|my) $")
_CLOUD = re.compile(
    r"\b(?:or|vs\.?|versus|against)(?: (?:in|on|to|use|go|just|the|a|from|some))* (?:rent\w*|clouds?)\b"
    r"|\b(?:to|with|than|and) (?:\d+ )?(?:renting|rented|the cloud|clouds?)\b"
)
"""What tells that accelerators that are called ours are owned."""
_BUYING = re.compile(r"\b(?:buy|buying|purchase|build|should (?:we|i) own)\b")
FARTHEST, PARTED = 40, re.compile(r"[,.;:?!]")
"""Characters between a word of alternatives and what it is before, and marks that part them."""
MOST_CAPEX_USD = 200_000
"""More than one accelerator costs: a budget."""
_PLACE_OF_OWN = re.compile(rf"\b{_PLACE}(?: (?:is|are|sits?|located))? (?:in|at|near) (?:the )?$")
_PLACE_BEHIND = re.compile(r"^ ?(?:gpus |cards )?(?:in|near) (?:the )?$")
PLACE_OF_OWN = "the place of what is owned: what is rented may be anywhere"
WHOLE = "already owned: what it cost to buy is spent either way, so that only its energy and upkeep count"


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """A number of an accelerator that is owned."""

    count: int
    accelerator: Name


def with_own_machines(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with owned accelerators as what rented ones are compared with, which are as many of the same where none are named."""
    text = sentence.lower
    if _AGAINST.search(text) is None or _BUYING.search(text) or any(piece.kind in "EL" or _is_price(piece) for piece in pieces):
        return list(pieces), []
    for at, piece in enumerate(pieces):
        end = _end(sentence, pieces, at)
        cue = _cue(sentence, text, pieces, at, end) if end > at else None
        if cue is None:
            continue
        named = pieces[end - 1].value
        rest = [*pieces[:at], *pieces[end:]]
        others = any(other.kind == "A" for other in rest)
        against = _is_against(sentence, text, min(cue[0], piece.first), rest)
        if not against or not isinstance(named, Chosen) or not isinstance(piece.value, Figure):
            return list(pieces), []
        told = [each for each in pieces if cue[0] <= each.first and each.last <= cue[1] and each not in pieces[at:end]]
        places = [each for each in pieces if _is_place_of_own(sentence, text, each, pieces[end - 1].last)]
        doubts = [Doubt(part, (), PLACE_OF_OWN, blocking=False) for part in dict.fromkeys(_part(sentence, each) for each in places)]
        first = piece.first if others else pieces[end - 1].first
        owned = Piece(LETTER, OwnMachine(int(piece.value.value), named.name), first, pieces[end - 1].last)
        machine = [] if others else pieces[at:end]
        return [each for each in (*pieces[:at], *machine, owned, *pieces[end:]) if each not in told + places], doubts
    return list(pieces), []


def _is_place_of_own(sentence: Sentence, text: str, piece: Piece, machine: int) -> bool:
    """Whether a place is that of what is owned: dc in Oregon, we own 64 H100 in Texas. `machine`: the token after the accelerators."""
    begin = sentence.tokens[piece.first].start
    behind = piece.first > machine and _PLACE_BEHIND.search(text[sentence.tokens[machine - 1].end : begin])
    return (piece.kind in "RJ" and bool(_PLACE_OF_OWN.search(text[:begin]) or behind)) or (piece.kind == UNKNOWN and bool(behind))


def _part(sentence: Sentence, piece: Piece) -> str:
    return sentence.part(piece.first, piece.last)


def _is_price(piece: Piece) -> bool:
    """Whether a sum may be that of an accelerator that is bought."""
    figure = piece.value
    return isinstance(figure, Figure) and figure.unit == "usd" and LEAST_CAPEX_USD <= figure.value <= MOST_CAPEX_USD


def _end(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The piece after a number and its accelerator; the number's own where there is none."""
    ahead = range(at + 1, min(at + 4, len(pieces)))
    after = [here for here in ahead if pieces[here].kind not in ("x", FILLER) and not _owned(sentence, pieces[here])][:1]
    return after[0] + 1 if is_count(pieces[at]) and after and pieces[after[0]].kind == "A" else at


def _owned(sentence: Sentence, piece: Piece) -> bool:
    """Whether a word between a number and its accelerator says that it is owned: 64 owned A100."""
    return piece.kind == "I" and sentence.words(piece) == "owned"


def _cue(sentence: Sentence, text: str, pieces: Sequence[Piece], at: int, end: int) -> tuple[int, int] | None:
    """The tokens of what says that accelerators are owned, before them or behind them; None where nothing does."""
    begin, stop = sentence.tokens[pieces[at].first].start, sentence.tokens[pieces[end - 1].last - 1].end
    before = _BEFORE.search(text[:begin]) or (_CLOUD.search(text) and _OURS.search(text[:begin]))
    behind = _BEHIND.search(text[stop:])
    owned = next((piece for piece in pieces[at:end] if _owned(sentence, piece)), None)
    if owned is not None:
        ours = _OURS.search(text[:begin])
        return pieces[at].first - bool(ours), pieces[at].first
    if before is not None:
        return next(index for index, token in enumerate(sentence.tokens) if token.start >= before.start()), pieces[at].first
    if behind is None:
        return None
    last = max(index for index, token in enumerate(sentence.tokens) if token.end <= stop + behind.end())
    return pieces[end - 1].last, last + 1


def _is_against(sentence: Sentence, text: str, first: int, rest: Sequence[Piece]) -> bool:
    """Whether what is rented is said, and stands near behind a word of alternatives, or what is owned does."""
    rented = [match.start() for match in _RENTED.finditer(text)]
    rented += [sentence.tokens[piece.first].start for piece in rest if piece.kind in "SrPπA"]
    places = [*rented, sentence.tokens[first].start] if rented else []
    behind = [text[match.end() : place] for match in _AGAINST.finditer(text) for place in places if match.end() <= place]
    return any(len(between) <= FARTHEST and not PARTED.search(between) for between in behind)


def own_machine(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Our own 64 A100."""
    yield Slot(OWN_MACHINE, pieces[0].value, pieces[0].first, pieces[0].last)
