"""Words of RL for how many answers are sampled, and how long they are: groups of 16, n=8, 4k max tokens, 2048 rollouts per step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.clauses import is_reinforcement
from service.formats.ask.grammar.quantities import ANSWERS, figures
from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
PER_STEP, PER_PROMPT, EACH = "training.rl.prompts_per_step", "training.rl.responses_per_prompt", "answers_to_each"
PROMPT_TOKENS = "training.rl.prompt_tokens"
ANSWERS_OF_STEP, PROMPTS_OR_LENGTH = "answers_of_step", "prompts_or_length"
GROUPS, LETTERS = frozenset({"group", "groups", "grouped"}), frozenset({"n", "k", "g"})
"""What the answers to one prompt are called: a group of 16, k=4."""
OF_RL = "training.rl."
MOST_TOKENS = "max tokens"
LEAST_LENGTH, MOST_LENGTH, MOST_GROUP = 64, 2**20, 1024
MOST_AHEAD = 3
LONG, SINGULAR, PER = "long", frozenset({"response", "answer", "completion"}), frozenset({"per", "/", "each", "a"})


def with_groups(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of RL with groups as the answers to each prompt, and the most tokens as the length of an answer."""
    if not is_reinforcement(pieces):
        return list(pieces), []
    told = _with_lengths(sentence, pieces)
    return _apart_from_machines([_said_of_rl(sentence, told, at) for at in range(len(told))]), []


def _with_lengths(sentence: Sentence, pieces: Pieces) -> list[Piece]:
    """The pieces with how long an answer is as its tokens: 2k long, 4k response, 16 rollouts each of 4k."""
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        word, (before, after) = sentence.words(piece), (pieces[at - 1] if at else piece, pieces[at + 1 : at + 2])
        of_each = [other.kind for other in pieces[max(at - 2, 0) : at]] in (["E", FILLER], ["E", "o"]) and sentence.words(before) == "of"
        if word == LONG and before.kind == "T":
            continue
        if (word == LONG and _is_length(before)) or (
            piece.kind == "s" and word in SINGULAR and _is_alone(sentence, piece) and _is_length(before)
        ):
            found.append(replace(piece, kind="K", value="response_tokens"))
        elif of_each and _is_length(piece) and not any(other.kind in "TsAgN" for other in after):
            found += [piece, Piece("K", "response_tokens", piece.last, piece.last)]
        elif piece.kind == "s" and _is_answer_of(sentence, pieces, at):
            found.append(replace(piece, kind=FILLER, value=""))
        else:
            found.append(piece)
    return found


def _is_alone(sentence: Sentence, piece: Piece) -> bool:
    """Whether no word of a rate is behind a piece: 4k response, but no 4k response per step."""
    return not PER.intersection(token.text for token in sentence.tokens[piece.last : piece.last + 1])


def _is_answer_of(sentence: Sentence, pieces: Pieces, at: int) -> bool:
    """Whether a word of answers names what is long: responses 3k long, 8k long answers."""
    counted = at > 0 and pieces[at - 1].kind == "n"
    behind = [sentence.words(piece) for piece in pieces[max(at - 1, 0) : at]]
    ahead = [sentence.words(piece) for piece in pieces[at + 2 : at + 3]]
    return (behind == [LONG] or ahead == [LONG]) and not counted


