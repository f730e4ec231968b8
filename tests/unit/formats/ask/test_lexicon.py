"""Phrases of the data files are split as questions are."""

from __future__ import annotations

from service.formats.ask.lexing.tokens import normalise, tokenise
from service.formats.ask.lexing.vocabulary import load_lexicon

EVERY = 29
"""One in so many phrases is looked at, of all lengths and subjects: all of them take a second."""


def test_phrases_have_the_tokens_that_a_question_with_their_words_has() -> None:
    """Though most are split at their blanks alone."""
    for phrase in list(load_lexicon().by_phrase)[::EVERY]:
        written = " ".join(phrase)
        assert tuple(token.text for token in tokenise(normalise(written))) == phrase, written
