"""What is lacking is asked for with choices, and each of them, put into the question, answers it."""

from __future__ import annotations

from datetime import date

import pytest

from service.domain.ask import Reading
from service.formats.ask.lexing.vocabulary import Vocabulary
from service.formats.ask.parse import parse
from service.usecases.ask.completion import completed

TODAY = date(2026, 11, 23)


def read(text: str, vocabulary: Vocabulary) -> Reading:
    """What a question is read as."""
    found = parse(text, vocabulary, TODAY)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("train deepseek v3 on 2048 h800", [("14.8 trillion tokens", "13 trillion tokens")]),
        ("what would it cost to train a 7b on 64 H100?", [("140 billion tokens",)]),
        ("what would it cost to train llama 3 70b on 15T tokens?", [("256 H100", "1024 H100", "compare")]),
        ("lora on qwen3 8b", [("1 H100", "8 H100", "compare"), ("10M tokens", "100M tokens")]),
    ],
)
def test_choices_are_those_of_the_work(vocabulary: Vocabulary, text: str, choices: list[tuple[str, ...]]) -> None:
    assert [entry.candidates for entry in read(text, vocabulary).unclear] == choices


@pytest.mark.parametrize(
    "text", ["deepseek v3 on 2048 h800", "a 7b on 64 h100", "llama 3 70b, 15T tokens", "qlora of llama 3 8b", "7B 1T cost?"]
)
def test_each_choice_answers_its_question_and_no_other(vocabulary: Vocabulary, text: str) -> None:
    asked = read(text, vocabulary).unclear
    assert asked
    for entry in asked:
        others = {other.question for other in asked} - {entry.question}
        for choice in entry.candidates:
            whole = completed(text, entry.text, choice)
            assert whole is not None
            found = read(whole, vocabulary)
            assert {other.question for other in found.unclear} <= others
            assert found.understood.kind == ("compare" if choice == "compare" else "estimate")


def test_what_is_paid_for_an_accelerator_is_asked_with_a_published_price(vocabulary: Vocabulary) -> None:
    """Which is offered with its source and date, and is taken where it is chosen; nothing is offered where none is published."""
    text = "buy or rent 128 h200 for 2 years"
    (entry,) = read(text, vocabulary).unclear
    assert entry.candidates == ("$44,600 each",)
    assert "bizety.com" in entry.question
    assert "2025-09" in entry.question
    whole = completed(text, entry.text, entry.candidates[0])
    assert whole is not None
    found = read(whole, vocabulary)
    assert found.unclear == ()
    assert found.understood.request["own"][0]["capex_usd_per_accelerator"] == 44600
    (unpublished,) = read("buy or rent 64 a100 for 3 years", vocabulary).unclear
    assert unpublished.candidates == ()


def test_a_choice_takes_the_place_of_the_words_it_is_for() -> None:
    assert completed("Llama 70b on 64 h100", "llama 70b", "llama-3-70b") == "llama-3-70b on 64 h100"
    assert completed("a 7b, $1M or $2M", "$1,000,000, $2,000,000", "$1,000,000") is None
    assert completed("what does a 7b cost?", "", "1T tokens") == "what does a 7b cost 1T tokens"
