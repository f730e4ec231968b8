"""The vocabulary of the shipped presets and prices, with a few programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest

from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.ask import Reading
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, add_programs
from service.formats.ask.parse import parse
from service.usecases.ask.vocabulary import vocabulary_of
from tests.unit.usecases.ask.rows import TODAY

PROGRAMS = {"support-assistant 7B": "p1", "code-llm": "p2", "helpdesk pilot": "p3", "helpdesk prod": "p4"}


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """A context with the shipped prices, without network and database."""
    context = build_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("ask")), "OUTLAY_OFFLINE": "1"}))
    yield context
    context.store.close()


@pytest.fixture(scope="session")
def vocabulary(shipped: AppContext) -> Vocabulary:
    """All names, and those of four programs."""
    return add_programs(vocabulary_of(shipped), [Name("G", name, (name,), id=id_) for name, id_ in PROGRAMS.items()])


@pytest.fixture(scope="session")
def as_written(vocabulary: Vocabulary) -> Callable[[str], Reading | None]:
    """What a sentence's own words are read as, once for all tests."""
    return functools.cache(lambda text: parse(text, vocabulary, TODAY))
