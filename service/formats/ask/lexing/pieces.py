"""From tokens to typed pieces: at each token the longest of a name, a date, a duration, a figure and a phrase of the lexicon."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from service.formats.ask.lexing.clock import read_clock
from service.formats.ask.lexing.durations import read_duration
from service.formats.ask.lexing.names import Chosen, read_name
from service.formats.ask.lexing.numbers import Figure, read_figure
from service.formats.ask.lexing.spans import read_span
from service.formats.ask.lexing.spelling import correct_spelling, family_like
from service.formats.ask.lexing.tokens import Piece, Token
from service.formats.ask.lexing.vocabulary import Vocabulary, load_lexicon

FIGURE_KINDS = {"": "n", "usd": "m", "percent": "p", "foreign": "€"}
POWER_LIMIT = "hardware.power_limit_w"
UNKNOWN, FILLER, COUNTRIES = "?", "_", "κ"
SIZES = frozenset({"b", "t"})
APART = frozenset({"/", "(", ","})
"""What may stand between the size of a mixture of experts and that of a token."""
_Reader = Callable[[], "tuple[int, str, object] | None"]


@dataclass(frozen=True, slots=True)
class Correction:
    """A misspelt word and what it is read as."""

    written: str
    read: str


def correct_words(tokens: Sequence[Token], vocabulary: Vocabulary) -> tuple[tuple[Token, ...], tuple[Correction, ...]]:
    """The tokens with misspelt words replaced, where one known word alone is near, a program's genitive as its name; the corrections."""
    corrected, corrections = [], []
    for index, token in enumerate(tokens):
        if token.text.endswith("'s") and token.text[:-2] in vocabulary.program_ends:
            corrected.append(replace(token, text=token.text[:-2]))
            continue
        after = tokens[index + 1] if index + 1 < len(tokens) and tokens[index + 1].start == token.end else None
        follows = after is not None and (after.text[0].isdigit() or after.text == "/")
        near = () if token.text in vocabulary.names else correct_spelling(token.text, vocabulary)  # centralus is a region
        near = tuple(word for word in near if word in vocabulary.families) if follows else near
        numbered = index + 1 < len(tokens) and tokens[index + 1].text[0].isdigit()
        near = near or (family_like(token.text, vocabulary) if numbered else ())
        if len(near) == 1:
            corrections.append(Correction(token.written, near[0]))
            corrected.append(replace(token, text=near[0]))
        else:
            corrected.append(token)
    return tuple(corrected), tuple(corrections)


def read_pieces(tokens: Sequence[Token], vocabulary: Vocabulary, today: date) -> list[Piece]:
    """The pieces of a sentence, in order, so that each token is in one."""
    pieces, at = [], 0
    while at < len(tokens):
        piece = max(_readings(tokens, at, vocabulary, today), key=lambda found: found.last, default=None)
        pieces.append(piece or Piece(UNKNOWN, tokens[at].written, at, _end_of_word(tokens, at)))
        at = pieces[-1].last
    return pieces


def _end_of_word(tokens: Sequence[Token], at: int) -> int:
    """The token after what is written as one word with a token that is not understood."""
    end = at + 1
    while end < len(tokens) and tokens[end].start == tokens[end - 1].end and tokens[end].text[0].isalnum() and tokens[at].text[0].isalnum():
        end += 1
    return end


def _readings(tokens: Sequence[Token], at: int, vocabulary: Vocabulary, today: date) -> Iterator[Piece]:
    """What may begin at a token; of several that are as long, the first counts."""
    named, phrase = read_name(tokens, at, vocabulary), _read_phrase(tokens, at)
    if named is not None and not _ends_range(tokens, named, vocabulary) and not _is_group(named, phrase):
        yield named
    period = read_span(tokens, at, today)
    if period is not None:
        yield Piece("D", period[1], at, period[0])
    duration = read_duration(tokens, at)
    if duration is not None:
        yield Piece("U", duration[1], at, duration[0])
    clock = read_clock(tokens, at)
    if clock is not None:
        yield Piece("η", "own day", at, clock)
    if phrase is not None:
        yield phrase
    mixture = _read_mixture(tokens, at)
    if mixture is not None:
        yield mixture
    figure = read_figure(tokens, at)
    if figure is not None and not _runs_on(tokens, figure[0], vocabulary):
        yield Piece(FIGURE_KINDS[figure[1].unit], figure[1], at, figure[0])


def _is_group(named: Piece, phrase: Piece | None) -> bool:
    """Whether the words of a region's name are those of several countries: North America, Southeast Asia."""
    of_countries = phrase is not None and phrase.kind == COUNTRIES and phrase.last == named.last
    return of_countries and isinstance(named.value, Chosen) and named.value.written.casefold() != named.value.name.value