def _apart_from_machines(pieces: Pieces) -> list[Piece]:
    """The pieces with a comma between a setting that has its number before it and a number of machines: 128 prompts per step on 16 H100."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    kinds = "".join(piece.kind for piece in said)
    settings = [said[found.start() + 1] for found in re.finditer("nKn(?=x?[AgN])", kinds)]
    found: list[Piece] = []
    for piece in pieces:
        found.append(piece)
        if piece in settings and (str(piece.value).startswith(OF_RL) or piece.value == "response_tokens"):
            found.append(Piece(",", "list", piece.last, piece.last))
    return found


def _said_of_rl(sentence: Sentence, pieces: Pieces, at: int) -> Piece:
    piece, text = pieces[at], sentence.words(pieces[at]).replace("-", " ")
    if text == MOST_TOKENS and any(_is_length(near) for near in (*pieces[max(0, at - 1) : at], *pieces[at + 1 : at + 3])):
        return replace(piece, kind="K", value="response_tokens")
    ahead = [other for other in pieces[at + 1 : at + 1 + MOST_AHEAD] if other.kind != FILLER]
    number = ahead[1:2] if ahead and ahead[0].kind == "=" else ahead[:1]
    named = text in GROUPS or (text in LETTERS and bool(ahead) and ahead[0].kind == "=")
    if not named or not number or not _is_group(number[0]):
        return piece
    counted = pieces[pieces.index(number[0]) + 1 :][:1]
    says_more = bool(counted) and counted[0].kind == "s"  # n=8 samples per prompt
    return replace(piece, kind=FILLER, value="") if says_more else replace(piece, kind="K", value=PER_PROMPT)


def _is_length(piece: Piece) -> bool:
    return isinstance(piece.value, Figure) and not piece.value.unit and piece.value.value >= LEAST_LENGTH


def _is_group(piece: Piece) -> bool:
    return isinstance(piece.value, Figure) and not piece.value.unit and piece.value.scale == 1 and piece.value.value <= MOST_GROUP


def lengths_of_both(pieces: Pieces) -> Iterator[Slot]:
    """Prompts 1k and responses 7k: the length of an answer, and that of a prompt or how many there are."""
    prompt, answer = figures(pieces)
    plain_ones = all(figure.scale <= 1000 and figure.value.denominator == 1 and not figure.unit for figure in (prompt, answer))
    noun = next(at for at, piece in enumerate(pieces) if piece.kind == "s")
    if pieces[0].value == "prompts" and pieces[noun].value == ANSWERS and plain_ones and LEAST_LENGTH <= answer.value <= MOST_LENGTH:
        yield Slot(PROMPTS_OR_LENGTH, plain(prompt.value), pieces[0].first, pieces[noun - 1].last)
        yield Slot("response_tokens", plain(answer.value), pieces[noun].first, pieces[-1].last, "read as the tokens of an answer")


def prompts_of_step(pieces: Pieces) -> Iterator[Slot]:
    """128 prompts per step x 8: the prompts of a step, and so many answers to each."""
    prompts, each = figures(pieces)
    if pieces[1].value == PER_STEP and _is_group(pieces[-1]):
        yield Slot(PER_STEP, plain(prompts.value), pieces[0].first, pieces[1].last)
        yield Slot(EACH, plain(each.value), pieces[2].first, pieces[-1].last)


def of_prompts(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a number behind `prompts` as the length of one where their number is said besides, else as that number."""
    counted = any(slot.name in (PER_STEP, "prompts") for slot in slots)
    name = PROMPT_TOKENS if counted else "prompts"
    return [replace(slot, name=name) if slot.name == PROMPTS_OR_LENGTH else slot for slot in slots]


def answers_of_step(pieces: Pieces) -> Iterator[Slot]:
    """2048 rollouts per step, 1024 resp/step: all the answers of one."""
    step = pieces[-1]
    if len(pieces) > len("nsW") and pieces[2].value != "slash":
        return
    if pieces[1].value in (ANSWERS, "samples") and step.value == "steps" and step.first > pieces[1].last:
        yield Slot(ANSWERS_OF_STEP, plain(figures(pieces)[0].value), pieces[0].first, pieces[-1].last)


def of_steps(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with all the answers of a step as its prompts, or as the answers to each, whichever is not said."""
    whole, prompts = ([slot for slot in slots if slot.name == name] for name in (ANSWERS_OF_STEP, PER_STEP))
    each = [slot for slot in slots if slot.name in (EACH, PER_PROMPT)]
    said = [slot.value for slot in (*whole, *prompts, *each) if isinstance(slot.value, int)]
    if len(whole) == 1 and not prompts and not each:
        return _of_all_steps(slots, whole[0])
    if len(whole) != 1 or len(prompts) + len(each) > 2 or len(said) != 1 + len(prompts) + len(each):
        return list(slots)
    if len(prompts) == len(each) == 1 and said[0] == said[1] * said[2]:
        note = f"{said[1]:,} of {said[2]:,} answers each are {said[0]:,} in a step"
        return [replace(slot, note=note) if slot is prompts[0] else slot for slot in slots if slot is not whole[0]]
    if len(said) != 2 or said[0] % said[1]:
        return list(slots)
    name = PER_PROMPT if prompts else PER_STEP
    note = f"{said[0]:,} answers of a step, {said[1]:,} {'prompts' if prompts else 'to each prompt'}"
    return [replace(slot, name=name, value=said[0] // said[1], note=note) if slot is whole[0] else slot for slot in slots]


def _of_all_steps(slots: Sequence[Slot], whole: Slot) -> list[Slot]:
    """The slots with all the answers of a step times the steps as the samples: 1024 responses per step, 500 steps."""
    steps = [slot for slot in slots if slot.name == "steps" and isinstance(slot.value, int)]
    stated = any(slot.name in ("samples", "tokens", "prompts") for slot in slots)
    if len(steps) != 1 or stated or not isinstance(whole.value, int):
        return list(slots)
    number = int(str(steps[0].value))
    note = f"{number:,} steps of {whole.value:,} answers"
    return [
        replace(slot, name="samples", value=number * whole.value, note=note) if slot is steps[0] else slot
        for slot in slots
        if slot is not whole
    ]
