"""Alternatives within the phrases of the lexicon."""

from __future__ import annotations

from service.formats.ask.lexing.alternatives import spelt_out


def test_every_choice_of_every_group_is_a_phrase() -> None:
    phrases = ["{tok|tokens} {/ s|per second}", "plain"]
    assert list(spelt_out(phrases)) == ["tok / s", "tok per second", "tokens / s", "tokens per second", "plain"]


def test_a_choice_may_be_empty() -> None:
    assert list(spelt_out(["{|about} once {a|per} day"])) == ["once a day", "once per day", "about once a day", "about once per day"]
