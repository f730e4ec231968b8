"""Number formats by family: what the table says of every accelerator."""

from __future__ import annotations

import pytest

from service.domain.training.hardware import PRECISIONS, Accelerator
from service.presets.hardware.accelerators import load_accelerators
from service.presets.hardware.formats import load_format_support
from service.presets.serving import load_formats
from tests.support.rows import for_each


@for_each("part", load_accelerators().values(), ids=lambda part: part.name)
def test_every_published_peak_is_of_a_format_that_the_family_computes_in(part: Accelerator) -> None:
    """A data sheet's rate and the table of formats do not contradict each other."""
    assert set(part.peak_tflops) <= set(load_format_support()[part.family].arithmetic)


def test_every_family_has_known_formats_and_a_source() -> None:
    """Names that requests take; nothing is stored in more than 8 bits."""
    formats = load_formats()
    for support in load_format_support().values():
        assert set(support.arithmetic) <= set(PRECISIONS)
        assert all(formats[name].bits <= 8 for name in support.stored)
        assert len(support.source) > 20


@pytest.mark.parametrize(
    ("precision", "without"),
    [
        ("bf16", {"kepler", "pascal", "volta", "turing"}),
        ("fp8", {"volta", "turing", "ampere", "cdna1", "cdna2"}),
        ("nvfp4", {"ada", "hopper", "ampere", "cdna3", "cdna4"}),
        ("fp4", {"hopper", "ada", "ampere", "cdna3"}),
    ],
)
def test_formats_begin_with_a_generation(precision: str, without: set[str]) -> None:
    """bf16 at Ampere, fp8 at Ada, Hopper and CDNA 3, fp4 at Blackwell and CDNA 4."""
    families = load_format_support()
    assert not {family for family in without if precision in families[family].arithmetic}
    assert precision in families["blackwell"].arithmetic
