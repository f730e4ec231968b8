"""What the terms of a commitment rule out."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.offer import OfferTerms
from service.domain.procurement.commitments import CommitmentProduct
from service.engine.procurement.commitments import commitment_faults, quote_faults

BLOCK = CommitmentProduct(
    "capacity block",
    "aws",
    ("reserved",),
    holds_capacity=True,
    source="a page",
    max_instances=64,
    several="256 instances in several",
    min_term_hours=24,
    max_term_hours=4368,
    booking_horizon_days=56,
)
CLUSTER = CommitmentProduct("clusters", "lambda", ("reserved",), holds_capacity=True, source="a page", min_accelerators=16)
TODAY = date(2027, 1, 4)


def reasons(product: CommitmentProduct, accelerators: int, hours: float = 100, ahead: float = 0, per_instance: int = 8) -> list[str]:
    return [fault.reason for fault in commitment_faults(product, accelerators, per_instance, hours, ahead)]


@pytest.mark.parametrize(
    ("accelerators", "hours", "ahead", "found"),
    [
        (512, 4368, 56, []),
        (513, 4368, 56, ["over_block_size"]),
        (512, 4369, 56, ["over_longest_term"]),
        (512, 4368, 57, ["beyond_booking_horizon"]),
        (1024, 9000, 60, ["over_block_size", "over_longest_term", "beyond_booking_horizon"]),
        (8, 1, -30, []),
    ],
)
def test_a_block_has_a_size_a_longest_term_and_a_horizon(accelerators: int, hours: float, ahead: float, found: list[str]) -> None:
    """Each limit itself can be bought; a short run pays the shortest term and is no fault."""
    assert reasons(BLOCK, accelerators, hours, ahead) == found


def test_a_block_is_counted_in_instances() -> None:
    """64 instances of one accelerator are 64, of 16 Trainium 1,024."""
    assert reasons(BLOCK, 65, per_instance=1) == ["over_block_size"]
    assert reasons(BLOCK, 1024, per_instance=16) == []


def test_a_cluster_has_a_smallest_size() -> None:
    """16 accelerators can be had, 15 not; what is not published limits nothing."""
    assert (reasons(CLUSTER, 15), reasons(CLUSTER, 16), reasons(CLUSTER, 10**6, 10**6, 10**4)) == (["under_minimum_size"], [], [])


def test_texts_say_what_is_wrong_and_what_would_be_right() -> None:
    """The figure, its limit, whose it is, and how more is had."""
    (fault,) = commitment_faults(BLOCK, 1024, 8, 100, 0)
    assert fault.text == "1,024 accelerators are more than the 512 of one purchase: capacity block of aws; 256 instances in several"


def test_a_quote_has_a_smallest_size_and_a_last_day() -> None:
    """On its last day it can be accepted."""
    terms = OfferTerms(minimum_accelerators=64, valid_until=TODAY)
    assert quote_faults(terms, 64, TODAY) == ()
    assert [fault.reason for fault in quote_faults(terms, 8, date(2027, 1, 5))] == ["under_minimum_size", "quote_expired"]


@given(st.integers(1, 5000), st.floats(0, 10_000), st.floats(-100, 400), st.integers(1, 16))
def test_less_never_has_more_faults(accelerators: int, hours: float, ahead: float, per_instance: int) -> None:
    """A block that can be bought can be bought smaller, shorter and sooner."""
    whole = set(reasons(BLOCK, accelerators, hours, ahead, per_instance))
    assert set(reasons(BLOCK, max(1, accelerators // 2), hours / 2, ahead - 1, per_instance)) <= whole
