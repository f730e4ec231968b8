"""Programs in questions of status: by name, a part of it, or what is like it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rapidfuzz import fuzz, process

from service.formats.ask.grammar.asking.doubts import FITTING
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import MOST_CANDIDATES, Chosen, Doubtful
from service.formats.ask.lexing.numbers import Figure, read_figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, compact

CALLED = frozenset({"program", "programme", "programs", "project"})
"""Words beside a name that say of what it is."""
_EVERY = re.compile(
    r"(?:\b(?:all|every|each|which|any)\b[^,.;?]*?\bprogram(?:me)?s?|\b(?:what|list|show|our|the)\b[^,.;?]*?\bprogram(?:me)?s)\b"
    r"(?: that| which| are)*(?: (?:behind|ahead|over|late|on)\b[\w ]*)?",
    re.IGNORECASE,
)
"""Words of all programs, or of those that something is true of."""
_ASKED_OF = re.compile(
    r"\W*(?:(?:so|and|hi|hey|please|pls)\b\W*)*(?:when\s+)?(?:is|are|will|did|has|does|was)\s+(?:(?:the|our|my)\s+)?(?:(?:project|program(?:me)?|run)\s+)?"
    r"(?P<name>[\w-]+(?:\s+[\w.-]+)??)\s+(?:(?:project|program(?:me)?)\s+)?"
    r"(?:(?:still|currently|now|going to|likely to|set to|expected to|be|running|gone|go|finish|end|land|come in|done|complete)\s+)*"
    r"(?:(?:make|hit|meet|miss)\s+(?:its|the|their|that|this)\s+(?:deadline|budget|target|date)"
    r"|on time|in time|late|behind|ahead|on track|(?:on|within|over|under) (?:its )?budget|overspent|on schedule"
    r"|(?P<ends>finish(?:ed)?|done|completed?|ready)|burning too fast)"
    r"(?: of| behind)?(?: schedule| plan)?(?:\s+or not)?\W*",
    re.IGNORECASE,
)
"""A whole question of whether a program keeps its time and money: is atlas going to make its deadline, will atlas finish on time?"""
_ASKED_FOR = re.compile(
    r"\W*(?:are we (?:going|likely|set) to|will we|do we|can we|did we)\s+(?:still\s+)?(?:make|hit|meet|miss)\s+(?:the|our)\s+"
    r"(?:deadline|budget|target|date)\s+(?:on|for|with|of)\s+(?:(?:the|our|my)\s+)?(?:(?:project|program(?:me)?)\s+)?"
    r"(?P<name>[\w-]+(?:\s+[\w.-]+)?)\W*",
    re.IGNORECASE,
)
"""The same of us: are we going to hit the deadline on orion?"""
OF_TRACKED = "a status is of the sums that are tracked of the program"
_SPENT = re.compile(
    r"\W*(?:(?:the|our|my)\s+)?(?:(?:project|program(?:me)?)\s+)?(?!(?:we|i|they|it|you|he|she)\b)"
    r"(?P<name>[a-z][\w.-]*(?:\s+(?!has|have)[\w.-]+)?)\s+"
    r"(?:(?:has|have)\s+)?(?:already\s+)?(?:burned|burnt|spent|used|used up|consumed|eaten|gone through|burned through)\s+(?:about\s+)?"
    r"\$?[\d.,]+\s*(?:k|m|mn|million)?\s+(?:out\s+)?of\s+(?:(?:its|the|a|our)\s+)?(?:budget\s+of\s+)?\$?[\d.,]+\s*(?:k|m|mn|million)?"
    r"(?:\s+budget)?(?:\W+.*)?",
    re.IGNORECASE,
)
"""What is told of a program's money: helios burned 1.4M of 3M."""
OF_ONE = "a status is of one program, and programs are not chosen by it: which?"
NONE_TRACKED = "no program is tracked; POST /v1/track/programs starts one"
CLAUSES = frozenset({"are", "is", "will", "do", "does", "can", "and", "what", "how", "when", "any", "did", "have", "has"})
"""Words that a second clause begins with."""
OF_RUN = "MACPRJGSXYTQHmp"
"""Kinds of pieces of a run or of prices, which are no part of an unknown name."""
RUN_QUESTIONS = frozenset({"optimal", "buy_or_rent", "help"})
ANY = frozenset({"anything", "everything", "something", "nothing", "anyone", "everyone", "training", "this", "that"})
RUN = frozenset({"run", "branch", "job", "experiment"})
BEFORE_RUN = RUN | {"/"}
NAMES_OF_RUNS = frozenset(
    {"main", "baseline", "base", "primary", "production", "small", "large", "big", "tiny", "new", "final", "latest", "flagship", "dense"}
)
"""Fillers that one run of several may be called by."""
OF_WHOLE_PROGRAM = "a status is of the whole program with all its runs, and not of one of them"
ASKING = frozenset({"this", "your"})
"""Words before what is asked, which is no part of a program's name: can this bot tell how claims-bot is doing."""
LEAST_SCALE = 10**6
"""A number of millions and more may be a size."""


