"""Ranges are asked back with both ends, or weighed where several are taken, and doubt nothing else."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.domain.ask import Reading
from service.formats.ask.lexing.vocabulary import Vocabulary
from service.formats.ask.parse import parse

TODAY = date(2026, 11, 23)
ENDS = st.integers(1, 400).flatmap(lambda low: st.tuples(st.just(low), st.integers(low + 1, 100 * low)))


def read(text: str, vocabulary: Vocabulary) -> Reading:
    """What a sentence is read as."""
    found = parse(text, vocabulary, TODAY)
    assert found is not None
    return found


def asked(found: Reading) -> list[tuple[str, ...]]:
    """The candidates of what is asked back."""
    return [entry.candidates for entry in found.unclear if entry.blocking]


@example(ends=(9, 10), joint="-")  # not the accelerator 910B
@given(ends=ENDS, joint=st.sampled_from(["-", " - ", "–", " to "]))
def test_a_range_of_tokens_is_asked_back_with_both_ends_alone(vocabulary: Vocabulary, ends: tuple[int, int], joint: str) -> None:
    low, high = ends
    found = read(f"100M parameters on {low}{joint}{high}B tokens with 64 H100", vocabulary)
    assert asked(found) == [(f"{low * 10**9:,}", f"{high * 10**9:,}")]
    assert "tokens" not in found.understood.request.get("data", {})


@example(ends=(64, 4090))  # not the RTX 4090
@example(ends=(4090, 5000))
@given(ends=ENDS)
def test_a_range_of_accelerators_is_weighed_at_its_ends_and_each_doubling(vocabulary: Vocabulary, ends: tuple[int, int]) -> None:
    found = read(f"compare 7B on 1T tokens on {ends[0]}-{ends[1]} H100", vocabulary)
    assert found.answerable
    counts = found.understood.request["candidates"]["counts"]
    assert (counts[0], counts[-1]) == ends
    doubled = len(counts) > 2
    assert not doubled or all(high == 2 * low for low, high in pairwise(counts))
    source = "of a range, doubled from one end to the other" if doubled else "one end of a range"
    assert [note.value for note in found.assumptions if note.source == source] == counts


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        ("30-40% MFU", ("30%", "40%")),
        ("at $2-3 an hour", ("$2", "$3")),
        ("within 3-4 weeks", ("3 weeks", "4 weeks")),
        ("seq len 4-8k", ("4,096", "8,192")),
        ("under $300-400k", ("$300,000", "$400,000")),
    ],
)
def test_a_range_of_anything_else_is_asked_back_with_both_ends(vocabulary: Vocabulary, words: str, ends: tuple[str, str]) -> None:
    assert asked(read(f"7B on 1T tokens with 64 H100 {words}", vocabulary)) == [ends]


@pytest.mark.parametrize("text", ["8b-15T 64 h100", "8B 15T on 64-h100", "from 2027-01 8B 15T 64 h100"])
def test_a_hyphen_between_other_things_is_no_range(vocabulary: Vocabulary, text: str) -> None:
    request = read(text, vocabulary).understood.request
    assert (request["model"]["params"], request["data"]["tokens"], request["hardware"]["count"]) == (8 * 10**9, 15 * 10**12, 64)


def test_numbers_that_are_no_ends_of_a_range_are_asked_back(vocabulary: Vocabulary) -> None:
    for text in ("7B 1T 128-64 h100", "7B 1T 1.5-2 h100", "7B 15-2T tokens 64 h100", "7B 1T 32-64-128 h100", "7B 1T 32, 64-128 h100"):
        assert not read(text, vocabulary).answerable, text


@example(sizes=[1, 21], joint=" or ")
@given(sizes=st.lists(st.integers(1, 40), min_size=2, max_size=4, unique=True), joint=st.sampled_from([" or ", " vs ", " versus "]))
def test_sizes_that_are_weighed_are_variants_in_their_order(vocabulary: Vocabulary, sizes: list[int], joint: str) -> None:
    found = read(f"{joint.join(f'{size}B' for size in sizes)} on 1T tokens with 64 H100", vocabulary)
    assert found.answerable
    assert found.understood.kind == "compare"
    request = found.understood.request
    assert [variant["workload"]["model"]["params"] for variant in request["variants"]] == [size * 10**9 for size in sizes]
    assert request["candidates"] == {"accelerators": ["H100"], "counts": [64]}
    assert read(found.understood.echo, vocabulary).understood == found.understood


@pytest.mark.parametrize("text", ["1B parameters or 30B parameters", "compare 1B parameters, 30B parameters"])
def test_sizes_that_each_say_parameters_are_weighed_however_far_apart(vocabulary: Vocabulary, text: str) -> None:
    request = read(f"{text} on 1T tokens on 64 H100", vocabulary).understood.request
    assert [variant["workload"]["model"]["params"] for variant in request["variants"]] == [10**9, 30 * 10**9]
    assert request["workload"]["data"] == {"tokens": 10**12}


@pytest.mark.parametrize(
    "text",
    ["7B 1T 64 h100 bf16 and fp8", "llama-3-8b 15T tokens 2T tokens on 512 h100", "7B and 15B tokens on 8 h100", "7-13b on 2T, 64 h100"],
)
def test_figures_and_names_that_nothing_joins_as_alternatives_are_asked_back(vocabulary: Vocabulary, text: str) -> None:
    assert not read(text, vocabulary).answerable


@pytest.mark.parametrize(
    ("text", "start", "deadline"),
    [
        ("1-15 march", "2027-03-01", "2027-03-15"),
        ("from 1 to 15 march 2028", "2028-03-01", "2028-03-15"),
        ("between the 1st and the 15th of march", None, None),
        ("between 1 and 15 march", "2027-03-01", "2027-03-15"),
        ("march 1-15", "2027-03-01", "2027-03-15"),
        ("from 1 march to 15 april", "2027-03-01", "2027-04-15"),
        ("from 2027 to 2028", "2027-01-01", "2028-12-31"),
        ("from 2027-01-05 until 2027-03-01", "2027-01-05", "2027-03-01"),
    ],
)
def test_a_span_of_days_is_a_start_and_a_deadline(vocabulary: Vocabulary, text: str, start: str | None, deadline: str | None) -> None:
    found = read(f"7B on 1T tokens with 64 H100, {text}", vocabulary)
    if start is None:
        assert not found.answerable
    else:
        assert found.understood.request["schedule"] == {"start": start, "deadline": deadline}
        assert found.answerable
