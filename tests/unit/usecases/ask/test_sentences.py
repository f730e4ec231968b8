"""Sentences as five people write them, each with the request that it is read as and what is asked back."""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.ask import KINDS, Reading
from service.formats.ask.lexing.vocabulary import Vocabulary, load_lexicon
from service.formats.ask.parse import parse
from tests.support.rows import for_each
from tests.unit.usecases.ask.rows import ROWS, TODAY, of_each_form

TEXTS = [str(row["text"]) for row in ROWS]
PEOPLE = {"research_lead", "procurement", "finance", "tool_developer", "operator"}
OF_RUNS = ("estimate", "compare", "chance")
READ = [row for row in ROWS if row["kind"] and not row["asked_back"]]
READ_OF_RUNS = [row for row in READ if row["kind"] in OF_RUNS]
AsWritten = Callable[[str], Reading | None]


def read(text: str, vocabulary: Vocabulary) -> Reading:
    """What a sentence is read as."""
    found = parse(text, vocabulary, TODAY)
    assert found is not None, text
    return found


def spelt_out(value: Any, vocabulary: Vocabulary) -> Any:
    """A request with every provider in place of `{"all_but": [names]}`."""
    if isinstance(value, list):
        return [spelt_out(item, vocabulary) for item in value]
    if not isinstance(value, dict):
        return value
    if "all_but" in value:
        return [name.value for name in vocabulary.providers if name.value not in value["all_but"]]
    return {name: spelt_out(item, vocabulary) for name, item in value.items()}


@for_each("row", ROWS, ids=itemgetter("text"))
def test_a_sentence_is_read_as_its_request_and_asks_back_what_is_in_doubt(
    row: Mapping[str, Any], vocabulary: Vocabulary, as_written: AsWritten
) -> None:
    found = as_written(row["text"])
    if row["kind"] is None:
        assert found is None
        return
    assert found is not None
    assert (found.understood.kind, found.understood.request) == (row["kind"], spelt_out(row["request"], vocabulary))
    assert [entry.text for entry in found.unclear if entry.blocking] == row["asked_back"]
    assert [entry.text for entry in found.unclear if not entry.blocking] == row["not_understood"]


@for_each("row", READ, ids=itemgetter("text"), usual=of_each_form)
def test_what_is_echoed_reads_as_the_same_request(row: Mapping[str, Any], vocabulary: Vocabulary, as_written: AsWritten) -> None:
    written = as_written(row["text"])
    assert written is not None
    first = written.understood
    again = read(first.echo, vocabulary)
    assert (again.understood.kind, again.understood.request) == (first.kind, first.request)
    assert again.unclear == ()
    assert again.understood.echo == first.echo


def test_there_are_300_sentences_of_five_people_and_every_kind() -> None:
    assert len(set(TEXTS)) >= 300
    assert min(Counter(row["by"] for row in ROWS)[person] for person in PEOPLE) >= 40
    assert {row["kind"] for row in ROWS} == {*KINDS, None}


@for_each("row", [row for row in ROWS if row["kind"] in {*OF_RUNS, "optimal"}], ids=itemgetter("text"), usual=of_each_form)
def test_a_word_more_is_never_dropped_in_silence(row: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    found = read(f"{row['text'].rstrip('?')} frobnication", vocabulary)
    assert any("frobnication" in entry.text for entry in found.unclear)


@for_each("row", READ_OF_RUNS, ids=itemgetter("text"), usual=of_each_form)
def test_a_number_more_is_asked_back(row: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    assert not read(f"{row['text'].rstrip('?')}; 47.3", vocabulary).answerable


@pytest.mark.parametrize("change", [str.upper, "hi, {} thanks!".format])
@for_each("row", READ, ids=itemgetter("text"), usual=of_each_form)
def test_capitals_and_greetings_never_change_a_request(
    row: Mapping[str, Any], change: Callable[[str], str], vocabulary: Vocabulary
) -> None:
    found = parse(change(row["text"]), vocabulary, TODAY)
    if found and found.answerable:
        expected = spelt_out(row["request"], vocabulary)
        as_text = [json.dumps(request, sort_keys=True).casefold() for request in (found.understood.request, expected)]
        assert as_text[0] == as_text[1]


NONSENSE = st.text(string.ascii_lowercase, min_size=4, max_size=12).map(lambda word: f"zq{word}qz")


@given(
    word=NONSENSE,
    at=st.integers(0, 20),
    text=st.sampled_from(["7B on 1T tokens with 256 H100", "compare 13B 2T on a100 or h200 under $2M"]),
)
def test_an_unknown_word_is_named_wherever_it_stands(vocabulary: Vocabulary, word: str, at: int, text: str) -> None:
    words = text.split()
    words.insert(min(at, len(words)), word)
    found = read(" ".join(words), vocabulary)
    assert any(word in entry.text for entry in found.unclear)


ODD = ("0", "7", "64,128", "1e400", "-3", "1/2", "70%", "€5", "$", "$3", "8x", "3.5T", "½", "2027-02-30", "v3", "/", "-", ",", "x")
PARTS = st.sampled_from([*sorted(load_lexicon().words), *TEXTS[0].split(), *ODD])


@given(text=st.one_of(st.text(max_size=200), st.lists(PARTS, max_size=25).map(" ".join)))
def test_any_text_is_read_or_not_understood(vocabulary: Vocabulary, text: str) -> None:
    found = parse(text, vocabulary, TODAY)
    if found is not None:
        assert found.understood.kind in KINDS
        assert found.understood.echo.startswith("I read: ")
        json.dumps(found.understood.request, allow_nan=False)


@given(params=st.integers(1, 9_999), tokens=st.integers(1, 9_999), count=st.integers(1, 100_000), usd=st.integers(50, 1500))
def test_figures_come_through_as_they_are_said(vocabulary: Vocabulary, params: int, tokens: int, count: int, usd: int) -> None:
    text = f"{params}M parameters, {tokens}B tokens, {count} H100 at ${usd / 100:.2f} an hour"
    found = read(text, vocabulary)
    assert found.understood.request == {
        "model": {"params": params * 10**6},
        "data": {"tokens": tokens * 10**9},
        "hardware": {"accelerator": "H100", "count": count},
        "price": {"usd_per_accelerator_hour": usd / 100},
    }
    assert read(found.understood.echo, vocabulary).understood.request == found.understood.request
