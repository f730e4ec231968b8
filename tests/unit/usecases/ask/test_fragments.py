"""Laws of reading: what is said is read alike whatever stands around it, and no number is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.ask import Reading
from service.formats.ask.lexing.vocabulary import Vocabulary
from service.formats.ask.parse import parse

TODAY = date(2026, 11, 23)
NAMED = {
    "7B parameters": {"model.params": 7 * 10**9},
    "1T tokens": {"data.tokens": 10**12},
    "64 H100": {"hardware.accelerator": "H100", "hardware.count": 64},
}
RUN: Mapping[str, Mapping[str, Any]] = {
    "3 epochs": {"data.epochs": 3},
    "seq len 8192": {"training.seq_len": 8192},
    "global batch 4M tokens": {"training.global_batch_tokens": 4 * 10**6},
    "fp8": {"training.precision": "fp8"},
    "LoRA": {"training.method": "lora"},
    "ZeRO stage 3": {"training.zero_stage": 3},
    "micro-batch 4": {"training.micro_batch": 4},
    "tensor parallel 8": {"training.parallelism.tensor": 8},
    "pipeline parallel 2": {"training.parallelism.pipeline": 2},
    "MFU 40%": {"efficiency.mfu": 0.4},
    "PUE 1.25": {"energy.pue": 1.25},
    "at $2.50 an hour": {"price.usd_per_accelerator_hour": 2.5},
    "on aws": {"price.provider": "aws"},
    "from 2027-01-05": {"schedule.start": "2027-01-05"},
    "queue of 5 days": {"schedule.queue_hours": 120},
    "rerun overhead 10%": {"overhead.reruns": 0.1},
    "5% for evaluation": {"overhead.evaluation": 0.05},
    "a failure every 3 days": {"failures.mttf_hours_per_accelerator": 3 * 24 * 64},
    "restart takes 20 min": {"failures.restart_minutes": 20},
    "checkpoints every 30 minutes": {"failures.checkpoint_interval_minutes": 30},
    "activation checkpointing": {"training.activation_recompute": "full"},
    "electricity $0.07": {"energy.usd_per_kwh": 0.07},
    "which levers": {"levers": True},
    "without flash attention": {"training.flash_attention": False},
    "context parallel 2": {"training.parallelism.context": 2},
}
BOUGHT = {
    "buy 64 H100": {"demand.accelerator": "H100", "demand.count": 64},
    "$32k each": {"own.0.capex_usd_per_accelerator": 32000},
    "for 3 years": {"demand.years": 3},
}
OWNED: Mapping[str, Mapping[str, Any]] = {
    "70% utilisation": {"demand.utilisation": 0.7},
    "growth 10%": {"demand.growth_per_year": 0.1},
    "residual value 25%": {"own.0.residual_share": 0.25},
    "cost of capital 9%": {"cost_of_capital": 0.09},
    "6 cents per kWh": {"own.0.usd_per_kwh": 0.06},
    "1.3 kW": {"own.0.kw_per_accelerator": 1.3},
    "PUE 1.2": {"own.0.pue": 1.2},
}
WITHOUT_A_MEANING = ("3.7", "12%", "6 cents", "9 sheep", "$75 a day", "€300", "$300k CAD", "A$5M", "at least 9", "under 31% MFU")
FIGURE = re.compile(r"\d+(?:\.\d+)?")


def read(parts: list[str], vocabulary: Vocabulary) -> Reading:
    """What parts of a sentence are read as, commas between them."""
    found = parse(", ".join(parts), vocabulary, TODAY)
    assert found is not None
    return found


def flat(value: object, path: str = "") -> dict[str, object]:
    """Members of a request by their path; a fleet's name is no part of the question."""
    if isinstance(value, Mapping):
        items = ((f"{path}.{name}", item) for name, item in value.items() if name != "name")
    elif isinstance(value, list):
        items = ((f"{path}.{at}", item) for at, item in enumerate(value))
    else:
        return {path.removeprefix("."): value}
    return {name: found for at, item in items for name, found in flat(item, at).items()}


