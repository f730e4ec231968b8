"""Names of programs as questions hold them."""

from __future__ import annotations

import pytest

from service.formats.ask.lexing.vocabulary import Name, Vocabulary, add_programs
from service.formats.ask.parse import parse
from tests.unit.usecases.ask.rows import TODAY


@pytest.mark.parametrize("others", [(), ("-",)], ids=["alone", "beside a name that is a hyphen"])
def test_the_possessive_of_a_program_is_its_name(vocabulary: Vocabulary, others: tuple[str, ...]) -> None:
    """Whatever other programs are called."""
    names = add_programs(vocabulary, [Name("G", name, (name,), id=name) for name in ("kestrel", *others)])
    reading = parse("kestrel's status", names, TODAY)
    assert reading is not None
    assert (reading.understood.kind, reading.understood.request) == ("status", {"id": "kestrel"})
