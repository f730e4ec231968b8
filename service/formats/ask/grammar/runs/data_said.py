"""Data that are said by a name, or as a part of what is done already: ImageNet-1k, 40% done of 100B tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.quantities import tokens
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.datasets import load_datasets
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

DATASET, SHARE_DONE = "dataset", "share_done"
STATED = frozenset({"tokens", "samples", "tokens_per_parameter", "steps", "prompts", "other_unit", "training.rl.prompts_per_step"})
SIZES = frozenset({"model", "doubtful_model", "params", "quantity"})
"""A model and a bare figure, or two of them: the figure is its tokens."""
LANGUAGES = frozenset(
    (
        *("arabic", "bengali", "chinese", "czech", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hebrew", "hindi"),
        *("hungarian", "indonesian", "italian", "japanese", "korean", "mandarin", "norwegian", "persian", "polish", "portuguese"),
        *("romanian", "russian", "spanish", "swahili", "swedish", "thai", "turkish", "ukrainian", "urdu", "vietnamese", "multilingual"),
    )
)
LISTED = 6
"""Words after a language in which others and the noun may stand: Korean and English text."""
DATA_WORDS = frozenset({"tokens", "text", "data", "corpus", "web", "speech", "audio", "documents", "books", "news", "dataset", "language"})
REPEATED = frozenset({"repeated", "repeat", "repeating", "seen", "looped", "epoched"})
BEFORE_TIMES, AFTER_TIMES = 2, 3
"""Words around a number of times in which it is said of what: repeated 4 times, 4 times over the data."""
DONE = frozenset({"done", "finished", "completed", "complete", "trained", "through"})
LEFT = frozenset({"left", "remaining", "to go", "still to go"})


def of_dataset(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """ImageNet-1k: what it holds."""
    yield Slot(DATASET, str(pieces[0].value), pieces[0].first, pieces[-1].last)


def part_of_dataset(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """10B FineWeb tokens: so many of them."""
    if load_datasets()[str(pieces[1].value)].unit == "tokens":
        yield from tokens([pieces[0], replace(pieces[-1], first=pieces[0].last)])


def with_progress(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with what is done, or left, as an attribute of the percentage beside it: done 40%, 60% left."""
    return [_progress(sentence, pieces, at) for at in range(len(pieces))]


def _progress(sentence: Sentence, pieces: Sequence[Piece], at: int) -> Piece:
    piece, text = pieces[at], sentence.words(pieces[at])
    if piece.kind not in (FILLER, "c") or text not in DONE | LEFT:
        return piece
    beside = [*pieces[max(0, at - 1) : at], *pieces[at + 1 : at + 2]]
    return (
        replace(piece, kind="K", value=SHARE_DONE if text in DONE else "share_left") if any(near.kind == "p" for near in beside) else piece
    )


def with_repetitions(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with how often data are seen as epochs: repeated 4 times, seen 4x, 4 times over the data."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        times = pieces[at + 1 : at + 2]
        if piece.kind != "n" or not times or times[0].kind != "x":
            continue
        before = list(sentence.texts[max(0, piece.first - BEFORE_TIMES) : piece.first])
        after = list(sentence.texts[times[0].last : times[0].last + AFTER_TIMES])
        if REPEATED.intersection(before) or (after[:1] == ["over"] and "data" in after):
            found[at + 1] = replace(times[0], kind="e", value="epochs")
    repeated = {at for at, piece in enumerate(found) if piece.kind == UNKNOWN and sentence.words(piece) in REPEATED}
    followed = {at for at in repeated if any(piece.kind == "e" for piece in found[at : at + BEFORE_TIMES + 2])}
    return [replace(piece, kind=FILLER) if at in followed else piece for at, piece in enumerate(found)], []


def with_languages(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the language of data, which may be a country's adjective too: 120B tokens of German web text."""
    found: list[Piece] = []
    doubts: list[Doubt] = []
    for at, piece in enumerate(pieces):
        text = sentence.part(piece.first, piece.last)
        if piece.kind in ("J", "κ", UNKNOWN) and text.lower() in LANGUAGES and _is_of_data(sentence, pieces, at):
            doubts.append(Doubt(text, (), "a language of the data, which changes no figure", blocking=False))
        else:
            found.append(piece)
    return found, doubts


def _is_of_data(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a word stands before what data are called, or right behind a number of them and before no other word."""
    texts = list(sentence.texts)
    after = texts[pieces[at].last :]
    after = [text for text in after[:LISTED] if text not in (*LANGUAGES, "and", "+", ",", "plus")][:2] or after[:1]
    before = [piece.kind for piece in pieces[:at] if piece.kind != FILLER][-1:]
    ends = not after or not after[0].isalpha()
    return bool(DATA_WORDS.intersection(after)) or (ends and before in (["T"], ["s"], ["W"]))


def settle(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a data set as what it holds, where no number is stated, and with the tokens that are still to be trained on."""
    sizes = sum(slot.name in SIZES for slot in slots)
    stated = any(slot.name in STATED for slot in slots) or (sizes > 1 and any(slot.name == "quantity" for slot in slots))
    found = [_held(slot) if slot.name == DATASET else slot for slot in slots if not (slot.name == DATASET and stated)]
    counted = [slot for slot in found if slot.name == "tokens" and isinstance(slot.value, int)]
    shares = [slot for slot in found if slot.name in (SHARE_DONE, "share_left") and isinstance(slot.value, float)]
    if len(counted) != 1 or len(shares) != 1:
        return found
    share = float(str(shares[0].value))
    left = round((share if shares[0].name == "share_left" else 1 - share) * int(str(counted[0].value)))
    done = f"{share:.0%} {'are left' if shares[0].name == 'share_left' else 'are done'}: "
    note = f"{done}{left / int(str(counted[0].value)):.0%} of {counted[0].value:,} tokens"
    return [replace(slot, value=left, note=note) if slot is counted[0] else slot for slot in found if slot is not shares[0]]


def _held(slot: Slot) -> Slot:
    dataset = load_datasets()[str(slot.value)]
    return replace(
        slot, name=dataset.unit, value=dataset.size, note=f"{dataset.name} has {dataset.size:,} {dataset.unit}: {dataset.source}"
    )
