"""Reads a sentence: tokens, pieces, slots, kind of question, request, echo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from rapidfuzz import fuzz, process

from service.domain.ask import Kind, Reading, ReadingNote, UnclearText, Understanding
from service.formats.ask.grammar.bare import settle
from service.formats.ask.grammar.intents import choose_kind
from service.formats.ask.grammar.rules import apply_rules
from service.formats.ask.grammar.slots import Doubt, Slot, Slots
from service.formats.ask.lexing.dates import Duration
from service.formats.ask.lexing.names import MOST_CANDIDATES, Chosen, Doubtful
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN, correct_words, read_pieces
from service.formats.ask.lexing.tokens import Piece, Token, normalise, tokenise
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, compact
from service.formats.ask.requests.builders import BUILDERS, ENDPOINTS
from service.formats.ask.requests.draft import Draft
from service.formats.ask.requests.echo import echo

# Words that say what is asked and add nothing where another question is answered.
SOFT_INTENTS = frozenset({"estimate", "compare", "price", "chance", "optimal", "help"})
# Attributes that are words of other senses too: alone they say nothing.
_WEAK = frozenset(
    (
        "use",
        "used",
        "usage",
        "sure",
        "certain",
        "load",
        "batch",
        "context",
        "seq",
        "growing",
        "discount",
        "interest",
        "inference",
        "rank",
        "confident",
        "in",
    )
)
GOVERNING = frozenset("bwauqlt!")
"""Words that make what follows a date, a limit or a price."""
QUESTIONS: Mapping[str, str] = {
    "k": "which accelerators of this vendor?",
    "€": "amounts are in US dollars: how many of them?",
    "L": "prices are of one accelerator: what is it of one?",
    "D": "what of this time: by it, from it, or for it?",
    "U": "what of this time: by it, from it, or for it?",
    "n": "what is this number of?",
    "m": "what is this number of?",
}
"""What to ask about pieces that no rule reads, by their kind."""
GOVERNED = frozenset("PRJSXA")
"""Names before which an unknown word may leave them out: sans aws."""
EITHER = frozenset({"or", "vs", "versus", "against", "/", "v", "."})
"""Words between accelerators of which one is taken; `and` may mean both together."""
FITTING = 82.0
"""Likeness of a program's name from which it is a candidate [%]."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in tokens."""

    text: str
    tokens: tuple[Token, ...]

    def part(self, first: int, last: int) -> str:
        """Tokens as they were written."""
        return self.text[self.tokens[first].start : self.tokens[last - 1].end]


def parse(text: str, vocabulary: Vocabulary, today: date) -> Reading | None:
    """The request that a sentence is read as, with all that is not understood; None where nothing of it is."""
    written = normalise(text)
    tokens, corrections = correct_words(tokenise(written), vocabulary)
    sentence = Sentence(written, tokens)
    if not tokens:
        return None
    pieces = read_pieces(tokens, vocabulary, today)
    asked_of = _read_program(sentence, pieces, vocabulary)
    asked_of = (_without_vendors(asked_of[0]), asked_of[1])
    pieces, denied = _split_denied(_with_program(sentence, asked_of[0], vocabulary))
    slots, left = apply_rules([piece for piece in pieces if piece.kind != FILLER])
    slots = _single_ones(tokens, _plain_reserved(slots))
    names = {slot.name for slot in slots}
    left = [piece for piece in left if not (piece.kind == "K" and piece.value in names)]
    slots, question = settle(
        [_dated(slot, today) for slot in slots],
        model_known=any(slot.name == "model" for slot in slots) or any(_doubts_model(piece) for piece in left),
    )
    doubts = [
        *asked_of[1],
        *_denied_doubts(sentence, denied),
        *_piece_doubts(sentence, pieces, left, vocabulary),
        *_slot_doubts(sentence, slots),
        *_group_doubts(sentence, slots),
    ]
    doubts += [Doubt(sentence.part(slot.first, slot.last), (), question) for slot in slots if slot.name == "quantity"]
    slots, future = _past_days(sentence, slots, today)
    doubts += future
    slots += [Slot("doubtful_model", piece.value, piece.first, piece.last) for piece in left if _doubts_model(piece)]
    said = Slots(tuple(slots), {"quantity", "one", "intent", "doubtful_model"})
    kind = choose_kind(said)
    if kind is None:
        return None
    draft = Draft(said, today, doubts)
    request = BUILDERS[kind](draft)
    draft.doubts += _unused_doubts(sentence, said, kind)
    notes = [*(ReadingNote("", item.read, f"{item.written!r} is taken for a slip") for item in corrections), *draft.notes]
    return _reading(kind, request, said, draft.doubts, notes)


