"""Nothing is read in silence: each number and name of a sentence stands in its request, or in what is said about it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from datetime import date
from operator import itemgetter

import pytest

from service.domain.ask import Reading
from service.formats.ask.grammar.accounting import lost_doubts
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import correct_words, read_pieces
from service.formats.ask.lexing.tokens import Sentence, normalise, tokenise
from service.formats.ask.lexing.vocabulary import Vocabulary
from service.formats.ask.parse import parse
from service.serialization import to_builtins
from tests.support.rows import for_each
from tests.unit.usecases.ask.rows import ROWS, TODAY, Row

NUMBER = re.compile(r"(?<![\w.,^-])\d+(?:\.\d+)?(?=[kmbt%]?\b)", re.IGNORECASE)
"""A number that is no part of a name, without its suffix."""
UNITS = (1, 1.024, 1.048576, 7, 12, 24, 168, 3, 30.4375, 365.25, 24 * 30.4375, 24 * 365.25, 1440, 60, 8, 1 / 8, 1 / 12)
"""What a number is times in another unit: k of 1,024, months in days, nodes of eight."""
NAMES = re.compile(
    r"(?<![\w-])(h100|h200|a100|b200|gb200|mi300x|v100|aws|azure|gcp|coreweave|lambda|crusoe|fp8|bf16|lora|qlora|dpo|spot)(?![\w-])",
    re.IGNORECASE,
)
FACTS = {
    "at $3.17 an hour": "3.17",
    "17 epochs": "17",
    "by 3 March 2031": "2031",
    "in nvfp4": "nvfp4",
    "with 37% MFU": "37",
    "sequence length 1234": "1234",
    "23 MI250X": "MI250X",
    "on hyperstack": "hyperstack",
    "QLoRA": "qlora",
    "under $731900": "731900",
    "for 41 days": "41",
    "43 nodes": "43",
    "with a 19% discount": "19",
    "€29k": "29",
}
"""Facts, and what of each is said again in words where it is read or asked back."""


def told(found: Reading) -> str:
    """All that is said of a sentence, in lower case."""
    return json.dumps(to_builtins(found)).lower().replace(",", "")


def digits(value: float) -> str:
    """The significant digits of a number, wherever its point is."""
    return f"{value:.6e}".partition("e")[0].rstrip("0").replace(".", "")


def without_names(text: str, vocabulary: Vocabulary) -> str:
    """A text without the names of models and programs, whose numbers are their own, and the sizes of those models."""
    written = normalise(text)
    tokens, _ = correct_words(tokenise(written), vocabulary)
    sentence, sizes = Sentence(written, tokens), set()
    for piece in read_pieces(tokens, vocabulary, TODAY):
        if isinstance(piece.value, Chosen) and piece.kind in "MG":
            part = sentence.part(piece.first, piece.last)
            text = text.replace(part, " ")
            sizes |= {f"{piece.value.name.params / 1e9:.3g}b", f"{piece.value.name.params / 1e12:.3g}t"}
    return " ".join(word for word in text.split() if word.lower().strip("(),") not in sizes)


def unsaid(text: str, found: Reading) -> Iterator[str]:
    """Numbers and names of a text that are not said of it."""
    said = told(found)
    known = {digits(float(number)) for number in re.findall(r"\d+(?:\.\d+)?", said) if float(number)}
    known |= {digits(float(day) + 1) for day in re.findall(r"\d{4}-\d\d-(\d\d)", said)}  # before the 15th: by the 14th
    for number in NUMBER.findall(text):
        if float(number) and number not in said and not {digits(float(number) * unit) for unit in UNITS} & known:
            yield number
    for name in NAMES.findall(text):
        if name.lower() not in said:
            yield name


def one_of_five(pairs: list[tuple[Row, str]]) -> list[tuple[Row, str]]:
    """As many pairs of each fact, of sentences all over the file."""
    return [pair for at, pair in enumerate(pairs) if at // len(FACTS) % 5 == 0]


@for_each("row", [row for row in ROWS if row["kind"]], ids=itemgetter("text"))
def test_each_number_and_name_of_the_sentences_is_said_again(
    row: Row, as_written: Callable[[str], Reading | None], vocabulary: Vocabulary
) -> None:
    found = as_written(row["text"])
    assert found is not None
    if [*unsaid(row["text"], found)]:
        assert [*unsaid(without_names(row["text"], vocabulary), found)] == []


@for_each(("row", "fact"), zip(ROWS, itertools.cycle(FACTS), strict=False), usual=one_of_five)
def test_a_fact_more_is_read_or_asked_back(row: Row, fact: str, vocabulary: Vocabulary) -> None:
    """Of a sentence with the fact behind it: in its request, or not understood."""
    found = parse(f"{row['text'].rstrip('?.! ')}, {fact}", vocabulary, TODAY)
    assert found is None or FACTS[fact].lower() in told(found)


def test_what_builders_and_rules_lose_is_asked_back(vocabulary: Vocabulary) -> None:
    text = "64 h100 at $3.17 by 2031-03-03 in fp8 on aws for 37 days"
    sentence = Sentence(text, tokenise(text))
    pieces = read_pieces(sentence.tokens, vocabulary, TODAY)
    lost = {doubt.text for doubt in lost_doubts(sentence, pieces, [], {}, [], [])}
    assert lost == {"64", "h100", "$3.17", "2031-03-03", "fp8", "aws", "37 days"}
    request = {"hardware": {"accelerator": "H100", "count": 64}, "price": {"usd": 3.17, "provider": "aws"}, "by": "2031-03-03"}
    kept = {doubt.text for doubt in lost_doubts(sentence, pieces, [], request, [], [])}
    assert kept == {"fp8", "37 days"}


@pytest.mark.parametrize(("text", "said"), [("8k", 8192), ("70%", 0.7), ("2M", 2 * 1024 * 1024), ("3 years", 1095.75), ("18 hours", 0.75)])
def test_a_number_in_another_unit_is_no_lost_one(text: str, said: float, vocabulary: Vocabulary) -> None:
    sentence = Sentence(text, tokenise(text))
    pieces = read_pieces(sentence.tokens, vocabulary, date(2026, 11, 23))
    assert len(pieces) == 1
    assert isinstance(pieces[0].value, Figure) or pieces[0].kind == "U"
    assert [*lost_doubts(sentence, pieces, [], {"value": said}, [], [])] == []