def _ends_range(tokens: Sequence[Token], named: Piece, vocabulary: Vocabulary) -> bool:
    """Whether a number that is a card's name, too, is one end of a range of other accelerators: 64-4090 H100."""
    at, after = named.first, named.last
    if named.kind != "A" or after - at > 1 or not tokens[at].text.isdigit():
        return False
    begins = after + 1 < len(tokens) and tokens[after].glued and tokens[after].text.isdigit()
    ends = at > 0 and tokens[at].glued and tokens[at - 1].text.isdigit()
    counted = read_name(tokens, after + begins, vocabulary) if (begins or ends) and after < len(tokens) else None
    return counted is not None and counted.kind == "A"


def _read_mixture(tokens: Sequence[Token], at: int) -> Piece | None:
    """30B-A3B, 235b/a22b, 1t (a32b): the size of a mixture of experts, and what of it works on a token."""
    active = at + 2 + (at + 2 < len(tokens) and tokens[at + 2].text in APART)
    texts = [token.text for token in tokens[active : active + 3]]
    if len(texts) < 3 or tokens[at + 1].text not in SIZES or texts[0] != "a" or texts[2] not in SIZES:
        return None
    glued = all(token.glued for token in (tokens[at + 1], *tokens[active + 1 : active + 3]))
    sizes = [read_figure(tokens, begin) for begin in (at, active + 1)]
    if not glued or any(size is None for size in sizes):
        return None
    return Piece("B", tuple(int(size[1].value) for size in sizes if size), at, active + 3)


def _runs_on(tokens: Sequence[Token], end: int, vocabulary: Vocabulary) -> bool:
    """Whether a figure runs into letters that are none of its own, nor those of an accelerator: 47q, but 256h100."""
    if end >= len(tokens) or tokens[end].start != tokens[end - 1].end or not _is_loose_letter(tokens[end], tokens, end):
        return False
    named = read_name(tokens, end, vocabulary)
    return named is None or named.kind != "A"


def _is_loose_letter(token: Token, tokens: Sequence[Token], at: int) -> bool:
    return token.text.isalpha() and token.text != "x" and _read_phrase(tokens, at) is None and read_duration(tokens, at - 1) is None


def _read_phrase(tokens: Sequence[Token], at: int) -> Piece | None:
    if _is_watts(tokens, at):
        return Piece("K", POWER_LIMIT, at, at + 1) if _ends_word(tokens, at + 1) else None  # 700W are no `700 with`
    if tokens[at].text == "+" and _is_sign(tokens, at):
        return None
    lexicon = load_lexicon()
    lengths = lexicon.lengths.get(tokens[at].text, ())
    texts = tuple(token.text for token in tokens[at : at + lengths[0]]) if lengths else ()
    for length in lengths:
        found = lexicon.by_phrase.get(texts[:length]) if length <= len(texts) else None
        if found is not None and (found[0] == "K" or _ends_word(tokens, at + length)):
            return Piece(*found, at, at + length)
    return None


def _is_sign(tokens: Sequence[Token], at: int) -> bool:
    """Whether a plus is part of a figure, and joins nothing: 64+ H100, +20%."""
    before = at > 0 and tokens[at - 1].end == tokens[at].start
    after = at + 1 < len(tokens) and tokens[at + 1].start == tokens[at].end
    return (before and not after) or (after and not before and tokens[at + 1].text[0].isdigit())


def _is_watts(tokens: Sequence[Token], at: int) -> bool:
    """Whether a w after a number is its unit: 700W, 700 W, but 64 h100 w/ fp8."""
    if tokens[at].text != "w" or at == 0 or not tokens[at - 1].text[0].isdigit():
        return False
    slashed = at + 1 < len(tokens) and tokens[at + 1].text == "/"
    return tokens[at - 1].end == tokens[at].start or (tokens[at].written == "W" and not slashed)


def _ends_word(tokens: Sequence[Token], end: int) -> bool:
    """Whether a phrase ends with a word and not within one: `use`, not the beginning of `use2`."""
    if end >= len(tokens) or tokens[end].start != tokens[end - 1].end:
        return True
    return not (tokens[end].text[0].isdigit() and tokens[end - 1].text[-1].isalpha() and tokens[end - 1].text not in ("x", "v"))


def has_scale(piece: Piece) -> bool:
    """Whether a figure has a suffix of thousands and more."""
    return isinstance(piece.value, Figure) and piece.value.scale > 1