def read_program(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with what follows `status` read as a program's name, whatever it is made of; and its candidates, where it is none."""
    asked = _asked_of(sentence, pieces)
    named = next((piece.last for piece in pieces if piece.kind == "G"), 0)
    sums = (
        [piece for piece in pieces if piece.kind in "nm" and piece.first >= named][:2] if named and _SPENT.fullmatch(sentence.text) else []
    )
    if len(sums) == len(("spent", "budget")):
        text = sentence.part(sums[0].first, sums[1].last)
        return [piece for piece in pieces if piece not in sums], [Doubt(text, (), OF_TRACKED, blocking=False)]
    if not asked:
        return _behind_status(sentence, pieces, vocabulary)
    found = _programs_like(asked, vocabulary)
    if len(found) == 1 and compact(asked) in compact(found[0].value):
        return [Piece("I", "status", 0, 1), Piece("G", Chosen(found[0], asked), 0, len(sentence.tokens))], []
    doubt = _unknown(asked, found, vocabulary)
    told = replace(doubt, text=sentence.text) if _SPENT.fullmatch(sentence.text) else doubt  # with its sums
    return [Piece("I", "status", 0, 1)], [told]


def _behind_status(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the name of a program behind words of status, and its candidates."""
    pieces = _with_status(sentence, pieces)
    several = _EVERY.search(sentence.text)
    if several and _asks_status(pieces):
        names = tuple(name.value for name in vocabulary.programs[:MOST_CANDIDATES])
        return [Piece("I", "status", 0, 1)], [Doubt("", names, f"{several[0]}: {OF_ONE if names else NONE_TRACKED}")]
    at = next((at for at, piece in enumerate(pieces) if piece.kind != FILLER and (piece.kind, piece.value) != ("I", "estimate")), None)
    if at is None or pieces[at].kind != "I" or pieces[at].value != "status" or any(piece.kind == "G" for piece in pieces):
        return list(pieces), []
    begin, end = at + 1, len(pieces)
    while begin < end and pieces[begin].kind in (FILLER, "I", "c", "o", "b", ",", "i"):
        begin += 1
    stop = next((here for here in range(begin, end) if pieces[here].kind == "D" or _parts(sentence, pieces, here)), end)
    while stop > begin and pieces[stop - 1].kind in (FILLER, "I", "c", *"abiwut,") and not _is_joined(sentence, pieces[stop - 1]):
        stop -= 1
    if begin >= stop:
        return list(pieces), []
    first, last = pieces[begin].first, pieces[stop - 1].last
    asked = sentence.part(first, last).removesuffix("'s")
    found = _programs_like(asked, vocabulary)
    before, after = list(pieces[:begin]), list(pieces[stop:])
    if not found and _says_run(pieces[begin:stop]):
        return list(pieces), []
    if len(found) == 1 and (compact(asked) in compact(found[0].value)):
        return [*before, Piece("G", Chosen(found[0], asked), first, last), *after], []
    return [*before, *after], [_unknown(asked, found, vocabulary)]


def _asks_status(pieces: Sequence[Piece]) -> bool:
    """Whether pieces are words of status or none that say anything, and nothing of a run or a known program."""
    status = any(piece.kind in "Ic" and "status" in str(piece.value).split() for piece in pieces)
    silent = all(piece.kind in (FILLER, UNKNOWN, "I") and piece.value not in RUN_QUESTIONS for piece in pieces)
    return (status or silent) and not any(piece.kind in f"{OF_RUN}n" for piece in pieces)


def _unknown(asked: str, found: Sequence[Name], vocabulary: Vocabulary) -> Doubt:
    """Which program is meant by a name that no program has, or several have."""
    names = tuple(name.value for name in found) or tuple(name.value for name in vocabulary.programs[:MOST_CANDIDATES])
    if len({*names}) < len(names):
        names = tuple(f"{name.value} ({name.id})" for name in found)
    unknown = f"no program named {asked} is tracked"
    which = ("which program?" if found else f"{unknown}: one of these?") if names else f"{unknown}; POST /v1/track/programs starts one"
    return Doubt(asked, names, which)


def _asked_of(sentence: Sentence, pieces: Sequence[Piece]) -> str:
    """The name that a whole sentence asks the time and money of, where no part of it is of a run or of a known program."""
    spent = _SPENT.fullmatch(sentence.text)
    found = spent or _ASKED_OF.fullmatch(sentence.text) or _ASKED_FOR.fullmatch(sentence.text)
    of_run = OF_RUN + ("n" if found and found.groupdict().get("ends") else "")  # when will code-34b be done
    of_run = of_run.replace("m", "") if spent else of_run
    plain = not any(piece.kind in of_run for piece in pieces)
    named = any(piece.kind == UNKNOWN or isinstance(piece.value, Doubtful) for piece in pieces)
    return found["name"] if found and plain and named and found["name"].lower() not in ANY else ""


def _parts(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a comma ends a name and another clause follows it: how is helpdesk doing, are we on budget."""
    after = pieces[at + 1] if at + 1 < len(pieces) else None
    comma = sentence.part(pieces[at].first, pieces[at].last) == ","
    return comma and after is not None and sentence.texts[after.first] in CLAUSES


def _with_status(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a first word of a status (CPI) as what is asked for, where a name follows the word program."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    named = any(piece.kind == UNKNOWN and piece.first > 0 and sentence.texts[piece.first - 1] in CALLED for piece in pieces)
    asked = bool(said) and said[0].kind == "c" and said[0].value == "status" and named
    return [replace(piece, kind="I") if asked and piece is said[0] else piece for piece in pieces]


def _is_joined(sentence: Sentence, piece: Piece) -> bool:
    """Whether a word is the end of one that begins before it: falcon-next."""
    return sentence.tokens[piece.first].glued and sentence.texts[piece.first].isalpha()


def named_as_models(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> set[str]:
    """Labels of programs called as a size or a model is (7B), where more speaks for a run that is planned than for a status."""
    labels = {label for piece in pieces if piece.kind == "G" and (label := _label_of_model(sentence, piece, vocabulary))}
    if not labels:
        return set()
    said = [piece for piece in pieces if piece.kind != FILLER]
    weights = [cue.weight for cue in CUES if any(_is_cue(cue, before, piece) for before, piece in pairwise([None, *said]))]
    return labels if sum(weights) > 0 else set()


def _label_of_model(sentence: Sentence, piece: Piece, vocabulary: Vocabulary) -> str:
    """The label of a program's name that is a size, or a model's name, too; else nothing."""
    beside = {
        token.text for token in (*sentence.tokens[max(piece.first - 1, 0) : piece.first], *sentence.tokens[piece.last : piece.last + 1])
    }
    if beside & CALLED:
        return ""
    label = compact(sentence.part(piece.first, piece.last))
    figure = read_figure(sentence.tokens, piece.first)
    sized = figure is not None and figure[0] == piece.last and figure[1].scale >= LEAST_SCALE
    return label if sized or any(name.kind == "M" for name in vocabulary.names.get(label, ())) else ""


@dataclass(frozen=True, slots=True)
class ProgramCue:
    """A kind of piece that says whether 7B is a size (above 0) or the program of that name (below), and how surely.

    `values`: of these values alone; `after`: after a piece of this kind alone.
    """

    weight: int
    kinds: str
    values: tuple[str, ...] = ()
    after: str = ""


CUES = (
    ProgramCue(2, "T%~"),  # 1T tokens
    ProgramCue(2, "Yy"),  # pretrain, dpo
    ProgramCue(1, "ACg", after="n"),  # 64 H100
    ProgramCue(1, "ACP"),  # on H100, at lambda
    ProgramCue(2, "H", after="nm"),  # $2 an hour
    ProgramCue(2, "s", after="n"),  # 60k pairs
    ProgramCue(2, "n"),  # 7B/1T
    ProgramCue(1, "X#"),  # in fp8
    ProgramCue(-3, "I", values=("status",)),
    ProgramCue(-2, "cj", values=("status", "status chance optimal")),
    ProgramCue(-1, "I", values=("chance",)),
)
"""What is said around it, each once."""


def _is_cue(cue: ProgramCue, before: Piece | None, piece: Piece | None) -> bool:
    if piece is None or piece.kind not in cue.kinds or (cue.after and (before is None or before.kind not in cue.after)):
        return False
    figure = piece.value
    if isinstance(figure, Figure):
        return figure.scale >= LEAST_SCALE
    return not cue.values or piece.value in cue.values


def with_program(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> list[Piece]:
    """The pieces of a question of status (or of nothing else) with an unknown word as the one program whose name has it."""
    intents = {piece.value for piece in pieces if piece.kind == "I"}
    asked = intents & {"status", "chance"} or not (intents or any(_is_of_run(piece) for piece in pieces))
    if not asked or any(piece.kind == "G" for piece in pieces) or ("status" not in intents and _says_run(pieces)):
        return list(pieces)
    found: list[Piece] = []
    for piece in pieces:
        text = sentence.part(piece.first, piece.last).removesuffix("'s")
        before = list(sentence.texts[max(piece.first - 1, 0) : piece.first])
        named = (
            [name for name in vocabulary.programs if compact(text) in compact(name.value)]
            if piece.kind == UNKNOWN and len(text) > 2 and not ASKING.intersection(before)
            else []
        )
        found.append(Piece("G", Chosen(named[0], text), piece.first, piece.last) if len(named) == 1 else piece)
    return found


def runs_of_programs(sentence: Sentence, pieces: Sequence[Piece]) -> list[Doubt]:
    """What is said of one run of a program by a word that says nothing elsewhere: run main in kestrel, kestrel's baseline run."""
    if not any(piece.kind == "G" for piece in pieces):
        return []
    texts = list(sentence.texts)
    for piece in pieces:
        before, after = texts[piece.first - 1] if piece.first else "", texts[piece.last] if piece.last < len(texts) else ""
        if piece.kind == FILLER and sentence.words(piece) in NAMES_OF_RUNS and (before in BEFORE_RUN or after in RUN):
            first, last = piece.first - (before in RUN), piece.last + (after in RUN)
            return [Doubt(sentence.part(first, last), (), OF_WHOLE_PROGRAM, blocking=False)]
    return []


def _says_run(pieces: Sequence[Piece]) -> bool:
    """Whether pieces are of a run on some machine, and no name: 8B model, 4T tokens, 384 H100."""
    kinds = {piece.kind for piece in pieces}
    return bool(kinds & {"A", "C"}) and any(_is_of_run(piece) and piece.kind not in "AC" for piece in pieces)


def _is_of_run(piece: Piece) -> bool:
    """Whether a piece is of a run that is no program yet: a model, accelerators, 7B."""
    figure = piece.value
    return piece.kind in "MAC" or (piece.kind == "n" and isinstance(figure, Figure) and figure.scale >= 10**6)


def _programs_like(asked: str, vocabulary: Vocabulary) -> list[Name]:
    """Programs of a name, else whose name contains it, else whose name is like it."""
    key = compact(asked)
    exact = [name for name in vocabulary.programs if key in (compact(name.value), compact(name.id))]
    within = [name for name in vocabulary.programs if key and key in compact(name.value)]
    if exact or within:
        return (exact or within)[:MOST_CANDIDATES]
    values = [name.value for name in vocabulary.programs]
    near = process.extract(asked, values, scorer=fuzz.WRatio, processor=compact, score_cutoff=FITTING, limit=MOST_CANDIDATES)
    return [vocabulary.programs[index] for _, _, index in near]
