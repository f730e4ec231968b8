"""Asides that leave nothing out (or no?, data can't leave, don't care about cost), and words that rank offers or list all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.clauses import is_within
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
Settled = tuple[list[Piece], list[Doubt]]
LEAVING = re.compile(
    r"\b(?:can't|cannot|can not|cant|mustn't|must not|may not|shouldn't|should not|won't|will not|(?:is|are)(?: not|n't) allowed to"
    r"|not allowed to|never|must never) (?:leave|exit)\b"
    r"(?: the (?:country|region|premises|building))?",
    re.IGNORECASE,
)
PLACED = "the run stays in the place that is named; if none is, name the country"
OR_NO = re.compile(r"(?:,? \bor (?:no|nah|nope|not|naw))(?= ?(?:\?|$|\.|,))", re.IGNORECASE)
CARELESS = re.compile(
    r"\b(?:(?:we |i )?(?:really )?(?:don't|dont|do not) (?:really )?(?:care|mind|worry|bother)(?: about| for)?|never mind|nevermind|ignore"
    r"|ignoring|forget(?: about)?|regardless of|irrespective of|no matter)(?: the| what the| what)?"
    r" (?:(?:it|this|that|they) )?(?:costs?|price|prices|money|budget|spend)"
    r"(?: (?:is|are|here|for now|side))?\b",
    re.IGNORECASE,
)
UNTROUBLED = re.compile(
    r"\b(?:(?:there (?:are|is|have been) |had |have |having |see |seeing |with )?(?:no|zero|without|w/o)(?: any)?"
    r"(?: (?!and\b|or\b|on\b)[a-z][\w-]*){0,2}? ?\b(?:issues?|problems?|troubles?|hassles?|complaints?|incidents?)"
    r"(?: (?:with|on|from|in|around) (?:the |our |any |its )?[a-z][\w-]*)?(?: (?:so far|yet|there|at all|expected|known|reported))?)"
    r"(?=\s*(?:[,.;?!)]|$|and\b|but\b|what\b|how\b|-))",
    re.IGNORECASE,
)
VALUED = frozenset("APRJMGCSnmpDUTQ")
"""Kinds of pieces that are no part of a remark: no issues with AWS."""
REMARK = "read as a remark: it changes nothing of what is asked"
WAIVED = "waived"
"""The value of words that say nothing more."""
UNASKED = "an answer has its cost besides"
RANKED = re.compile(
    r"\b(?:rank|ranking|list|listing|sort|enumerate|line up)\b(?: (?!(?:for|by|to|and|from|on|with)\b)[\w/-]+){0,5}?"
    r" (?P<noun>offers?|providers?|clouds?|vendors?|sellers?|quotes|deals|options)\b",
    re.IGNORECASE,
)
EVERY = frozenset({"every", "each", "any"})
LISTED = "ASPCR"
"""Kinds of names that `every` stands before, where all that is known of them is asked for."""
OFFERS = frozenset({"offer", "offers", "price", "prices", "option", "options", "quote", "quotes"})
INSTANCES = frozenset({"instance", "instances"})
ANOTHER = frozenset({"another", "further", "additional", "extra"})
FASTER = frozenset({"faster", "quicker", "slower", "longer", "sooner"})
WEIGHED = frozenset({"than", "vs", "versus", "or", "compared", "against", "over", "v", "double", "doubling", "twice", "from"})
FASTER_THAN = "than what is not said: the answer has the time of this run"
MOST = re.compile(
    r"\bmost (?:it|this|that|we|i|they) (?:could|can|might|may|would|will|should) (?:cost|pay|spend|be|come to)\b"
    r"|\b(?:max|maximum|highest|upper|most)(?: possible| likely| total)?"
    r" (?:(?:number|amount|total)(?! of (?!the |our |po))|cost|figure|price tag|bill|spend)"
    r"(?: (?:for|on|of) (?:the |our )?(?:po|p\.o\.|purchase order|req|requisition))?\b",
    re.IGNORECASE,
)
OF_RUNS = "AgTQNx"
"""Kinds of nouns behind a number that is no sum."""
MOST_SUM = 10**7
"""A greater number behind such words is no sum of money."""


def _part(match: re.Match[str]) -> str:
    return match.group().strip(" ,")


def without_asides(sentence: Sentence, pieces: Pieces) -> Settled:
    """The pieces without the tail of a yes-or-no question, without a place that data stay in, and without what nobody asks for."""
    found = list(pieces)
    doubts: list[Doubt] = []
    for pattern, said in ((OR_NO, ""), (LEAVING, PLACED), (CARELESS, UNASKED), (UNTROUBLED, REMARK)):
        for match in pattern.finditer(sentence.text):
            if pattern is UNTROUBLED and any(piece.kind in VALUED and is_within(sentence, piece, match) for piece in pieces):
                continue
            found = [
                replace(piece, kind=FILLER, value=WAIVED) if piece.last > piece.first and is_within(sentence, piece, match) else piece
                for piece in found
            ]
            doubts += [Doubt(_part(match), (), said, blocking=False)] if said else []
    return found, doubts


def with_ranked_offers(sentence: Sentence, pieces: Pieces) -> Settled:
    """The pieces of a question about a run with offers that are to be listed as a comparison: rank providers for a 34B on 1T tokens."""
    match = RANKED.search(sentence.text)
    if match is None or not any(is_trained(piece) for piece in pieces):
        return list(pieces), []
    start = match.start("noun")
    return [
        replace(piece, kind="I", value="compare")
        if sentence.tokens[piece.first].start <= start < sentence.tokens[max(piece.last - 1, piece.first)].end
        else piece
        for piece in pieces
    ], []


def without_every(sentence: Sentence, pieces: Pieces) -> Settled:
    """The pieces without `every` before what is listed, and without `another` before tokens: every A100 offer, another 120B tokens."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        after = [other for other in pieces[at + 1 :] if other.kind != FILLER][:2]
        text = sentence.words(piece)
        listed = text in EVERY and bool(after) and after[0].kind in LISTED
        listed = listed or (text in EVERY and bool(after) and sentence.words(after[0]) in OFFERS)
        listed = listed or (text in INSTANCES and at > 0 and pieces[at - 1].kind == "C")
        more = text in ANOTHER and "".join(other.kind for other in after) == "nT"
        if piece.kind == UNKNOWN and (listed or more):
            found[at] = replace(piece, kind=FILLER, value="")
    return found, []


