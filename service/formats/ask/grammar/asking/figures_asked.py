"""Words that ask for one figure of an answer, or say what a time is that of: what is taken for them, so that none is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.domain.ask import Kind, ReadingNote
from service.formats.ask.grammar.asking.asked_words import ENERGY, FLOPS, HOURS, PER_DAY, PER_TOKEN, STEPS
from service.formats.ask.grammar.asking.intents import MONEY
from service.formats.ask.grammar.slots import Doubt, Slot, Slots
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

OF_RUNS: Mapping[str, str] = {
    "p50": "the figure before each range is its p50",
    "p90": "the upper end of each range is its p90",
    "worst": "the upper end of each range is its p90, which one run in ten goes over",
    "best": "the lower end of each range is its p10, which one run in ten stays under",
}
"""What an estimate has for a percentile."""
FIELDS: Mapping[str, str] = {
    "memory": "memory",
    "fits": "memory",
    "bubble": "throughput.split",
    "speed": "throughput",
    "bound": "throughput.bound_by",
    "6nd": "flops",
    "goodput": "reliability",
    "interval": "reliability.checkpoint_interval_minutes",
    "p80": "summary.p80_usd",
    HOURS: "time.accelerator_hours",
    FLOPS: "flops",
    STEPS: "time.steps",
    ENERGY: "energy",
    PER_TOKEN: "cost.usd_per_million_tokens",
    PER_DAY: "cost.total_usd",
}
"""Words that ask for a figure of a run, with its field of an estimate."""
OF_PRICES: Mapping[str, str] = {
    "average": "prices are answered with their median, and no average",
    "p50": "prices are answered with their median",
    "p80": "prices are answered with the lowest, the median and the highest",
    "p90": "prices are answered with the lowest, the median and the highest",
    "available": "each offer says what is known of its availability, and none is left out by it",
}
SPECIFICATIONS = frozenset({"memory", "speed", "peak"})
"""Words that ask for a figure of an accelerator, where nothing runs on it."""
ASKED: Mapping[str, str] = {
    "mfu": "throughput.mfu",
    "tokens_per_s": "throughput",
    "tokens_per_s_of_all": "throughput",
    "efficiency.tokens_per_s_per_accelerator": "throughput",
    "efficiency.tflops_per_accelerator": "throughput.tflops_per_accelerator",
    "mtbf_hours": "reliability.mttf_hours",
    "mttf_hours_per_accelerator": "reliability.mttf_hours",
    "checkpoint_interval_minutes": "reliability.checkpoint_interval_minutes",
    "max_tco2e": "energy.tco2e",
    "usd_per_energy": "energy",
    "kw_per_accelerator": "energy.watts_per_accelerator",
}
"""Settings that are figures of an answer too, with its field: without a figure beside them they are asked for."""
OF_LENGTHS = ("deadline", "limit", "span", "date", "probability", *MONEY)
"""What a run is kept to, so that its length matters."""
LEAST_SIZE_SCALE = 10**6
THE_ANSWER_HAS = "the answer has it"
OF_A_STEP = ("memory", "throughput", "reliability", "energy.watts_per_accelerator")
"""Fields of figures that do not depend on how much is trained, or what they begin with."""
IN_EVERY_ANSWER = frozenset({"memory", "time.accelerator_hours"})
"""Fields that the options of a comparison have too, or that are what is asked of a budget."""
FIGURE = "figure"
"""The slot of a figure that is asked for; its value is the field that has it."""
HOURS_OF_BUDGET = "training.accelerator_hours"
"""The field of the best model of a budget that has the accelerator-hours."""
WANTED = frozenset({"need", "needed", "require", "required", "must", "to"})
"""Words that ask how large a figure has to be, which no answer has."""
OF_HOURS = frozenset({"hour", "hours", "hr", "hrs", "h", "gpuh"})
FIGURES = frozenset("nmp€U")
NOTES: Mapping[Kind, Mapping[str, str]] = {
    "estimate": OF_RUNS,
    "chance": OF_RUNS,
    "price": OF_PRICES,
}


def figure_slots(sentence: Sentence, pieces: Sequence[Piece]) -> list[Slot]:
    """The figures of a run that are asked for, by words for them or by settings without a figure."""
    words = {piece.first: FIELDS[str(piece.value)] for piece in pieces if piece.kind == FILLER and piece.value in FIELDS}
    hours = {piece.first: FIELDS[HOURS] for piece in pieces if piece.kind == "I" and _asks_hours(sentence, piece)}
    found = words | hours | asked_figures(sentence, pieces)
    lasts = {piece.first: piece.last for piece in pieces}
    return [Slot(FIGURE, field, first, lasts[first]) for first, field in sorted(found.items())]


def _asks_hours(sentence: Sentence, piece: Piece) -> bool:
    """Whether words of asking are those of accelerator-hours: how many GPU hours."""
    texts = list(sentence.texts[piece.first : piece.last])
    return texts[-1] in OF_HOURS and "gpu" in "".join(texts)


def asks_step(slots: Slots) -> bool:
    """Whether a figure is asked for, and none but those that do not depend on how much is trained, in no time and for no sum."""
    fields = [str(slot.value) for slot in slots.all if slot.name == FIGURE]
    return bool(fields) and all(field.startswith(OF_A_STEP) for field in fields) and not slots.has(*OF_LENGTHS)


def figure_notes(sentence: Sentence, pieces: Sequence[Piece], slots: Slots, kind: Kind) -> Iterator[ReadingNote]:
    """What is taken for such a word in an answer of a kind."""
    known = NOTES.get(kind, {})
    for piece in pieces:
        if piece.kind == FILLER and piece.value in known:
            yield ReadingNote("", sentence.part(piece.first, piece.last), known[str(piece.value)])
    for slot in slots.all:
        if slot.name == FIGURE and kind == "estimate":
            yield ReadingNote(str(slot.value), sentence.part(slot.first, slot.last), f"asked for: {THE_ANSWER_HAS}")
        elif slot.name == FIGURE and kind == "optimal" and slot.value == FIELDS[HOURS]:
            yield ReadingNote(HOURS_OF_BUDGET, sentence.part(slot.first, slot.last), f"asked for: {THE_ANSWER_HAS}")


def figures_of_runs(sentence: Sentence, slots: Slots, kind: Kind) -> Iterator[Doubt]:
    """Figures that an estimate of one run has, where runs are weighed otherwise; what does not fit is no option of theirs."""
    for slot in slots.all:
        if slot.name == FIGURE and kind in ("compare", "chance", "optimal", "buy_or_rent") and slot.value not in IN_EVERY_ANSWER:
            yield Doubt(sentence.part(slot.first, slot.last), (), "an estimate of one run has this figure", blocking=False)


def specification_doubts(sentence: Sentence, pieces: Sequence[Piece], kind: Kind) -> Iterator[Doubt]:
    """Figures of an accelerator, which prices do not have."""
    for piece in pieces:
        if kind == "price" and piece.kind == FILLER and piece.value in SPECIFICATIONS:
            what = "prices have no such figure: GET /v1/accelerators has those of an accelerator, and an estimate those of a run"
            yield Doubt(sentence.part(piece.first, piece.last), (), what)


def asked_figures(sentence: Sentence, pieces: Sequence[Piece]) -> dict[int, str]:
    """Where settings stand that have no figure beside them and are figures of the answer, with its field: what is the MFU."""
    found = {}
    said = [piece for piece in pieces if piece.kind != FILLER]
    for at, piece in enumerate(said):
        beside = {other.kind for other in (*said[max(at - 1, 0) : at], *said[at + 1 : at + 2]) if not _is_size(other)}
        wanted = set(sentence.texts[piece.last : piece.last + 3]) & WANTED
        begins = piece.value == "checkpoint_interval_minutes" and sentence.words(piece).endswith(":")  # from our checkpoint: 256 prompts
        if piece.kind == "K" and piece.value in ASKED and not beside & (FIGURES) and not wanted and not begins:
            found[piece.first] = ASKED[str(piece.value)]
    return found


def _is_size(piece: Piece) -> bool:
    """Whether a figure can only be a size, or a number of tokens: 7B."""
    return isinstance(piece.value, Figure) and piece.value.scale >= LEAST_SIZE_SCALE and not piece.value.unit