def _plain_reserved(slots: Sequence[Slot]) -> list[Slot]:
    """The slots without a bare `reserved` where a term is said too."""
    termed = any(slot.name == "pricing" and str(slot.value).startswith("reserved_") for slot in slots)
    return [slot for slot in slots if not (termed and slot.name == "pricing" and slot.value == "reserved")]


def _single_ones(tokens: Sequence[Token], slots: list[Slot]) -> list[Slot]:
    """The slots with a count of one for `an H100`, where no number is said."""
    if any(slot.name in ("count", "nodes") for slot in slots):
        return slots
    ones = [slot for slot in slots if slot.name == "accelerator" and slot.first > 0 and tokens[slot.first - 1].text in ("a", "an")]
    single = [slot for slot in ones if tokens[slot.last - 1].text != "s"]
    return [*slots, *(Slot("count", 1, slot.first, slot.last, "a single one", implied=True) for slot in single)]


def _dated(slot: Slot, today: date) -> Slot:
    """The slot with a day in place of a time from today on."""
    if slot.name in ("start", "deadline") and isinstance(slot.value, Duration):
        return replace(slot, value=slot.value.after(today))
    return slot


def _past_days(sentence: Sentence, slots: Sequence[Slot], today: date) -> tuple[list[Slot], list[Doubt]]:
    """The slots of a question about a program's status without days to come whose year is said, and what to ask about those."""
    asked = {slot.value for slot in slots if slot.name == "intent"}
    if "chance" in asked or not any(slot.name == "program" for slot in slots):
        return list(slots), []
    texts = {slot: sentence.part(slot.first, slot.last) for slot in slots if isinstance(slot.value, date) and slot.value > today}
    future = [slot for slot, text in texts.items() if str(slot.value)[:4] in text]
    doubts = [Doubt(texts[slot], (), "a status is of the past, and this day is to come: of which day?") for slot in future]
    return [slot for slot in slots if slot not in future], doubts


def _reading(kind: Kind, request: dict[str, object], said: Slots, doubts: Iterable[Doubt], notes: Sequence[ReadingNote]) -> Reading:
    program = said.peek("program")
    name = program.value if isinstance(program, Name) else ""
    endpoint = ENDPOINTS["status"] if kind == "chance" and name else ENDPOINTS[kind]
    unclear = dict.fromkeys(UnclearText(doubt.text, doubt.candidates, doubt.question, doubt.blocking) for doubt in doubts)
    return Reading(Understanding(kind, endpoint, request, echo(kind, request, name)), tuple(unclear), tuple(notes))


def _doubts_model(piece: Piece) -> bool:
    return isinstance(piece.value, Doubtful) and piece.value.what == "model"


