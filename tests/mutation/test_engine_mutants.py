"""The engine's unit tests notice what goes wrong in the engine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.mutation.mutants import sample, unnoticed

TRIED = 100
GOAL = 0.95
LEAST = 0.81
"""To be raised with the share: where tests notice 90 %, as in 160 fresh changes, fewer than 81 of 100 are noticed in 2 nights of 1,000."""


@pytest.mark.soak
def test_unit_tests_notice_changed_operators() -> None:
    """Times for divide, plus for minus, less for greater or equal, min for max, `and` for `or`: another sample each day."""
    seed = datetime.now(UTC).date().toordinal()
    alive = unnoticed(sample(TRIED, seed))
    print(f"{TRIED - len(alive)} of {TRIED} changes noticed with seed {seed}; the goal is {GOAL:.0%}")  # noqa: T201 - what the soak is run for
    assert len(alive) <= (1 - LEAST) * TRIED, [mutant.told for mutant in alive]
