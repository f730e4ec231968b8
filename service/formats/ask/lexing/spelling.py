"""Words that are misspelt: the known one that each may be."""

from __future__ import annotations

import itertools

from rapidfuzz import process
from rapidfuzz.distance import OSA

from service.formats.ask.lexing.vocabulary import Vocabulary, load_lexicon, load_ordinary_words

_NEIGHBOURS = {pair for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm") for one in itertools.pairwise(row) for pair in (one, one[::-1])}
"""Letters of keys side by side."""
SHORTEST_CORRECTED, LONG_WORD = 5, 8


def correct_spelling(word: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Known words that a misspelt one may be: as few letters away as any, one in short words and two in long ones."""
    if word in vocabulary.known_words or word in load_ordinary_words() or not word.isalpha() or len(word) < SHORTEST_CORRECTED - 1:
        return ()
    most = 2 if len(word) >= LONG_WORD else 1
    found = process.extract(word, vocabulary.spellings, scorer=OSA.distance, score_cutoff=most, limit=8)
    short = len(word) < SHORTEST_CORRECTED  # of a word of four letters only the name of a model is made: lama
    found = [entry for entry in found if not short or (entry[0] in vocabulary.families and len(entry[0]) > len(word))]
    found = [entry for entry in found if _begins_alike(word, entry[0])]
    found = [entry for entry in found if says_something(entry[0]) or (entry[1] == 1 and _is_slip(word, entry[0]))]
    least = min((distance for _, distance, _ in found), default=0)
    near = tuple(entry for entry, distance, _ in found if distance == least)
    return near[:1] if len({_meaning(entry) for entry in near}) == 1 else near


def family_like(word: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The one family of models that a word before a number is, two letters off: lamma 3."""
    if word in vocabulary.known_words or not word.isalpha() or len(word) < SHORTEST_CORRECTED:
        return ()
    found = process.extract(word, vocabulary.families.keys(), scorer=OSA.distance, score_cutoff=2, limit=2)
    near = tuple(family for family, _, _ in found if len(family) >= SHORTEST_CORRECTED and family[0] == word[0])
    return near if len(near) == 1 else ()


def _begins_alike(word: str, known: str) -> bool:
    """Whether a slip leaves the first letter, or changes its place with the second: restarts are no starts."""
    return word[0] == known[0] or (word[:2] == known[1::-1] and len(word) == len(known))


def says_something(word: str) -> bool:
    """Whether a word of the lexicon is more than a filler, or begins a phrase that is."""
    return any(kind != "_" for _, kind, _ in load_lexicon().by_first.get(word, ())) or word not in load_lexicon().by_first


def _is_slip(word: str, filler: str) -> bool:
    """Whether a word can hardly be one of its own: a letter for another is no slip but of keys side by side (staff is no stuff)."""
    changed = [(one, other) for one, other in zip(word, filler, strict=False) if one != other]
    return len(word) != len(filler) or len(changed) != 1 or changed[0] in _NEIGHBOURS


def _meaning(word: str) -> object:
    """What a word of the lexicon stands for alone; itself where it is none: token and tokens mean the same."""
    alone = (row for row in load_lexicon().by_first.get(word, ()) if row[0] == (word,))
    return next(((kind, value) for _, kind, value in alone if kind != "_"), word)
