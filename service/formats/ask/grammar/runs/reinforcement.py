"""Data of reinforcement learning: prompts, how many answers are sampled to each, and their length."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.attributes import BATCH_SEQUENCES, attributes
from service.formats.ask.grammar.clauses import is_reinforcement
from service.formats.ask.grammar.quantities import ANSWERS, TO_EACH
from service.formats.ask.grammar.runs.rollouts import (
    ANSWERS_OF_STEP,
    EACH,
    PER_PROMPT,
    PER_STEP,
    PROMPT_TOKENS,
    PROMPTS_OR_LENGTH,
    of_prompts,
    of_steps,
)
from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
MOST_RESPONSE_TOKENS = 2**20
"""No answer is longer [tokens]."""
LEAST_LENGTH = 200
"""Fewer answers to a prompt are sampled than this [tokens]."""
PROMPTS, SAMPLE_TOKENS = "prompts", "sample_tokens"
OF_ANSWERS = frozenset({PROMPTS, SAMPLE_TOKENS, PER_STEP, PER_PROMPT, EACH, ANSWERS_OF_STEP, PROMPTS_OR_LENGTH})
DIRECTIONS = {"in": PROMPT_TOKENS, "out": "response_tokens"}
MOST_PROMPTS_PER_STEP = 4096
"""More are all the prompts of a run."""
OF_EACH = re.compile(r"([\d,]+) of ([\d,]+) tokens each")
"""What is noted of the tokens of so many samples (`quantities.samples_of`)."""
OF_A_RUN = (PER_STEP, PER_PROMPT, "steps")
"""What all the answers of a run follow from."""


def _figures(pieces: Pieces) -> list[Figure]:
    return [piece.value for piece in pieces if isinstance(piece.value, Figure)]


def response_length(pieces: Pieces) -> Iterator[Slot]:
    """4k token responses, answers of 2k tokens: the length of an answer; each pair 1,500 tokens: that of a sample."""
    figure = _figures(pieces)[-1]
    if figure.scale <= 1000 and figure.value.denominator == 1 and figure.value <= MOST_RESPONSE_TOKENS and len(_figures(pieces)) == 1:
        of_answer = any(piece.kind == "s" and piece.value == ANSWERS for piece in pieces)
        yield Slot("response_tokens" if of_answer else SAMPLE_TOKENS, plain(figure.value), pieces[0].first, pieces[-1].last)


def limited_length(pieces: Pieces) -> Iterator[Slot]:
    """Up to 8k response tokens, prompt length at most 512: so many."""
    noun = next(piece for piece in pieces if piece.kind == "K")
    if noun.value in ("response_tokens", PROMPT_TOKENS):
        made = attributes([piece for piece in pieces if piece.kind in "nK"])
        yield from (replace(slot, first=pieces[0].first, last=pieces[-1].last) for slot in made)


def bare_length(pieces: Pieces) -> Iterator[Slot]:
    """4k max response, answers ~1k: the length of an answer, where the figure is too large for a number of them."""
    figure = _figures(pieces)[0]
    of_answer = any(piece.kind == "s" and piece.value == ANSWERS for piece in pieces)
    if of_answer and not figure.unit and figure.scale <= 1000 and LEAST_LENGTH <= figure.value <= MOST_RESPONSE_TOKENS:
        yield Slot("response_tokens", plain(figure.value), pieces[0].first, pieces[-1].last, "read as the tokens of an answer")


def prompt_length(pieces: Pieces) -> Iterator[Slot]:
    """Prompts of 400 tokens, a prompt of 400 tokens, 40k prompts of 400 tokens each."""
    *number, length = _figures(pieces)
    noun = next(piece for piece in pieces if piece.kind == "W")
    if noun.value != PROMPTS or length.value.denominator != 1 or length.value > MOST_RESPONSE_TOKENS:
        return
    if number:
        yield Slot(PROMPTS, plain(number[0].value), pieces[0].first, noun.last)
    first = noun.last if number else pieces[0].first
    yield Slot(PROMPT_TOKENS, plain(length.value), first, pieces[-1].last)


def batch_of_prompts(pieces: Pieces) -> Iterator[Slot]:
    """Batch of 256 prompts: those of a step."""
    batch = any(piece.kind == "K" and piece.value == "batch" for piece in pieces)
    if batch and any(piece.value == PROMPTS for piece in pieces):
        yield Slot(PER_STEP, plain(_figures(pieces)[0].value), pieces[0].first, pieces[-1].last)


def prompts_times(pieces: Pieces) -> Iterator[Slot]:
    """20k prompts x 8: so many answers to each."""
    prompts, each = _figures(pieces)
    if pieces[1].value == PROMPTS and each.scale == 1:
        yield Slot(PROMPTS, plain(prompts.value), pieces[0].first, pieces[1].last)
        yield Slot(EACH, plain(each.value), pieces[2].first, pieces[-1].last)


def prompts_and_answers(pieces: Pieces) -> Iterator[Slot]:
    """20k prompts x 8 rollouts of 4k tokens: the prompts, the answers to each, and the length of one."""
    prompts, each, length = _figures(pieces)
    noun, answer = (next(at for at, piece in enumerate(pieces) if piece.kind == kind) for kind in "Ws")
    few = each.scale == 1 and each.value < LEAST_LENGTH and length.value.denominator == 1 and length.value <= MOST_RESPONSE_TOKENS
    if pieces[noun].value == PROMPTS and few:
        yield Slot(PROMPTS, plain(prompts.value), pieces[0].first, pieces[noun].last)
        yield Slot(EACH, plain(each.value), pieces[noun].last, pieces[answer].last)
        yield Slot("response_tokens", plain(length.value), pieces[answer].last, pieces[-1].last)


def answers_to_each(pieces: Pieces) -> Iterator[Slot]:
    """16 samples each: to each of the prompts that are said elsewhere."""
    yield Slot(EACH, plain(_figures(pieces)[0].value), pieces[0].first, pieces[-1].last)


def join_prompts(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with prompts and the answers to each as all the answers; answers to each without prompts are samples."""
    if not any(slot.name in OF_ANSWERS or (slot.name == "method" and slot.value == "rl") for slot in slots):
        return list(slots)
    found = _of_steps(_with_lengths(_of_few(of_prompts(slots))))
    prompts = [slot for slot in found if slot.name == PROMPTS]
    each = [slot for slot in found if slot.name == EACH or (prompts and slot.name == PER_PROMPT)]
    of_rl = any(slot.name == "method" and slot.value == "rl" for slot in found)
    found = [slot for slot in found if slot not in (*prompts, *each)]
    counted = bool(prompts) or any(_is_counted(slot) for slot in found)
    found = [_as_length(slot) if of_rl and counted and _is_length(slot) else slot for slot in found]
    plain_samples = [slot for slot in found if slot.name == "samples"]
    if of_rl and not each and len(plain_samples) == 1 and len(prompts) == 1 and isinstance(plain_samples[0].value, int):
        each, found = plain_samples, [slot for slot in found if slot not in plain_samples]
    if len(prompts) == len(each) == 1 and isinstance(prompts[0].value, int) and isinstance(each[0].value, int):
        note = f"{prompts[0].value:,} prompts, {each[0].value:,} {TO_EACH}"
        return [*found, replace(prompts[0], name="samples", value=prompts[0].value * each[0].value, note=note)]
    found += [replace(slot, name="other_unit", value=PROMPTS) for slot in prompts]
    return [*found, *(replace(slot, name="samples") for slot in each)]


