"""Terabytes that are stored or sent out, and none that a model is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.quantities import TERABYTES, figures
from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.tokens import Piece

FIELDS = {"storage": "storage.dataset_tb", "egress": "network.egress_tb"}
"""What terabytes are of, by the word before them."""
STORED = frozenset({"storage.usd_per_tb_month", "storage.retention_months", "storage.dataset_tb"})
"""Beside these, a size of data is that of what is stored."""


def of_size(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Storage of 120 TB, egress 15 TB."""
    path = FIELDS.get(str(pieces[0].value))
    if path is not None and pieces[-1].value == TERABYTES:
        yield Slot(path, plain(figures(pieces)[0].value), pieces[0].first, pieces[-1].last)


def settle(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with terabytes as stored, beside a price of storage; else they are data, of which tokens are asked for."""
    stored = any(slot.name in STORED for slot in slots)
    return [_settled(slot, stored=stored) if slot.name == TERABYTES else slot for slot in slots]


def _settled(slot: Slot, *, stored: bool) -> Slot:
    if stored:
        return replace(slot, name="storage.dataset_tb", note="beside a price of storage: what is stored")
    return replace(slot, name="other_unit", value=TERABYTES)
