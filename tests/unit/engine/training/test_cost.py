"""Money: exact lines that add up, and what moves with the hours."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.training.estimate import LineBlock
from service.domain.training.run import Billing, Energy, Network, Overhead, Personnel, Run, Storage
from service.engine.numerics.money import CENT, cents
from service.engine.training.cost import cost_lines, paid_hours, total_usd
from service.engine.training.reliability import checkpoint_interval_hours
from tests.unit.engine.builders import cluster, failures, run

EVERYTHING = run(
    storage=Storage(40, 5, 6, 1, 20),
    network=Network(3, 90),
    personnel=Personnel(80, 40, 100, 90),
    overhead=Overhead(0.05, 0.03, 0.08),
    energy=Energy("owned", 480, 1.3, 700, 0, 0.09),
    failures=failures(spare_share=0.02),
    cluster=cluster(256),
)
INTERVAL_HOURS = checkpoint_interval_hours(EVERYTHING)
hours = st.floats(0.01, 1e6)


def by_name(lines: list[LineBlock]) -> dict[str, Decimal]:
    return {line.line: line.usd for line in lines}


def bill(priced: Run, wall_clock_hours: float = 1000.0) -> dict[str, Decimal]:
    return by_name(cost_lines(priced, wall_clock_hours, 200.0, 0.1, checkpoint_interval_hours(priced)))


@given(hours, st.floats(0.01, 1000), st.floats(0.1, 1), st.floats(1, 10))
def test_lines_add_up_to_the_cent(wall_clock: float, price: float, early: float, late: float) -> None:
    """Lines are whole cents, their sum is the total's p50, and p10 and p90 lie around it."""
    priced = replace(EVERYTHING, billing=replace(EVERYTHING.billing, usd_per_accelerator_hour=price))
    interval_hours = checkpoint_interval_hours(priced)
    lines = cost_lines(priced, wall_clock, 200.0, 0.1, interval_hours)
    total = total_usd(priced, Range(wall_clock * early, wall_clock, wall_clock * late), 200.0, 0.1, interval_hours)
    assert all(line.usd == line.usd.quantize(CENT) for line in lines)
    assert cents(total.p50) == sum(line.usd for line in lines)
    assert total.p10 <= total.p50 <= total.p90


def test_every_line_by_hand() -> None:
    """Each line is its factors' product: accelerators x hours x price, TB x months x price, kWh x price, shares of compute."""
    assert bill(EVERYTHING) == {
        "compute": Decimal("512000.00"),  # 256 x 1,000 h x 2 USD
        "spares": Decimal("16000.00"),  # 2 % of 256, to the nearest node of 8
        "storage": Decimal("6116.99"),  # 41.5 TB x (6 + 1000 / 730) months x 20 USD
        "network": Decimal("270.00"),
        "personnel": Decimal("19800.00"),
        "electricity": Decimal("18000.00"),  # 200 MWh x 0.09 USD
        "overhead: evaluation": Decimal("25600.00"),
        "overhead: debugging": Decimal("15360.00"),
        "overhead: reruns": Decimal("40960.00"),
    }


def test_lines_of_nothing_are_left_out() -> None:
    """A run with nothing beside has one line, compute, even at a price of a fraction of a cent."""
    assert list(bill(run())) == ["compute"]
    assert bill(run(billing=Billing(1e-9))) == {"compute": Decimal("0.00")}


@given(st.integers(1, 1_000_000))
def test_twice_the_price_is_twice_the_compute_line(cents_an_hour: int) -> None:
    """Compute, spares and overheads follow the price; storage, people and electricity do not."""
    price = cents_an_hour / 100
    once, twice = (bill(replace(EVERYTHING, billing=Billing(factor * price))) for factor in (1, 2))
    assert twice["compute"] == 2 * once["compute"]
    assert (twice["storage"], twice["personnel"], twice["electricity"]) == (once["storage"], once["personnel"], once["electricity"])


def test_the_total_moves_as_the_bill_of_other_hours() -> None:
    """p10 and p90 are the sums of what would be billed for so many hours, electricity with them."""
    total = total_usd(EVERYTHING, Range(500, 1000, 2000), 200.0, 0.1, INTERVAL_HOURS)
    assert cents(total.p10) == sum(line.usd for line in cost_lines(EVERYTHING, 500.0, 100.0, 0.1, INTERVAL_HOURS))
    assert cents(total.p90) == sum(line.usd for line in cost_lines(EVERYTHING, 2000.0, 400.0, 0.1, INTERVAL_HOURS))


