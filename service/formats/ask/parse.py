"""Reads a sentence: tokens, pieces, slots, kind of question, request, echo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from service.domain.ask import Kind, Reading, ReadingNote, UnclearText, Understanding
from service.formats.ask.grammar.accounting import lost_doubts
from service.formats.ask.grammar.alternatives import against_usual, with_ways
from service.formats.ask.grammar.asking.doubts import group_doubts, is_now, misplaced_doubts, piece_doubts, slot_doubts, unused_doubts
from service.formats.ask.grammar.asking.figures_asked import FIGURE, figure_notes, figure_slots, figures_of_runs, specification_doubts
from service.formats.ask.grammar.asking.intents import DATA, MODEL, choose_kind
from service.formats.ask.grammar.attributes import without_loose
from service.formats.ask.grammar.bare import meanings, settle, with_ratio
from service.formats.ask.grammar.context import settle_context
from service.formats.ask.grammar.days.arrivals import with_arrivals
from service.formats.ask.grammar.days.of_others import ends_after_start
from service.formats.ask.grammar.days.past import changed_prices, of_past, past_days, without_papers, without_years_over, words_of_status
from service.formats.ask.grammar.days.times import of_nouns, of_rests, while_had
from service.formats.ask.grammar.days.told import without_told
from service.formats.ask.grammar.denials import marketplaces
from service.formats.ask.grammar.denials.exclusions import split_denied
from service.formats.ask.grammar.machines import cards, spares
from service.formats.ask.grammar.machines.grid_places import with_grid_places
from service.formats.ask.grammar.machines.nodes import NODES, RACKS
from service.formats.ask.grammar.machines.priced_machines import of_machines, of_types, parts_of_fleet, prices_of_one
from service.formats.ask.grammar.machines.reference_offers import without_reference
from service.formats.ask.grammar.machines.regions import apart_doubts, with_cities, with_numbered, with_places_of_a_list, with_stems
from service.formats.ask.grammar.machines.single_machines import any_machine, single_machine
from service.formats.ask.grammar.money import storage
from service.formats.ask.grammar.money.bare_sums import settle_sums, sums_against_rent
from service.formats.ask.grammar.money.currencies import in_dollars
from service.formats.ask.grammar.money.quoted import OF_QUOTES, of_quotes
from service.formats.ask.grammar.money.rates import network_doubts
from service.formats.ask.grammar.money.reservations import HELD_FOR, RESERVED_FOR, TERMS, held_for, several_terms, terms_beside
from service.formats.ask.grammar.money.single_quotes import EXPIRES
from service.formats.ask.grammar.programs import named_as_models, read_program, runs_of_programs, with_program
from service.formats.ask.grammar.quantities import HELD, LEAST_CAPEX_USD
from service.formats.ask.grammar.ranges import Range, both_ends, join_ranges
from service.formats.ask.grammar.readings import availability, fitting, without_other_rates
from service.formats.ask.grammar.rules import apply_rules
from service.formats.ask.grammar.runs import audio, batches, data_said, images, lengths
from service.formats.ask.grammar.runs.distillation import split_teacher
from service.formats.ask.grammar.runs.reinforcement import join_prompts
from service.formats.ask.grammar.runs.roles import split_roles, without_named
from service.formats.ask.grammar.runs.tokens_asked import with_tokens_asked
from service.formats.ask.grammar.slots import Doubt, Slot, Slots
from service.formats.ask.lexing.dates import LEAST_YEAR, MOST_YEAR
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.names import SAME_SIZE, Doubtful
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN, Correction, correct_words, read_pieces
from service.formats.ask.lexing.tokens import Piece, Sentence, Token, normalise, tokenise
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, compact, without_programs
from service.formats.ask.requests.builders import BUILDERS, ENDPOINTS
from service.formats.ask.requests.draft import Draft
from service.formats.ask.requests.echo import echo

MOST_OF_PERIOD = timedelta(days=184)
"""The longest period that has a name and no year: half a year."""
OF_RUNS = frozenset({"estimate", "compare", "chance", "optimal", "buy_or_rent"})
MACHINES = frozenset({"node", "nodes", "server", "servers", "box", "boxes", "machines", "instances", "dgx", "hgx"})


@dataclass(frozen=True, slots=True)
class _Words:
    """A sentence as pieces, `read` as they stand and `settled` by their neighbours; ranges, names left out, and what is asked back."""

    read: Sequence[Piece]
    settled: Sequence[Piece]
    ranges: Sequence[Range]
    without: Sequence[Slot]
    doubts: Sequence[Doubt]
    of_program: bool


def parse(text: str, vocabulary: Vocabulary, today: date) -> Reading | None:
    """The request that a sentence is read as, with all that is not understood; None where nothing of it is."""
    written = normalise(text)
    tokens, corrections = correct_words(tokenise(written), vocabulary)
    if not tokens:
        return None
    sentence = Sentence(written, tokens)
    words = _words(sentence, vocabulary, today)
    slots, left, doubts = _slots(sentence, words, vocabulary, today)
    said = Slots(tuple(slots), {*OF_QUOTES, HELD_FOR, "quantity", "one", "intent", "doubtful_model", "ways", FIGURE})
    kind = choose_kind(said)
    return None if kind is None else _request(sentence, words, left, Draft(said, today, doubts), kind, corrections)


def _words(sentence: Sentence, vocabulary: Vocabulary, today: date) -> _Words:
    """The pieces of a sentence, with programs, ranges and names that are left out."""
    read, foreign = in_dollars(sentence, _read(sentence, vocabulary, today))
    asked, of_past = without_told(sentence, read, today)
    asked, of_offer = without_reference(sentence, asked)
    settled, of_context = settle_context(
        sentence, with_cities(sentence, with_stems(sentence, without_loose(asked), vocabulary), vocabulary)
    )
    pieces, ranges = join_ranges(sentence, settled)
    pieces, of_program = read_program(sentence, pieces, vocabulary)
    pieces = with_program(sentence, _without_vendors(_without_versions(sentence, pieces)), vocabulary)
    pieces, without, denied = split_denied(sentence, pieces)
    pieces = data_said.with_progress(sentence, pieces)
    doubts = (*foreign, *of_past, *of_offer, *of_program, *of_context, *denied, *runs_of_programs(sentence, pieces))
    return _Words(read, pieces, ranges, without, doubts, bool(of_program))


def _slots(sentence: Sentence, words: _Words, vocabulary: Vocabulary, today: date) -> tuple[list[Slot], list[Piece], list[Doubt]]:
    """What the pieces say, the pieces that say nothing, and what is asked back about either."""
    slots, left = _ruled(sentence, words, vocabulary)
    slots = split_roles(
        sentence, storage.settle(split_teacher(sentence, settle_sums(slots), [piece for piece in left if _doubts_model(piece)]))
    )
    left = without_named(sentence, left, slots)
    slots = [*data_said.settle(audio.settle(slots)), *availability(sentence, words.settled)]
    slots, of_things = _things(sentence, slots, words.settled, vocabulary)
    slots = batches.lengths(join_prompts(lengths.of_sequences(sentence, slots)))
    slots = _family_of_size(sentence, _counts_of_each(batches.in_tokens(slots)))
    model_known = any(slot.name == "model" for slot in slots) or any(_doubts_model(piece) for piece in left)
    slots, left = with_tokens_asked(sentence, slots, left, words.settled, model_known=model_known)
    slots, question = settle(with_ratio(slots, model_known=model_known), model_known=model_known)
    slots, of_nouns_unknown = images.without_unnamed(sentence, slots, left)
    slots = prices_of_one(of_machines(sentence, parts_of_fleet(sentence, of_types(without_papers(sentence, slots)))))
    slots = _started(with_arrivals(sentence, sums_against_rent(sentence, _sums_of_runs(slots))), words.settled)
    slots, of_ranges = both_ends(sentence, slots, words.ranges)
    slots = [_dated(slot, today) for slot in against_usual(with_ways(sentence, slots, words.ranges))]
    slots = ends_after_start(sentence, slots)
    of_pieces = piece_doubts(sentence, words.settled, left, slots, vocabulary)
    of_slots = _doubts_of_slots(sentence, slots, question, vocabulary)
    doubts = [*words.doubts, *of_ranges, *of_things, *of_nouns_unknown, *of_pieces, *of_slots]
    slots, of_days = _dated_status(sentence, slots, left, today, of_program=words.of_program)
    slots += [Slot("doubtful_model", piece.value, piece.first, piece.last) for piece in left if _doubts_model(piece)]
    slots += [*of_quotes(sentence, slots), *held_for(sentence, slots), *figure_slots(sentence, words.settled)]
    return with_grid_places(sentence, slots), left, [*doubts, *of_days]


def _ruled(sentence: Sentence, words: _Words, vocabulary: Vocabulary) -> tuple[list[Slot], list[Piece]]:
    """The slots that rules make of the pieces, with what their nouns and the names left out say of them; and the pieces without a rule."""
    slots, left = apply_rules([piece for piece in words.settled if piece.kind != FILLER])
    slots = [slot for slot in slots if not (slot.name == "count" and _is_asked(sentence.tokens, slot))]
    slots = while_had(sentence, of_nouns(sentence, _single_ones(sentence.tokens, _plain_reserved(several_terms(slots))), left))
    slots = with_places_of_a_list(sentence, with_numbered(_without_implied(slots), vocabulary), vocabulary)
    slots = single_machine(sentence, of_rests(sentence, slots), words.settled)
    slots = any_machine(sentence, slots, words.settled)
    slots = marketplaces.with_prices([*slots, *_other_providers(slots, words.without, vocabulary)], vocabulary)
    names = {slot.name for slot in slots}
    return slots, [piece for piece in left if not (piece.kind == "K" and piece.value in names)]


def _request(
    sentence: Sentence, words: _Words, left: Sequence[Piece], draft: Draft, asked: Kind, corrections: Sequence[Correction]
) -> Reading:
    """The request of a kind of question, with everything of the sentence that is not in it."""
    said = draft.slots
    kind, fits = fitting(sentence, said, asked)
    if kind == "price":
        said.all = tuple(_without_year(sentence, slot) for slot in terms_beside(said.all))
    elif kind in OF_RUNS:
        said.all = tuple(of_past(sentence, slot, draft.today) for slot in without_years_over(sentence, said.all, draft.today))
    found, of_markets = marketplaces.settle(said.all, kind)
    said.all, draft.notes = tuple(found), [*draft.notes, *of_markets]
    draft.doubts += group_doubts(sentence, said.all, kind)
    request = BUILDERS[kind](draft)
    draft.doubts += [*unused_doubts(sentence, said, kind), *misplaced_doubts(sentence, left, kind), *figures_of_runs(sentence, said, kind)]
    draft.doubts = changed_prices(sentence, kind, [*draft.doubts, *specification_doubts(sentence, words.settled, kind)])
    draft.doubts = words_of_status(kind, draft.doubts)
    of_now = [slot for slot in said.left() if isinstance(slot.value, date) and is_now(sentence.part(slot.first, slot.last), kind)]
    draft.notes += [ReadingNote("", str(slot.value), "prices are those of now") for slot in of_now]
    notes = [*_slips(corrections, draft.doubts), *draft.notes, *fits, *figure_notes(sentence, words.settled, said, kind)]
    draft.doubts += lost_doubts(sentence, words.read, said.all, request, draft.doubts, notes)
    doubts = [replace(doubt, blocking=False) for doubt in draft.doubts] if kind == "help" else draft.doubts
    return _reading(kind, request, said, doubts, notes)


def _doubts_of_slots(sentence: Sentence, slots: Sequence[Slot], question: str, vocabulary: Vocabulary) -> list[Doubt]:
    """What is asked about slots, and with the question what each number without a noun is."""
    bare = [slot for slot in slots if slot.name == "quantity"]
    return [
        *slot_doubts(sentence, slots),
        *network_doubts(sentence, slots),
        *apart_doubts(sentence, slots, vocabulary),
        *(Doubt(sentence.part(slot.first, slot.last), meanings(slots, slot, question), question) for slot in bare),
    ]


def _things(sentence: Sentence, slots: Sequence[Slot], pieces: Sequence[Piece], vocabulary: Vocabulary) -> tuple[list[Slot], list[Doubt]]:
    """The slots with images and cards as what requests have of them, and without prices of other things; and what is asked about these."""
    found, of_images = images.settle(sentence, slots)
    found, of_cards = cards.settle(sentence, found, vocabulary)
    found, of_rates = without_other_rates(sentence, found, pieces)
    found, of_spares = spares.settle(sentence, found)
    of_numbers = cards.number_or_memory(sentence, found, vocabulary)
    return found, [*of_images, *of_cards, *of_rates, *of_spares, *of_numbers]


def _read(sentence: Sentence, vocabulary: Vocabulary, today: date) -> list[Piece]:
    """The pieces of a sentence, where a program's name that is a size too is read as what more speaks for."""
    read = read_pieces(sentence.tokens, vocabulary, today)
    labels = named_as_models(sentence, read, vocabulary)
    return read_pieces(sentence.tokens, without_programs(vocabulary, labels), today) if labels else read