def _of_few(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the tokens of few answers as how many there are to each prompt and their length: 8 rollouts of 2k tokens."""
    prompted = any(slot.name in (PER_STEP, PROMPTS) for slot in slots) and not any(slot.name in (EACH, PER_PROMPT) for slot in slots)
    found: list[Slot] = []
    for slot in slots:
        product = OF_EACH.fullmatch(slot.note) if slot.name == "tokens" and prompted else None
        number, length = (int(text.replace(",", "")) for text in product.groups()) if product else (LEAST_LENGTH, 0)
        few = [replace(slot, name=EACH, value=number, note=""), replace(slot, name="response_tokens", value=length, note="")]
        found += few if number < LEAST_LENGTH else [slot]
    return found


def _is_counted(slot: Slot) -> bool:
    return slot.name in (PER_STEP, PER_PROMPT) or (slot.name == "samples" and slot.note.endswith(TO_EACH))


def _with_lengths(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the length of a sample times their number as the tokens; in RL it is that of an answer."""
    lengths = [slot for slot in slots if slot.name == SAMPLE_TOKENS]
    samples = [slot for slot in slots if slot.name == "samples"]
    of_rl = any(slot.name == PER_STEP or (slot.name == "method" and slot.value == "rl") for slot in slots)
    if len(lengths) == len(samples) == 1 and not of_rl and isinstance(samples[0].value, int) and isinstance(lengths[0].value, int):
        note = f"{samples[0].value:,} of {lengths[0].value:,} tokens each"
        product = replace(samples[0], name="tokens", value=samples[0].value * lengths[0].value, note=note)
        return [product if slot is samples[0] else slot for slot in slots if slot is not lengths[0]]
    return [replace(slot, name="response_tokens") if slot.name == SAMPLE_TOKENS else slot for slot in slots]


def _of_steps(slots: Sequence[Slot]) -> list[Slot]:
    """The slots of a step of RL, with all its answers as samples where its prompts, the answers to each and the steps are said."""
    slots = of_steps(_few_answers(_batch_of_answers(_prompts_of_steps(slots))))
    per_step = [slot for slot in slots if slot.name == PER_STEP]
    if not per_step:
        return list(slots)
    found = [replace(slot, name=PER_PROMPT) if slot.name == EACH else slot for slot in slots]
    if not any(slot.name == "method" for slot in found):
        found.append(replace(per_step[0], name="method", value="rl", note="prompts of a step are those of RL"))
    each, steps = ([slot for slot in found if slot.name == name] for name in (PER_PROMPT, "steps"))
    numbers = [slot.value for slot in (*per_step, *each, *steps) if isinstance(slot.value, int)]
    if not len(per_step) == len(each) == len(steps) == 1 or len(numbers) < len(OF_A_RUN):
        return found
    note = f"{numbers[2]:,} steps of {numbers[0]:,} prompts, {numbers[1]:,} {TO_EACH}"
    found = [_as_length(replace(slot, name="tokens")) if _is_short_sample(slot) else slot for slot in found]
    return [replace(slot, name="samples", value=math.prod(numbers), note=note) if slot is steps[0] else slot for slot in found]


def _batch_of_answers(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with few samples of a step beside prompts as the answers to each of its prompts: 256 prompts x 8 samples per step."""
    prompts, batches = ([slot for slot in slots if slot.name == name] for name in (PROMPTS, BATCH_SEQUENCES))
    few = [slot for slot in batches if isinstance(slot.value, int) and slot.value < LEAST_LENGTH]
    if not len(prompts) == len(batches) == len(few) == 1 or not isinstance(prompts[0].value, int):
        return list(slots)
    note = "read as those of a step, and the samples as those of each prompt"
    named = {id(prompts[0]): replace(prompts[0], name=PER_STEP, note=note), id(few[0]): replace(few[0], name=EACH)}
    return [named.get(id(slot), slot) for slot in slots]


def _few_answers(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with few samples beside the prompts of a step as the answers to each: 256 prompts per step, 16 rollouts."""
    said = {slot.name for slot in slots}
    samples = [slot for slot in slots if slot.name == "samples" and isinstance(slot.value, int)]
    few = [slot for slot in samples if int(str(slot.value)) < LEAST_LENGTH]
    if PER_STEP not in said or said & {EACH, PER_PROMPT} or len(few) != 1:
        return list(slots)
    return [replace(slot, name=EACH) if slot is few[0] else slot for slot in slots]


def _prompts_of_steps(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with few prompts beside the steps of RL as those of a step: 64 prompts x 16 responses, 500 steps."""
    of_rl = any(slot.name == "method" and slot.value == "rl" for slot in slots)
    said = {slot.name for slot in slots}
    if not (of_rl and "steps" in said and said & {EACH, PER_PROMPT, ANSWERS_OF_STEP}):
        return list(slots)
    few = [slot for slot in slots if slot.name == PROMPTS and isinstance(slot.value, int) and slot.value <= MOST_PROMPTS_PER_STEP]
    return [replace(slot, name=PER_STEP, note="read as those of a step") if slot in few else slot for slot in slots]


def with_directions(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """1k in, 4k out: the lengths of a prompt and of an answer, in a question of RL."""
    if not is_reinforcement(pieces):
        return list(pieces), []
    found = list(pieces)
    for at, (before, piece) in enumerate(pairwise(pieces), 1):
        name = DIRECTIONS.get(sentence.words(piece))
        if name and isinstance(before.value, Figure) and not before.value.unit and before.value.value <= MOST_RESPONSE_TOKENS:
            found[at] = replace(piece, kind="K", value=name)
    return found, []


def _is_short_sample(slot: Slot) -> bool:
    """Whether answers beside all of them are the tokens of one: 2k resp."""
    return slot.name == "samples" and isinstance(slot.value, int) and slot.value <= MOST_RESPONSE_TOKENS


def _is_length(slot: Slot) -> bool:
    """Whether tokens beside all the answers are those of one: 8 samples per prompt, 3k tokens each."""
    return slot.name == "tokens" and isinstance(slot.value, int) and slot.value <= MOST_RESPONSE_TOKENS


def _as_length(slot: Slot) -> Slot:
    return replace(slot, name="response_tokens", note="beside the number of answers: the length of one")
