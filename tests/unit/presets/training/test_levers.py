"""The kinds of levers: what a reader is told of each, and published figures as they were published."""

from __future__ import annotations

import pytest

from service.presets.training.levers import AIMS, LeverKind, load_levers


@pytest.mark.parametrize("kind", load_levers().values(), ids=lambda kind: kind.name)
def test_every_kind_says_what_it_does_what_it_risks_and_who_says_so(kind: LeverKind) -> None:
    """And is judged by something."""
    assert kind.title
    assert kind.risk
    assert kind.source
    assert kind.aims
    assert set(kind.aims) <= set(AIMS)


@pytest.mark.parametrize(
    ("kind", "figure", "published"),
    [
        ("optimizer", "tokens_share", 0.52),  # arXiv 2502.16982, section 3.2
        ("experts", "params_factor", 16.4 / 6.7),  # arXiv 2401.06066, table 4: parameters in billions
        ("experts", "active_share", 2.8 / 6.7),
        ("distillation", "tokens_share", 1 / 40),  # arXiv 2407.14679, abstract
        ("distillation", "least_tokens", 94e9),
        ("progressive_growing", "tokens_share", 194 / 300),  # arXiv 2405.15319, abstract: billions of tokens
    ],
)
def test_figures_are_the_published_ones(kind: str, figure: str, published: float) -> None:
    """Within their rounding."""
    assert load_levers()[kind].figures[figure] == pytest.approx(published, rel=0.05)