def test_a_reservation_is_paid_for_whole_terms() -> None:
    """1,000 h with 16 % around them use 1,160 of a year's 8,760 h; the spares stand by from the first to the last of them."""
    reserved = replace(EVERYTHING, billing=replace(EVERYTHING.billing, term_hours=8760.0))
    found = bill(reserved)
    assert found["unused commitment"] == 2 * (256 * (8760 - 1160) + 8 * (8760 - 1000))
    machine = sum(found[line] for line in found if line.startswith(("compute", "spares", "overhead", "unused")))
    assert machine == 264 * 8760 * 2


@given(hours, st.sampled_from([8760.0, 26280.0]))
def test_within_a_term_more_hours_cost_no_more_machine(wall_clock: float, term: float) -> None:
    """A longer run never makes a reservation cheaper, and one within the same terms not dearer."""
    reserved = run(billing=replace(run().billing, term_hours=term))
    longer = min(paid_hours(wall_clock, term), wall_clock * 2)
    one, other = (sum(bill(reserved, hours).values()) for hours in (wall_clock, longer))
    assert abs(other - one) <= 2 * CENT


@pytest.mark.parametrize(
    ("count", "instance_size", "spare_share", "idle"),
    [
        (8, 1, 0.0, 0),
        (4, 8, 0.0, 4),  # half an instance is paid for whole
        (12, 8, 0.0, 4),
        (16, 8, 0.0, 0),
        (8, 8, 0.02, 0),  # one node holds no spare accelerators
        (256, 1, 0.02, 8),  # 5.12 accelerators are nearest to one node
        (256, 8, 0.02, 8),
        (64, 8, 0.02, 0),  # 1.28 are nearest to none
        (100, 1, 0.1, 8),
        (64, 72, 0.0, 8),
        (512, 1024, 0.02, 512 + 8),  # spares come in nodes, however large the instance
        (1024, 1024, 0.02, 24),
    ],
)
def test_what_stands_idle_is_paid_for(count: int, instance_size: int, spare_share: float, idle: int) -> None:
    """Spares and the rest of the last instance cost what the accelerators at work cost."""
    priced = run(cluster=cluster(count), billing=Billing(2.0, instance_size=instance_size), failures=failures(spare_share=spare_share))
    assert bill(priced, 100.0).get("spares", Decimal(0)) == idle * 200


@pytest.mark.parametrize(
    ("wall_clock", "kept", "basis"),
    [
        (0.5, 1, "1 checkpoints of 0.10 TB, all that the run writes"),  # the one at its end
        (6.5, 4, "4 checkpoints of 0.10 TB, all that the run writes"),  # after 2, 4 and 6 hours, and at its end
        (10.0, 5, "5 checkpoints of 0.10 TB)"),
        (1000.0, 5, "5 checkpoints of 0.10 TB)"),
    ],
)
def test_a_run_keeps_no_more_checkpoints_than_it_writes(wall_clock: float, kept: int, basis: str) -> None:
    """Of five that are asked for a short run has fewer: one each two hours, and the last at its end."""
    storage, short = Storage(0, 5, 6, 0, 20), failures(checkpoint_interval_minutes=120.0)
    stored = run(storage=storage, failures=short)
    lines = cost_lines(stored, wall_clock, 0.0, 0.1, checkpoint_interval_hours(stored))
    line = next(line for line in lines if line.line == "storage")
    assert line.usd == cents(kept * 0.1 * (6 + wall_clock / 730) * 20)
    assert basis in line.basis


def test_who_keeps_no_checkpoints_pays_for_none() -> None:
    """Not for the last either."""
    assert "storage" not in bill(run(storage=Storage(0, 0, 6, 0, 20)), 1.0)


def test_power_is_paid_by_owners_only() -> None:
    """A cloud's price contains electricity; where the caller states a price a kWh, it is a line."""
    assert "electricity" not in bill(replace(EVERYTHING, energy=replace(EVERYTHING.energy, usd_per_kwh=None)))


@pytest.mark.parametrize(
    ("amount", "rounded"), [(0.005, "0.00"), (0.015, "0.02"), (2.675, "2.68"), (1e15, "1000000000000000.00"), (0.1 + 0.2, "0.30")]
)
def test_halves_of_a_cent_go_to_even(amount: float, rounded: str) -> None:
    """Amounts are rounded once, as they are printed, halves to even."""
    assert cents(amount) == Decimal(rounded)


def test_a_line_says_how_it_came_about() -> None:
    """Compute's basis holds accelerators, hours and price."""
    assert cost_lines(EVERYTHING, 1000.0, 200.0, 0.1, INTERVAL_HOURS)[0].basis == "256 accelerators x 1,000.0 h x 2.0000 USD"
