"""Which words of English are kept as they are."""

from __future__ import annotations

from bench.harness import offline_context
from service.usecases.ask.vocabulary import vocabulary_of
from tools.ordinary_words import ordinary_words


def test_words_near_those_of_questions_are_found() -> None:
    """`Committees` would be corrected to `committee`; `zebra` is near nothing, and `token` is a word of questions itself."""
    with offline_context() as context:
        assert ordinary_words(["token", "zebra", "Committees", "o'clock"], vocabulary_of(context)) == ["committees"]