def _read_program(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with what follows `status` read as a program's name, whatever it is made of; and its candidates, where it is none."""
    at = next((at for at, piece in enumerate(pieces) if piece.kind != FILLER), None)
    if at is None or pieces[at].kind != "I" or pieces[at].value != "status" or any(piece.kind == "G" for piece in pieces):
        return list(pieces), []
    begin, end = at + 1, len(pieces)
    while begin < end and pieces[begin].kind in (FILLER, "I", "o", "b", ",", "i"):
        begin += 1
    dated = next((here for here in range(begin, end - 1) if pieces[here].kind in "abiwut" and pieces[here + 1].kind == "D"), end)
    stop = dated
    while stop > begin and pieces[stop - 1].kind in (FILLER, "I", ","):
        stop -= 1
    if begin >= stop:
        return list(pieces), []
    first, last = pieces[begin].first, pieces[stop - 1].last
    asked = sentence.part(first, last)
    found = _programs_like(asked, vocabulary)
    before, after = list(pieces[:begin]), list(pieces[stop:])
    if len(found) == 1 and (compact(asked) in compact(found[0].value)):
        return [*before, Piece("G", Chosen(found[0], asked), first, last), *after], []
    names = tuple(name.value for name in found) or tuple(name.value for name in vocabulary.programs[:MOST_CANDIDATES])
    if len({*names}) < len(names):
        names = tuple(f"{name.value} ({name.id})" for name in found)
    which = "which program?" if names else "no program of this name is tracked; POST /v1/track/programs starts one"
    return [*before, *after], [Doubt(asked, names, which)]


def _without_vendors(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces without a vendor's name before its accelerator."""
    following = [piece.kind for piece in pieces[1:]] + [""]
    return [piece for piece, after in zip(pieces, following, strict=True) if piece.kind != "k" or after != "A"]


def _with_program(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> list[Piece]:
    """The pieces of a question of status with an unknown word as the one program whose name has it."""
    asked = any(piece.kind == "I" and piece.value in ("status", "chance") for piece in pieces)
    if not asked or any(piece.kind == "G" for piece in pieces):
        return list(pieces)
    found: list[Piece] = []
    for piece in pieces:
        text = sentence.part(piece.first, piece.last)
        named = (
            [name for name in vocabulary.programs if compact(text) in compact(name.value)]
            if piece.kind == UNKNOWN and len(text) > 2
            else []
        )
        found.append(Piece("G", Chosen(named[0], text), piece.first, piece.last) if len(named) == 1 else piece)
    return found


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


def _split_denied(pieces: Sequence[Piece]) -> tuple[list[Piece], list[list[Piece]]]:
    """The pieces without what a `not` or `without` denies, and those: up to the next piece that says something."""
    kept: list[Piece] = []
    denied: list[list[Piece]] = []
    at = 0
    while at < len(pieces):
        if pieces[at].kind != "!":
            kept.append(pieces[at])
            at += 1
            continue
        end = at + 1
        while end < len(pieces) and pieces[end].kind in "_biotawu,":
            end += 1
        denied.append(list(pieces[at : end + 1]))
        at = end + 1
    return kept, denied


def _denied_doubts(sentence: Sentence, denied: Iterable[Sequence[Piece]]) -> Iterator[Doubt]:
    for pieces in denied:
        text = sentence.part(pieces[0].first, pieces[-1].last)
        yield Doubt(text, (), "what is left out is not understood: say what is wanted instead")


def _piece_doubts(sentence: Sentence, pieces: Sequence[Piece], left: Sequence[Piece], vocabulary: Vocabulary) -> Iterator[Doubt]:
    """What no rule reads: names in doubt, figures without a meaning, unknown words, neighbours as one."""
    governed = {after.first for before, after in pairwise(pieces) if before.kind in GOVERNING or _text(sentence, before) in ("per", "/")}
    said = [piece for piece in pieces if piece.kind != FILLER]
    governed |= {before.first for before, after in pairwise(said) if after.kind in GOVERNED}
    run: list[Piece] = []
    for piece in left:
        if piece.kind == UNKNOWN and (not run or run[-1].last == piece.first):
            run.append(piece)
            continue
        yield from _unknown(sentence, run, vocabulary, governed)
        run = [piece] if piece.kind == UNKNOWN else []
        if not run:
            doubt = _piece_doubt(sentence.part(piece.first, piece.last), piece)
            if doubt is not None:
                yield doubt
    yield from _unknown(sentence, run, vocabulary, governed)


def _text(sentence: Sentence, piece: Piece) -> str:
    return sentence.part(piece.first, piece.last).lower()


def _unknown(sentence: Sentence, run: Sequence[Piece], vocabulary: Vocabulary, governed: Set[int]) -> Iterator[Doubt]:
    if not run:
        return
    text = sentence.part(run[0].first, run[-1].last)
    near = process.extract(compact(text), vocabulary.labels, scorer=fuzz.ratio, score_cutoff=FITTING, limit=MOST_CANDIDATES)
    candidates = tuple(dict.fromkeys(vocabulary.names[label][0].value for label, _, _ in near))
    signs = any(character.isdigit() or character in "-+<>" for character in text)
    blocking = signs or bool(candidates) or any(piece.first in governed for piece in run)
    yield Doubt(text, candidates, "one of these?" if candidates else "not understood", blocking)


def _piece_doubt(text: str, piece: Piece) -> Doubt | None:
    """What to ask about a piece that no rule reads; None where it says nothing alone."""
    value = piece.value
    if isinstance(value, Doubtful):
        what = f"which {value.what}: one of these?" if value.candidates else f"which {value.what}?"
        return Doubt(text, value.candidates, what)
    if piece.kind == "K":
        return None if text.lower() in _WEAK else Doubt(text, (), f"how much {text}?")
    if piece.kind == "p":
        return Doubt(text, (f"{text} utilisation", f"{text} MFU"), "a percentage of what?")
    question = QUESTIONS.get(piece.kind)
    return Doubt(text, (), "not understood", blocking=False) if question is None else Doubt(text, (), question)


def _slot_doubts(sentence: Sentence, slots: Iterable[Slot]) -> Iterator[Doubt]:
    """Counts whose comma may part a list, and days whose order of day and month is not known."""
    for slot in slots:
        text = sentence.part(slot.first, slot.last)
        if slot.name == "count" and slot.note.startswith("its comma"):
            listed = slot.note[slot.note.index("(") + 1 : slot.note.index(")")].replace(", ", " or ")
            yield Doubt(text, (listed, text.replace(",", "")), "one number, or several?")
        elif slot.name in ("start", "deadline", "date") and slot.others:
            yield Doubt(text, slot.others, "which day?")


def _group_doubts(sentence: Sentence, slots: Iterable[Slot]) -> Iterator[Doubt]:
    """Several accelerators, each with a number of its own that others do not have: a comparison would cross them."""
    counted = {(slot.first, slot.last) for slot in slots if slot.name == "count"}
    groups = sorted(counted & {(slot.first, slot.last) for slot in slots if slot.name == "accelerator"})
    if len(groups) > 1 and not _same_numbers(sentence, slots, groups):
        texts = tuple(sentence.part(first, last) for first, last in groups)
        yield Doubt(
            sentence.part(groups[0][0], groups[-1][1]), texts, "each number is weighed on each accelerator: ask for one of these at a time"
        )


def _same_numbers(sentence: Sentence, slots: Iterable[Slot], groups: Sequence[tuple[int, int]]) -> bool:
    """Whether as many of one accelerator are meant as of the other (256 h100 or 256 h200), and not both of them together."""
    numbers = {at: tuple(slot.value for slot in slots if slot.name == "count" and (slot.first, slot.last) == at) for at in groups}
    between = {token.text for (_, end), (begin, _) in pairwise(groups) for token in sentence.tokens[end:begin]}
    return len(set(numbers.values())) == 1 and between <= EITHER


def _unused_doubts(sentence: Sentence, said: Slots, kind: Kind) -> Iterator[Doubt]:
    """What was understood and has no place in the request, so that nothing is dropped in silence."""
    for slot in said.left():
        if slot.name == "rent":
            continue
        text = sentence.part(slot.first, slot.last)
        if kind == "price" and slot.name in ("count", "nodes"):
            yield Doubt(text, (), "prices are of one accelerator, whatever their number", blocking=False)
        else:
            yield _unused(text, slot, kind)
    for slot in said.all:
        if slot.name == "intent" and slot.value != kind and slot.value not in SOFT_INTENTS:
            yield Doubt(sentence.part(slot.first, slot.last), (), f"read as a question of kind {kind}", blocking=False)


def _unused(text: str, slot: Slot, kind: Kind) -> Doubt:
    question = f"has no place in a request of kind {kind}"
    if slot.name == "batch_size":
        return Doubt(
            text,
            (f"batch of {slot.value} sequences, in tokens", f"{slot.value} tokens per batch"),
            "a batch is stated in tokens: how many?",
        )
    if slot.name == "date":
        return Doubt(text, (f"by {text}", f"from {text}"), "is it the deadline or the start?")
    if slot.name == "other_unit":
        return Doubt(text, (), f"data are counted in tokens, or samples: how many are these {slot.value}?")
    if slot.name == "span":
        return Doubt(text, (f"within {text.removeprefix('for ').removeprefix('over ')}",), f"{question}: is it a limit?")
    if slot.name == "share":
        return Doubt(text, (f"{text.removeprefix('at ')} MFU", f"{text.removeprefix('at ')} utilisation"), "a percentage of what?")
    return Doubt(text, (), question)