def some_of(named: Mapping[str, Any], more: Mapping[str, Any]) -> st.SearchStrategy[list[str]]:
    """What names the subject and any of the rest, in any order."""
    return st.lists(st.sampled_from(sorted(more)), unique=True).flatmap(lambda rest: st.permutations([*named, *rest]))


@given(parts=some_of(NAMED, RUN))
def test_parts_of_a_run_are_read_alike_in_any_order_and_company(parts: list[str], vocabulary: Vocabulary) -> None:
    said = {**NAMED, **RUN}
    assert flat(read(parts, vocabulary).understood.request) == {path: value for part in parts for path, value in said[part].items()}


@given(parts=some_of(BOUGHT, OWNED))
def test_parts_of_a_purchase_are_read_alike_in_any_order_and_company(parts: list[str], vocabulary: Vocabulary) -> None:
    said = {**BOUGHT, **OWNED}
    assert flat(read(parts, vocabulary).understood.request) == {path: value for part in parts for path, value in said[part].items()}


@given(
    parts=st.one_of(some_of(NAMED, RUN), some_of(BOUGHT, OWNED)),
    at=st.integers(0, len(NAMED) + len(RUN)),
    odd=st.sampled_from(WITHOUT_A_MEANING),
)
def test_a_number_without_a_meaning_is_asked_back_wherever_it_stands(parts: list[str], at: int, odd: str, vocabulary: Vocabulary) -> None:
    found = read([*parts[:at], odd, *parts[at:]], vocabulary)
    asked = [entry.text for entry in found.unclear if entry.blocking]
    listed = {str(value) for value in flat(found.understood.request).values()}  # at least 9, 64 H100: two numbers of them
    assert asked
    assert all(number in listed or any(number in text for text in asked) for number in FIGURE.findall(odd))


@pytest.mark.parametrize(
    ("text", "word", "taken"),
    [
        ("average price of h100", "average", "median"),
        ("avg h100 spot price", "avg", "median"),
        ("p90 duration of 70b 3T tokens 2048 h100", "p90", "upper end"),
        ("worst case cost for 30b on 1T tokens 512 h100", "worst case", "p90"),
        ("p80 cost of 7b on 1T tokens on 64 h100", "p80", "asked for"),
        ("own 128 h100 at $30k each, 5 year depreciation, or rent at $2", "5 years", "time of depreciation is read as that of use"),
    ],
)
def test_a_word_for_one_figure_says_what_is_taken_for_it(text: str, word: str, taken: str, vocabulary: Vocabulary) -> None:
    found = parse(text, vocabulary, TODAY)
    assert found is not None
    assert [note.value for note in found.assumptions if taken in note.source] == [word]


@pytest.mark.parametrize("count", [64, 128, 2048])
@pytest.mark.parametrize(
    ("said", "name", "value"),
    [("2M token batch", "global_batch_tokens", 2 * 10**6), ("8k seq len", "seq_len", 8192), ("8k context", "seq_len", 8192)],
)
def test_a_number_of_accelerators_is_not_the_length_before_it(said: str, name: str, value: int, count: int, vocabulary: Vocabulary) -> None:
    found = parse(f"7B on 1T tokens with {said} on {count} H100", vocabulary, TODAY)
    assert found is not None
    assert found.understood.request["training"] == {name: value}
    assert found.understood.request["hardware"] == {"accelerator": "H100", "count": count}


def test_a_region_of_one_provider_has_those_of_others_that_begin_so(vocabulary: Vocabulary) -> None:
    found = parse("h100 price in us east", vocabulary, TODAY)
    assert found is not None
    assert {"us-east", "us-east-1", "us-east4"} <= {*found.understood.request["region"].split(",")}
    for text, region in (("v100 price on ibm in us-east", "us-east"), ("b200 price on aws in us-east", "us-east-1,us-east-2")):
        named = parse(text, vocabulary, TODAY)
        assert named is not None
        assert named.understood.request["region"] == region
