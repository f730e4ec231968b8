"""Sums for other parts of the cost than compute, which are no budget of a run: allocate $40k for storage, storage: $40k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.clauses import PAUSES
from service.formats.ask.grammar.money.unsigned_sums import is_bought, is_sum
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
PURPOSES = frozenset(
    (
        *("storage", "egress", "bandwidth", "networking", "people", "staff", "staffing", "salaries", "salary", "wages", "payroll"),
        *("engineers", "contractors", "headcount", "hiring", "personnel", "labor", "labour", "labeling", "labelling", "labels"),
        *("annotation", "annotations", "annotators", "licences", "licenses", "licensing", "software", "tooling", "tools", "evals", "eval"),
        *("evaluation", "evaluations", "benchmarking", "inference", "serving", "deployment", "travel", "conferences", "marketing", "legal"),
        *("hosting", "cooling", "colocation", "colo", "electricity", "power", "energy", "support", "consulting", "consultants"),
        *("insurance", "monitoring", "backups", "office", "overhead", "contingency", "buffer", "reruns", "annotate", "store"),
        *("recruit", "recruiting", "recruitment"),
    )
)
OTHERS = frozenset(
    (
        *("revenue", "revenues", "turnover", "profit", "profits", "valuation", "penalty", "penalties", "saves", "saved", "fee", "fees"),
        *("loan", "debt", "income", "competitor", "competitors", "lawsuit", "investors", "tax"),
    )
)
"""Words before a sum that is no cost at all, or that of somebody else."""
DATA = "data"
OF_DATA = frozenset(
    {"acquisition", "licensing", "purchase", "purchases", "collection", "prep", "preparation", "cleaning", "labeling", "labelling"}
)
"""What a sum for data is spent on."""
BILLED = frozenset({DATA, "network", "power", "electricity", "energy", "cooling", "hosting"})
"""Parts that are one where their cost is said: network costs of $100k."""
CLIENTS, PAYING = frozenset({"customer", "customers", "client", "clients", "users"}), frozenset({"pay", "pays", "paid"})
CHARGING = frozenset({"charge", "charged", "bill", "billed", "invoice", "invoiced", "sell", "sold", "resell"})
CHARGED = frozenset({"the", "our", "a", "them", "it", "this", "that", "model", "for", "about", "around", "at", "to"})
"""Words between that and its sum."""
OURS = (["my"], ["our"], ["the"])
US, WILL = frozenset({"we", "i"}), frozenset({"will", "can", "could", "would", "may", "plan", "want", "to", "should"})
COUNTED = frozenset(
    (
        *(DATA, "annotations", "annotation", "evals", "eval", "evaluation", "evaluations", "benchmarking", "inference", "serving"),
        *("labels", "deployment", "labeling", "labelling"),
    )
)
"""What samples and accelerators are for, too: a figure without a sign of dollars may be a number of these."""
COMPUTE = frozenset(
    (
        *("compute", "gpu", "gpus", "training", "hardware", "cluster", "accelerators", "everything", "run", "runs", "it", "all"),
        *("pretraining", "optimized", "optimised", "heavy", "intensive", "nodes", "servers"),
    )
)
"""With one of these behind the parts a sum is the budget of the run, too."""
FOR = frozenset({"for", "on", "to", "towards", "toward", "in", "into", "of"})
JOINING = frozenset({"and", "&", "plus", ",", "/"})
MODIFIERS = frozenset(
    {"the", "our", "some", "all", "any", "data", "cloud", "object", "model", "network", "human", "pay", "paying", "hire", "more"}
)
"""Words before a part."""
KEPT = frozenset(
    (
        *("left", "remaining", "extra", "more", "set", "aside", "reserved", "earmarked", "allocated", "budgeted", "goes", "go"),
        *("is", "of", "it", "them", "must", "should", "will", "has", "have", "needs", "be", "to"),
    )
)
"""Words between a sum and what it is for."""
TELLING = frozenset(
    (
        *("budget", "cost", "costs", "bill", "spend", "line", "is", "are", "of", "at", "about", "around", "will", "be", "another", "an"),
        *("extra", "=", ":", "for", "the", "run", "comes", "to", "us", "roughly", "item", "adds", "pay", "pays", "target", "spent"),
        *("paid", "credit", "rate", "under", "below", "max", "maximum", "most", "up", "less", "than", "within", "over", "above", "limit"),
        *("limited", "cap", "capped", "<", "not", "exceed", "more", "no"),
    )
)
"""Words between a part and its sum behind it."""
BEHIND = frozenset({"budget", "costs", "cost", "bill", "spend"})
ADDED = frozenset({"plus", "+", "another", "additional", "extra"})
SPENDING = frozenset({"allocate", "allocating", "earmark", "earmarking", "ringfence", "putting"})
LEAST_USD = 1000
TAKEN = frozenset({FILLER, UNKNOWN, *"Kolti=,ducsWIzvr"})
"""Kinds of pieces that a sum and its part are said with."""
OF_UNITS = frozenset("HE@UL")
"""Kinds of pieces behind a sum that is one of each of something."""
OF_PART = "read as a sum of something else, and no budget of the run"


def without_other_purposes(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without sums for other parts of the cost, each of which is named; of a question about buying they are costs, and asked."""
    if is_bought(pieces):
        return list(pieces), []
    found, doubts = list(pieces), []
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        after = pieces[at + 1].kind if at + 1 < len(pieces) else ""
        if not _is_sum(piece) or after in OF_UNITS or piece not in found:
            continue
        first, last = _part_behind(texts, piece) or _part_before(texts, piece) or _unknown_behind(texts, piece, pieces) or (0, 0)
        first -= first > 0 and texts[first - 1] in SPENDING
        gone = [each for each in found if first < each.last and each.first < last]
        if not gone or any(each.kind not in TAKEN and each is not piece for each in gone):
            continue
        first, last = min(first, gone[0].first), max(last, gone[-1].last)
        counted = COUNTED.intersection(texts[first:last]) or (last > piece.last and texts[piece.last] in PURPOSES)  # 40k annotations
        if piece.kind == "n" and counted:
            continue
        found = [replace(each, kind=FILLER, value="") if each in gone else each for each in found]
        doubts.append(Doubt(sentence.part(first, last), (), OF_PART, blocking=False))
    return found, doubts


