"""What is asked for and not done: how good a model becomes, its scores and its loss, and texts to be written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.clauses import is_within
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

OF_QUALITY = "scores of benchmarks and the quality of a model are not predicted, its cost and time are: ask for those"
OF_LOSS = (
    "the loss of a stated size and tokens is predicted from runs of your own (POST /v1/scaling-laws/fit); by published laws the best model"
    " of a budget has one: say dollars, GPU-hours, days or FLOPs (1e24 flops) without the size"
)
OF_TEXTS = "no texts are written, and none are sent: ask for the figures that go into it"
LOSS_OF_BUDGET = "the answer has the predicted loss of the model"
NAMED = (
    r"(?:mmlu(?:[- ]pro)?|gsm ?8k|human ?eval|hella ?swag|gpqa|swe[- ]?bench|aime|livecodebench|mt[- ]?bench|alpaca ?eval"
    r"|arc[- ]?(?:c|e|agi)|bbh|big[- ]?bench|truthful ?qa|wino ?grande|lambada|mbpp|math[- ]?500|ifeval|lmarena)"
)
BENCHMARK = rf"(?:{NAMED}|benchmarks|leaderboards?)"
OF_OTHERS = re.compile(
    r"\b(?:estimates?|forecasts?|predictions?|projections?|figures?|numbers?|prices?|quotes?|offers?|deals?|reservations?)\b", re.IGNORECASE
)
"""What else may be good or accurate."""
WILL = r"(?:will|would|can|could|might|should|does|do|is|are)"
GOOD = r"(?:good|smart|capable|strong|accurate|competitive)"
BE = r"(?:be|become|get|turn out|end up)"
SCORE = r"(?:scores?|accuracy|quality|win ?rate|elo|pass@\d+)"
SCORED = re.compile(rf"\b(?:{BENCHMARK}|{SCORE})\b", re.IGNORECASE)
REACH = r"(?:scores?|reach(?:es)?|hits?|gets?|beats?|achieves?)"
QUALITY = re.compile(
    "|".join(
        (
            rf"\bhow (?:{GOOD}|well|high)\b [^?;]*?\b(?:on|at|in) {BENCHMARK}\b",
            rf"\bhow {GOOD}(?: of)?(?: an?)?(?: model)? {WILL} [^?;]{{0,60}}?\b{BE}\b",
            rf"\bhow well {WILL} [^?;]{{0,60}}?\b(?:do|perform|score)\b(?: (?:on|at|in) {BENCHMARK})?",
            rf"\bhow (?:far|much) (?:behind|ahead|better|worse)\b[^?;]{{0,80}}?\b(?:quality|evals?|{BENCHMARK})\b",
            rf"\b(?:what|which|how high an?)(?: \w+)? {SCORE}\b(?! (?:of|is|are) (?:the )?(?:offers?|data))",
            rf"\b{REACH}\b [^?;,]{{0,40}}?\b{BENCHMARK}\b(?: {SCORE})?",
            rf"\b{NAMED} (?:scores?|accuracy|results?|performance)\b",
        )
    ),
    re.IGNORECASE,
)
OF_SIZE = r"(?:of|for|at) (?:an? |the )?\d[\d.]*[bmt]\b"
LOSSES = r"(?:loss|perplexity|ppl)"
LOSS = re.compile(
    rf"\b(?:(?:what|which|how low an?|how high an?)(?: (?:\w+ )?|'s the | is the | will be the | would be the ){LOSSES}\b"
    rf"|(?:(?:final|validation|val|train|training|eval|predicted|expected|test) )?{LOSSES}\b(?= {OF_SIZE}| ?(?:\?|$)))"
    r"(?!-optimal| optimal| (?:of (?:a |the )?(?:\d+ )?(?:nodes?|gpus?|data|money|h100s?)|spikes?|curves?))",
    re.IGNORECASE,
)
ASKED = r"(?:^|[.;!?,:] ?|\b(?:please|pls|plz|(?:can|could|would|will) (?:you|u)|help me(?: to)?|i need you to|and|then|also|to) )"
TEXT = (
    r"(?:e-?mails?|mails?|letters?|messages?|counter ?-?offers?|replies|reply|contracts?|rfps?|rfqs?|sows?|memos?|slides?|decks?"
    r"|presentations?|proposals?|blog ?posts?|posts?|tweets?|tickets?|poems?|jokes?|essays?|job (?:ad|description)s?)"
)
WRITE = r"(?:write|draft|compose|prepare|rewrite|translate)\b(?: (?:me|us|up))?"
WRITING = re.compile(rf"{ASKED}\W*(?P<text>{WRITE}(?: (?!on\b|for\b|of\b)[a-z'-]+){{0,5}}?(?: {TEXT})+)\b", re.IGNORECASE)
"""What is to be written, where it is asked for: not in `I write a proposal`."""
FACTS = "nmp€UDMACPRJGκBYyXZS"
"""Kinds of pieces that are facts of a question, whatever is to be written about them."""


def with_not_done(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without words that ask for such things. What a text is to be written about is answered, where it is a run."""
    found, doubts = list(pieces), []
    of_run = any(is_trained(piece) for piece in pieces)
    written = WRITING.search(sentence.text)
    if written is not None:
        found = [
            replace(piece, kind=FILLER, value="") if piece.kind not in FACTS and _begins_within(sentence, piece, written) else piece
            for piece in found
        ]
        doubts.append(Doubt(written["text"], (), OF_TEXTS, blocking=not of_run))
    good = QUALITY.search(sentence.text)
    if good is not None and _is_of_model(sentence, pieces, good):
        found = _without(sentence, found, good)
        doubts.append(Doubt(good.group().strip(), (), OF_QUALITY))
    loss = LOSS.search(sentence.text)
    if loss is not None and not any(piece.kind == "G" for piece in pieces):
        found = _without(sentence, found, loss)
        sized = any(piece.kind == "M" for piece in pieces) or sum(is_trained(piece) for piece in pieces) > 1
        budget = any(piece.kind in "mf" or (piece.kind == "h" and not sized) for piece in pieces) and not sized
        doubts.append(Doubt(loss.group().strip(), (), LOSS_OF_BUDGET if budget else OF_LOSS, blocking=not budget))
    return found, doubts


def _is_of_model(sentence: Sentence, pieces: Sequence[Piece], good: re.Match[str]) -> bool:
    """Whether words of quality are of a model that is trained, and of no estimate, price or setting."""
    trained = [piece for piece in pieces if is_trained(piece)]
    named = any(is_within(sentence, piece, good) for piece in trained) or SCORED.search(good.group()) is not None
    return bool(trained) and named and not OF_OTHERS.search(good.group())


def _begins_within(sentence: Sentence, piece: Piece, written: re.Match[str]) -> bool:
    return piece.last > piece.first and written.start("text") <= sentence.tokens[piece.first].start < written.end()


def _without(sentence: Sentence, pieces: Sequence[Piece], match: re.Match[str]) -> list[Piece]:
    """The pieces with unknown words and those of asking in a match as fillers."""
    return [
        replace(piece, kind=FILLER, value="") if piece.kind in (UNKNOWN, "I") and is_within(sentence, piece, match) else piece
        for piece in pieces
    ]