def without_faster(sentence: Sentence, pieces: Pieces) -> Settled:
    """The pieces of a question how much faster one run is without an order of options: it is weighed against none."""
    texts = list(sentence.texts)
    accelerators = [piece for piece in pieces if piece.kind == "A"]
    for at, piece in enumerate(pieces):
        asked = piece.first > 1 and texts[piece.first - 1] == "much" and sentence.words(piece) in FASTER
        if asked and len(accelerators) <= 1 and not WEIGHED & set(texts) and any(is_trained(other) for other in pieces):
            doubt = Doubt(sentence.part(piece.first, piece.last), (), FASTER_THAN, blocking=False)
            return [*pieces[:at], replace(piece, kind=FILLER, value=""), *pieces[at + 1 :]], [doubt]
    return list(pieces), []


def with_most(sentence: Sentence, pieces: Pieces) -> Settled:
    """The pieces of a question for the most that a run may cost with the upper end of its range as asked for: max number for the PO."""
    match = MOST.search(sentence.text)
    if match is None or not any(is_trained(piece) for piece in pieces):
        return list(pieces), []
    within = [piece for piece in pieces if piece.last > piece.first and is_within(sentence, piece, match)]
    after = [piece for piece in pieces if within and piece.first >= within[-1].last and piece.kind != FILLER][:4]
    if not within or _is_sum(after):
        return list(pieces), []
    at = pieces.index(within[0])
    return [*pieces[:at], Piece(FILLER, "p90", within[0].first, within[-1].last), *pieces[at + len(within) :]], []


def _is_sum(after: Pieces) -> bool:
    """Whether a sum of money follows, so that it is a limit."""
    said = [piece for piece in after if piece.kind not in "=lbt"]
    kinds = "".join(piece.kind for piece in said[:2])
    number = said[0].value.value if said and isinstance(said[0].value, Figure) else 0
    return kinds[:1] in ("m", "@", "H") or (kinds[:1] == "n" and kinds[1:] not in tuple(OF_RUNS) and number < MOST_SUM)
