"""Assumptions and warnings, gathered while a request is resolved."""

from __future__ import annotations

import pytest

from service.usecases.resolution.assumption_log import AssumptionLog


def test_a_later_note_of_a_field_stands_for_both() -> None:
    """One entry a field, with the last value and both reasons."""
    notes = AssumptionLog()
    assert notes.assume("training.seq_len", 4096, "published") == 4096
    notes.assume("training.seq_len", 2048, "rounded")
    assert [(n.field, n.value, n.source) for n in notes.assumptions] == [("training.seq_len", 2048, "published; rounded")]


def test_notes_of_others_are_added_as_if_made_now() -> None:
    """New fields after what is there, a field of both with both reasons, and the warnings."""
    said, notes = AssumptionLog(), AssumptionLog()
    said.assume("training.seq_len", 2048, "rounded")
    said.assume("data.epochs", 1, "once")
    said.warn("mind the gap")
    notes.assume("training.seq_len", 4096, "published")
    notes.add(said)
    assert [(n.field, n.value, n.source) for n in notes.assumptions] == [
        ("training.seq_len", 2048, "published; rounded"),
        ("data.epochs", 1, "once"),
    ]
    assert notes.warnings == ["mind the gap"]


def test_a_given_value_is_chosen_without_a_note() -> None:
    """Zero and false are given; null is not."""
    notes = AssumptionLog()
    assert notes.choose({"epochs": 0}, "data.epochs") == 0
    assert notes.choose({"flash_attention": False}, "training.flash_attention") is False
    assert notes.assumptions == ()
    assert notes.choose({"epochs": None}, "data.epochs") == 1


def test_an_unheard_of_default_names_the_file() -> None:
    """A slip of ours is found at once."""
    with pytest.raises(KeyError, match=r"data.epoch has no default in defaults.toml"):
        AssumptionLog().choose({}, "data.epoch")
