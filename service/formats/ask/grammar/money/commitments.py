"""What a team agrees on with sellers: to spend a sum, which is no reservation (Azure commit), or to rent for a time (an RFQ for a year)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.clauses import clauses
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

COMMITMENTS = frozenset({"commit", "commitment", "committed spend"})
ENDING = frozenset({"runs", "run", "expires", "expire", "expiring", "ends", "end", "ending", "lapses", "valid"})
CLAUSE_ENDS = frozenset({".", "?", ";", ",", ":"})
TENDERS = frozenset(
    (
        *("rfq", "rfqs", "rfp", "rfps", "rfi", "tender", "tenders", "tendering", "solicitation", "contract", "contracts", "contracting"),
        *("procuring", "procure", "negotiating", "negotiate", "negotiation", "sourcing", "purchase order", "po"),
    )
)
"""Words of asking sellers, before the accelerators and the time that they are rented for."""
OF_TERM = re.compile(r"(?:n?x?[Ag](?:,A)*|n?x?N)([olvw,]?)(U)(?![PTQ])")
LEAST_MONTHS = 1
OF_SPENDING = "read as an agreement to spend, and no reservation: prices are those of list"


def with_commitments(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a provider's commitment that has no term."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    beside = zip(["", *(piece.kind for piece in said)], said, [*(piece.kind for piece in said[1:]), ""], strict=False)
    found = [piece for before, piece, after in beside if before == "P" and after not in ("U", "o") and _is_commitment(sentence, piece)]
    ends = [_end_of_term(sentence, pieces, piece) for piece in found]
    doubts = [
        Doubt(sentence.part(piece.first, end.last if end else piece.last), (), OF_SPENDING, blocking=False)
        for piece, end in zip(found, ends, strict=True)
    ]
    return [piece for piece in pieces if piece not in (*found, *ends)], doubts


def _end_of_term(sentence: Sentence, pieces: Sequence[Piece], commitment: Piece) -> Piece | None:
    """The day on which a commitment ends, which is none of the run: runs out in June."""
    day = next((piece for piece in pieces if piece.kind == "D" and piece.first >= commitment.last), None)
    between = [] if day is None else list(sentence.texts[commitment.last : day.first])
    return day if ENDING.intersection(between) and not CLAUSE_ENDS.intersection(between) else None


def _is_commitment(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind == "S" and sentence.words(piece) in COMMITMENTS


def with_tenders(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the time behind accelerators that sellers are asked for as the term of a contract: an RFQ for 512 GPUs for 1 year."""
    found = list(pieces)
    for begin, end in clauses(sentence, pieces) if any(is_trained(piece) for piece in pieces) else ():
        said = [piece for piece in pieces[begin:end] if piece.kind != FILLER]
        for match in OF_TERM.finditer("".join(piece.kind for piece in said)):
            time = said[match.start(2)]
            words = {sentence.words(piece) for piece in pieces[begin:end] if piece.last <= said[match.start()].first}
            tokens = set(sentence.texts[pieces[begin].first : said[match.start()].first])
            named = TENDERS.intersection(words | tokens)
            trained = any(is_trained(piece) for piece in said[: match.start()])
            if named and not trained and isinstance(time.value, Duration) and time.value.years * 12 >= LEAST_MONTHS:
                joints = said[match.start(1) : match.end(1)]
                term = Piece("§", "term", time.last, time.last)
                found = [piece for each in found if each not in joints for piece in ((each, term) if each is time else (each,))]
    return found, []
