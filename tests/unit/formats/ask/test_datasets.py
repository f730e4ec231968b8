"""Public data sets: each has a size, a source, and names that mean nothing else."""

from __future__ import annotations

import pytest

from service.formats.ask.lexing.datasets import load_datasets
from service.formats.ask.lexing.pieces import read_pieces
from service.formats.ask.lexing.tokens import tokenise
from service.formats.ask.lexing.vocabulary import make_vocabulary
from tests.unit.usecases.ask.test_sentences import TODAY

LABELS = [(label, dataset.name) for dataset in load_datasets().values() for label in dataset.labels]


@pytest.mark.parametrize("name", load_datasets())
def test_a_data_set_has_a_size_and_a_source(name: str) -> None:
    dataset = load_datasets()[name]
    assert dataset.unit in ("samples", "tokens")
    assert dataset.size > 0
    assert dataset.source


@pytest.mark.parametrize(("label", "name"), LABELS)
def test_a_label_is_read_as_its_data_set(label: str, name: str) -> None:
    pieces = read_pieces(tokenise(label), make_vocabulary((), {}, {}), TODAY)
    assert [(piece.kind, piece.value) for piece in pieces] == [("Ω", name)]
