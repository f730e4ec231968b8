"""What a price book lacks of commitments."""

from __future__ import annotations

from datetime import timedelta

from service.prices.book import make_price_book
from service.usecases.prices.commitments import describe_missing_commitments
from tests.unit.usecases.comparison.comparing import A100, H100, H200, offer

BOOK = make_price_book(
    "book-1",
    (
        offer("3.90"),
        offer("4.20", region="eu-central-1"),
        offer("3.50", accelerator=H200),
        offer("1", accelerator=A100, pricing="reserved_1y"),
    ),
    timedelta(days=1),
)


def test_one_line_names_what_has_no_commitment_and_how_it_is_brought() -> None:
    """Those with the most offers first."""
    text = describe_missing_commitments(BOOK)
    assert text is not None
    assert text.startswith(f"book-1 has no reserved price of {H100}, {H200}: aws, azure, gcp, runpod, verda publish commitments")
    assert "price file" in text
    assert "\n" not in text


def test_only_what_was_asked_for_is_named() -> None:
    """An accelerator that nobody sells has no commitment either; nothing missing is nothing said."""
    assert describe_missing_commitments(BOOK, (A100,)) is None
    assert str(describe_missing_commitments(BOOK, (H200,))).startswith(f"book-1 has no reserved price of {H200}:")
    assert str(describe_missing_commitments(BOOK, ("NVIDIA-B200-SXM",))).startswith("book-1 has no reserved price of NVIDIA-B200-SXM:")