def _dated_status(
    sentence: Sentence, slots: Sequence[Slot], left: Sequence[Piece], today: date, *, of_program: bool
) -> tuple[list[Slot], list[Doubt]]:
    """The slots with the days of a status, which is of the past, and what to ask about them; `as of` anything else is its start."""
    if of_program or any(slot.name == "program" for slot in slots):
        unknown = {at for piece in left if piece.kind == UNKNOWN for at in range(piece.first, piece.last)}
        return past_days(sentence, slots, unknown, today)
    if any(slot.name == "intent" and slot.value == "status" for slot in slots):
        return list(slots), []
    return [replace(slot, name="start", value=slot.begins or slot.value) if slot.name == "as_of" else slot for slot in slots], []


def _slips(corrections: Iterable[Correction], doubts: Iterable[Doubt]) -> Iterator[ReadingNote]:
    """What is read for a slip, where it is read at all."""
    unread = {doubt.text for doubt in doubts}
    yield from (ReadingNote("", item.read, f"{item.written!r} is taken for a slip") for item in corrections if item.written not in unread)


def _plain_reserved(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the term of a bare `reserved`, where one is said, and without it where another of them has its own."""
    pricings = {str(slot.value) for slot in slots if slot.name == "pricing"}
    spans = [slot.value.years for slot in slots if slot.name == "span" and isinstance(slot.value, Duration)]
    term = TERMS.get(spans[0]) if len(spans) == 1 else None
    found = [slot for slot in slots if slot.value != "reserved" or not any(pricing.startswith("reserved_") for pricing in pricings)]
    if term is None or "reserved" not in pricings:
        return found
    return [replace(slot, value=term, note=RESERVED_FOR) if slot.name == "pricing" and slot.value == "reserved" else slot for slot in found]


def _counts_of_each(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with `512 of each` as the number of accelerators, where several are weighed; a sum for each where things are bought."""
    said = Slots(tuple(slots))
    several = len(set(said.values("accelerator"))) > 1 and "buy_or_rent" not in said.values("intent")
    named = "count" if several else "capex"
    return [
        replace(slot, name=named, note="" if several else "read as dollars")
        if slot.name == "count_of_each" and (several or _is_capex(slot.value))
        else slot
        for slot in slots
    ]


def _is_capex(value: object) -> bool:
    return isinstance(value, int) and value >= LEAST_CAPEX_USD


def _family_of_size(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots without the name of a family where a size that is not its model's is said in parameters: 125M parameter GPT."""
    sizes = [slot for slot in slots if slot.name == "params"]
    models = [slot for slot in slots if slot.name == "model"]
    if len(models) == 2 and _says_family(sentence, *models):
        return [slot for slot in slots if slot is not models[1]]
    if len(sizes) != 1 or len(models) != 1 or not isinstance(models[0].value, Name) or not isinstance(sizes[0].value, int | float):
        return list(slots)
    name, params, text = models[0].value, sizes[0].value, sentence.part(models[0].first, models[0].last)
    if any(character.isdigit() for character in text):
        return list(slots)
    if abs(name.params - params) <= SAME_SIZE * name.params:
        known = replace(models[0], note=f"{params:,} parameters are said, it has {name.params:,.0f}")
        return [known if slot is models[0] else slot for slot in slots if slot is not sizes[0]]
    sized = replace(sizes[0], note=f"a size of its own: {text} is a family, whose {name.value} has {name.params:,.0f}")
    return [sized if slot is sizes[0] else slot for slot in slots if slot is not models[0]]


def _says_family(sentence: Sentence, model: Slot, family: Slot) -> bool:
    """Whether the second of two models is the first one's family: 8x22b mixtral."""
    word, known = sentence.part(family.first, family.last).lower(), model.value
    return family.first == model.last and word.isalpha() and isinstance(known, Name) and known.value.startswith(word)


def _sums_of_runs(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a sum for all of it as the budget, where it is of a run and nothing is to be bought."""
    said = Slots(tuple(slots))
    bought = any(slot.name == "intent" and slot.value == "buy_or_rent" for slot in slots)
    if bought or not said.has(*MODEL) or not said.has(*DATA):
        return list(slots)
    return [replace(slot, name="budget_usd", note="read as the budget") if slot.name == "capex_of_all" else slot for slot in slots]


def _started(slots: Sequence[Slot], pieces: Sequence[Piece]) -> list[Slot]:
    """The slots with the one day as the start, where a word of starting stands anywhere before it: kick off 7B on 1 December."""
    words = [piece.first for piece in pieces if piece.kind == "a" and piece.value == "start"]
    days = [slot for slot in slots if slot.name == "date"]
    if len(days) != 1 or not words or words[0] > days[0].first or any(slot.name == "start" for slot in slots):
        return list(slots)
    if any(piece.kind == UNKNOWN and words[0] < piece.first < days[0].first for piece in pieces):  # launch of the product
        return list(slots)
    return [replace(slot, name="start", note=slot.note or "read as the start") if slot is days[0] else slot for slot in slots]


def _other_providers(slots: Sequence[Slot], without: Sequence[Slot], vocabulary: Vocabulary) -> list[Slot]:
    """What is left out: of kinds of pricing as it is, of providers all the others, where none are named."""
    excluded = [slot for slot in without if slot.name == "without_provider"]
    found = [slot for slot in without if slot.name == "without_pricing"]
    if markets := marketplaces.left_out(excluded, vocabulary):
        return [*found, *markets]
    named = {slot.value.value for slot in slots if slot.name == "provider" and isinstance(slot.value, Name)}
    if not excluded or named:
        return [*found, *(slot for slot in excluded if isinstance(slot.value, Name) and slot.value.value in named)]
    names = {slot.value.value for slot in excluded if isinstance(slot.value, Name)}
    note = f"all that have prices but {', '.join(sorted(names))}"
    others = [name for name in vocabulary.providers if name.value not in names]
    first, last = excluded[0].first, excluded[-1].last
    return [*found, *(Slot("provider", name, first, last, "" if at else note) for at, name in enumerate(others))]


def _without_implied(slots: Sequence[Slot]) -> list[Slot]:
    """The slots without what one instance type has, where a number is said besides: p5 on 128 GPUs; nor with its accelerator twice."""
    counted = any(slot.name == "count" and not slot.implied for slot in slots)
    held = {compact(slot.value.value) for slot in slots if _is_held(slot) and isinstance(slot.value, Name)}
    return [
        slot
        for slot in slots
        if not (slot.name == "count" and slot.implied and counted)
        and not (slot.name == "accelerator" and not _is_held(slot) and isinstance(slot.value, Name) and _is_one(slot.value, held))
    ]


def _is_held(slot: Slot) -> bool:
    """Whether an accelerator is that of an instance type."""
    return slot.name == "accelerator" and slot.note.startswith(HELD)


def _is_one(name: Name, held: set[str]) -> bool:
    return any(compact(name.value) in whole for whole in held)


def _is_asked(tokens: Sequence[Token], slot: Slot) -> bool:
    """Whether the number is what is asked for, and what is said is that of a machine: how many p5.48xlarge, how many nodes of 8 H100."""
    before = [token.text for token in tokens[: slot.first] if token.text not in ("of", "with", "x")]
    return before[-1:] == ["many"] or (before[-2:-1] == ["many"] and before[-1] in MACHINES)


def _single_ones(tokens: Sequence[Token], slots: list[Slot]) -> list[Slot]:
    """The slots with a count of one for `an H100`, where no number is said."""
    if any(slot.name in ("count", NODES, RACKS) for slot in slots):
        return slots
    ones = [slot for slot in slots if slot.name == "accelerator" and slot.first > 0 and tokens[slot.first - 1].text in ("a", "an")]
    single = [slot for slot in ones if tokens[slot.last - 1].text != "s"]
    return [*slots, *(Slot("count", 1, slot.first, slot.last, "a single one", implied=True) for slot in single)]


def _dated(slot: Slot, today: date) -> Slot:
    """The slot with a day in place of a time from today on."""
    if slot.name in ("start", "deadline", EXPIRES) and isinstance(slot.value, Duration):
        return replace(slot, value=slot.value.after(today))
    day = slot.value if slot.name == "start" and slot.repeats == "year" and not slot.others else None
    if isinstance(day, date) and day < today <= day + MOST_OF_PERIOD:
        return replace(slot, value=today, note="from today: it has begun")
    return slot


def _without_year(sentence: Sentence, slot: Slot) -> Slot:
    """A number behind an accelerator as a year, where it may be one and prices are asked for: h100 price 2027."""
    is_year = slot.name == "count" and isinstance(slot.value, int) and LEAST_YEAR <= slot.value < MOST_YEAR
    return replace(slot, name="year") if is_year and sentence.part(slot.first, slot.last).endswith(str(slot.value)) else slot


def _reading(kind: Kind, request: dict[str, object], said: Slots, doubts: Iterable[Doubt], notes: Sequence[ReadingNote]) -> Reading:
    program = said.peek("program")
    name = program.value if isinstance(program, Name) else ""
    endpoint = ENDPOINTS["status"] if kind == "chance" and name else ENDPOINTS[kind]
    unclear = dict.fromkeys(UnclearText(doubt.text, doubt.candidates, doubt.question, doubt.blocking) for doubt in doubts)
    return Reading(Understanding(kind, endpoint, request, echo(kind, request, name)), tuple(unclear), tuple(notes))


def _doubts_model(piece: Piece) -> bool:
    return isinstance(piece.value, Doubtful) and piece.value.what == "model"


def _without_versions(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with the version of a machine (ND H100 v5) as no accelerator of its own: it is a TPU's name too."""
    found: list[Piece] = []
    for before, piece in zip([None, *pieces], pieces, strict=False):
        text = sentence.words(piece)
        follows = before is not None and before.kind == "A" and "tpu" not in sentence.words(before)
        versioned = piece.kind == "A" and follows and len(text) == len("v5") and text[0] == "v"
        found.append(replace(piece, kind=UNKNOWN, value="") if versioned else piece)
    return found


def _without_vendors(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces without a vendor's name before its accelerator."""
    following = [piece.kind for piece in pieces[1:]] + [""]
    return [piece for piece, after in zip(pieces, following, strict=True) if piece.kind != "k" or after != "A"]
