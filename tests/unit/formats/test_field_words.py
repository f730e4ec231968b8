"""Fields of the API in plain words."""

from __future__ import annotations

import pytest

from service.formats.field_words import path_words


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
