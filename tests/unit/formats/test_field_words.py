"""Fields of the API in plain words."""

from __future__ import annotations

import pytest

from service.formats.field_words import choice_words, path_words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("training.seq_len", "training: sequence length"),
        ("failures.detection_minutes", "failures: detection, minutes"),
        ("on_prem.0.utilisation", "own hardware 1: utilisation"),
        ("hardware.accelerators.1", "hardware: accelerators 2"),
        ("tokens_per_s", "tokens a second"),
        ("max_usd_per_accelerator_hour", "most USD an accelerator hour"),
        ("hours", "hours"),
    ],
)
def test_a_path_is_said_in_words(path: str, words: str) -> None:
    """What it is a part of, itself, and its unit; places are counted from one."""
    assert path_words(path) == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(("on_demand", "on demand"), ("spot", "spot"), ("reserved", "reserved")),
        *(("reserved_1y", "reserved for 1 year"), ("reserved_3y", "reserved for 3 years")),
    ],
)
def test_a_choice_is_said_in_words(name: str, words: str) -> None:
    """A reservation with its time."""
    assert choice_words(name) == words
