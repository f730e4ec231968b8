"""Terms under which providers sell commitments, and what rules one out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

CommitmentReason = Literal["over_block_size", "under_minimum_size", "over_longest_term", "beyond_booking_horizon", "quote_expired"]
COMMITMENT_REASONS: tuple[CommitmentReason, ...] = get_args(CommitmentReason)


@dataclass(frozen=True, slots=True)
class CommitmentProduct:
    """A commitment that a provider sells, with its terms; None where none is published.

    `holds_capacity`: the accelerators are held for the buyer; otherwise it is a discount on what happens to be free. `pricings`: kinds of
    pricing it is sold under; `vendor`: of the accelerators, empty for any. `max_instances` and `max_accelerators` are those of one
    purchase, `several` says how more is had. `upfront_share` of the term's price is paid at its start [1].
    """

    name: str
    provider: str
    pricings: tuple[str, ...]
    holds_capacity: bool
    source: str
    vendor: str = ""
    min_accelerators: int | None = None
    max_instances: int | None = None
    max_accelerators: int | None = None
    several: str = ""
    min_term_hours: float | None = None
    max_term_hours: float | None = None
    booking_horizon_days: float | None = None
    upfront_share: float | None = None

    def most_accelerators(self, accelerators_per_instance: int) -> float:
        """Accelerators of one purchase; infinite where no limit is published."""
        by_instances = float("inf") if self.max_instances is None else self.max_instances * accelerators_per_instance
        return min(by_instances, float("inf") if self.max_accelerators is None else self.max_accelerators)


@dataclass(frozen=True, slots=True)
class CommitmentFault:
    """A reason why a purchase cannot be made under its terms, and its text."""

    reason: CommitmentReason
    text: str