def _is_sum(piece: Piece) -> bool:
    figure = piece.value
    return is_sum(piece) or (piece.kind == "m" and isinstance(figure, Figure) and figure.value >= LEAST_USD)


def _part_behind(texts: Sequence[str], sum_of: Piece) -> tuple[int, int] | None:
    """From a sum to the last of the parts behind it: $40k for storage, $100k in salaries and travel, $40k storage budget."""
    at = sum_of.last
    while at < len(texts) and texts[at] in KEPT:
        at += 1
    at += at < len(texts) and texts[at] in FOR - KEPT
    end = sum_of.last
    while at < len(texts) and (_is_part(texts, at) or texts[at] in MODIFIERS or (texts[at] in JOINING and end > sum_of.last)):
        end = at + 1 if _is_part(texts, at) else end
        at += 1
    if end == sum_of.last or _is_of_run(texts, end, at):
        return None
    return sum_of.first, end + (texts[end : end + 1] != [] and texts[end] in BEHIND)


def _is_of_run(texts: Sequence[str], end: int, at: int) -> bool:
    """Whether the token behind the last part makes the sum one of a run, too: for storage and compute, but not `storage, training for`."""
    if at >= len(texts):
        return False
    if end == at:
        return texts[at] in COMPUTE or texts[at][0].isdigit()
    ended = at + 1 == len(texts) or texts[at + 1] in PAUSES | JOINING
    return texts[at] in COMPUTE and (ended or texts[at - 1] != ",")


def _is_part(texts: Sequence[str], at: int) -> bool:
    billed = texts[at] in BILLED and texts[at + 1 : at + 2] != [] and texts[at + 1] in BEHIND
    return texts[at] in PURPOSES | OTHERS or billed or (texts[at] in OF_DATA and texts[at - 1] == DATA) or _is_data(texts, at)


def _is_data(texts: Sequence[str], at: int) -> bool:
    """Whether data are what a sum is for, and no word of something else: for data, but data centre, data parallel."""
    return texts[at] == DATA and (at + 1 == len(texts) or texts[at + 1] in (",", ".", ";", "?", "!", "and", "&"))


def _unknown_behind(texts: Sequence[str], sum_of: Piece, pieces: Pieces) -> tuple[int, int] | None:
    """From a sum that comes on top to the word that is not known and that it is for: plus $12k for Zyx."""
    named = next((piece for piece in pieces if piece.first == sum_of.last + 1 and piece.kind == UNKNOWN), None)
    added = sum_of.first > 0 and texts[sum_of.first - 1] in ADDED
    return (sum_of.first, named.last) if named is not None and added and texts[sum_of.last] == "for" else None


def _part_before(texts: Sequence[str], sum_of: Piece) -> tuple[int, int] | None:
    """From a part to its sum behind it: storage budget of $40k, egress: $40k, storage costs another $40k."""
    at = sum_of.first - 1
    while at > 0 and texts[at] in TELLING:
        at -= 1
    told = texts[at + 1 : sum_of.first]
    billed = texts[at] in BILLED and bool(BEHIND.intersection(told))
    paid = texts[at] in CLIENTS and bool(PAYING.intersection(told))
    part = at >= 0 and (billed or paid or texts[at] in (PURPOSES | OTHERS) - BILLED - {"support", "staff"})
    joined = texts[max(at - 1, 0) : at] in (["and"], ["&"], ["for"], ["with"], ["plus"])
    own = texts[sum_of.last : sum_of.last + 1] in (["to"], ["against"]) and texts[sum_of.last + 1 : sum_of.last + 2] in OURS  # to my grant
    charged = -1 if own else _charged(texts, sum_of.first)
    if charged >= 0:
        return charged, sum_of.last
    return None if not part or (joined and at + 1 == sum_of.first) else (at, sum_of.last)


def _charged(texts: Sequence[str], end: int) -> int:
    """The token of the subject that charges a customer a sum: we charge the client $3M, we sell the model for $5M; else -1."""
    at = end - 1
    while at > 0 and texts[at] in CLIENTS | CHARGED:
        at -= 1
    subject = at - 1 - (texts[at - 1] in WILL)
    return subject if at > 0 and subject >= 0 and texts[at] in CHARGING and texts[subject] in US else -1
