"""Hours of audio as data: of a speech model they are so many positions of its encoder, of others how many tokens is asked back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

AUDIO = "hours of audio"
SPEECH_MODEL = "whisper"
WINDOW_SECONDS, SECONDS_PER_HOUR = 30, 3600
"""A sample of this model is 30 s long (Radford et al. 2022, section 2.2), and `seq_len` positions of its encoder [s]."""
NOUNS = frozenset({"audio", "speech", "recordings", "recording", "podcasts", "podcast", "voice", "music"})
MOST_WORDS = 4
"""So many words may describe the audio: hours of call center audio."""
LEAST_HOURS = 20
"""Fewer hours beside a speech model may be a time of its run [h]."""
OF_TIMES = frozenset("bwuiltqavS§ΦKI")
"""Words before hours, or right after them, that make them a time of the run."""
DATA = frozenset("TsΩe")


def with_audio(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with hours of audio as a number of them: 12k hours of call center audio; of a speech model `500 hours` alone too."""
    found: list[Piece] = []
    nouns: set[int] = set()
    for at, piece in enumerate(pieces):
        noun = _noun_after(sentence, pieces, at) if _is_hours(piece) else 0
        if isinstance(piece.value, Duration) and (noun or _is_data_alone(pieces, at)):
            nouns |= {noun} if noun else set()
            number = Piece("n", Figure(piece.value.value), piece.first, piece.last - 1)
            found += [number, Piece("W", AUDIO, piece.last - 1, piece.last)]
        else:
            found.append(replace(piece, kind=FILLER, value="") if at in nouns else piece)
    return found, []


def _is_hours(piece: Piece) -> bool:
    return piece.kind == "U" and isinstance(piece.value, Duration) and piece.value.unit == "hours" and piece.last - piece.first > 1


def _noun_after(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """Where the noun of audio stands that a few words lead to; 0 where there is none."""
    for here in range(at + 1, min(at + 2 + MOST_WORDS, len(pieces))):
        piece = pieces[here]
        text = sentence.words(piece)
        if text in NOUNS:
            return here
        if piece.kind not in (FILLER, UNKNOWN, "J", "κ") or text in (".", "?", "!", "on", "with"):
            return 0
    return 0


def _is_data_alone(pieces: Sequence[Piece], at: int) -> bool:
    """Whether hours beside a speech model, without other data, are those of its audio, and no time of the run."""
    duration = pieces[at].value if _is_hours(pieces[at]) else None
    models = [piece.value.name.value for piece in pieces if piece.kind == "M" and isinstance(piece.value, Chosen)]
    if not isinstance(duration, Duration) or duration.value < LEAST_HOURS or not any(SPEECH_MODEL in model for model in models):
        return False
    before = [piece.kind for piece in pieces[:at] if piece.kind != FILLER][-1:]
    timed = bool(OF_TIMES.intersection(before)) or sum(_is_hours(piece) for piece in pieces) > 1
    return not timed and not any(piece.kind in DATA for piece in pieces if piece.kind != "e")


def settle(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with hours of audio as tokens where the model is one of speech; else how many tokens they are is asked back."""
    models = [slot.value for slot in slots if slot.name == "model" and isinstance(slot.value, Name)]
    model = next((model for model in models if SPEECH_MODEL in model.value and model.seq_len), None)
    return [_as_tokens(slot, model) if slot.name == AUDIO else slot for slot in slots]


def _as_tokens(slot: Slot, model: Name | None) -> Slot:
    if model is None:
        return replace(slot, name="other_unit", value=AUDIO)
    hours = Fraction(str(slot.value))
    tokens = plain(hours * SECONDS_PER_HOUR / WINDOW_SECONDS * model.seq_len)
    note = f"{plain(hours):,} hours of audio, {model.seq_len:,} positions of the encoder for each {WINDOW_SECONDS} s"
    return replace(slot, name="tokens", value=tokens, note=note)
