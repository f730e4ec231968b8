"""The page of model cards: every fitted parameter stands on one card, beside where it was expected."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench.accuracy import cards

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy" / "model-cards.md"


def test_every_parameter_stands_on_one_card() -> None:
    """Those that all accelerators share; shares of the peak are on the cards of products and attention."""
    named = Counter(name for card in cards.cards() for name in card["parameters"])
    assert named == Counter(list(cards.rates()))


def test_the_committed_page_has_the_fitted_parameters() -> None:
    """If not: `make accuracy`."""
    page = PAGE.read_text(encoding="utf-8")
    for card in cards.cards():
        for row in [*cards.parameter_rows(card["parameters"]), *cards.share_rows(card.get("shares"))]:
            assert "| " + " | ".join(row) + " |" in page


def test_a_parameter_says_how_far_it_moved() -> None:
    """Expected value, factor and fitted value, and the last over the first."""
    name, expected, factor, fitted, moved, *_ = next(iter(cards.parameter_rows(["network_share"])))
    assert (name, expected, factor) == ("`network_share`", "0.75", "1.25")
    assert float(moved.removeprefix("x ")) == round(float(fitted) / 0.75, 2)
