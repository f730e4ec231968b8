"""A price's distribution from its history: each price by how long it was asked."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import delete, insert

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.store.tables import price_history, team_price_history
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.machine import resolve_machine
from service.usecases.resolution.price import Price
from service.usecases.scenarios import monte_carlo
from tests.unit.usecases.scenarios.test_monte_carlo import CERTAIN_RUN, PRICE, asked

OFFERED = {name: section for name, section in CERTAIN_RUN.items() if name != "price"}
HISTORY: dict[str, Any] = {PRICE: {"history": {"days": 30}}}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def remember(context: AppContext, price: Price, usd: Decimal | None, at: datetime, asked_of: str = "cloud") -> None:
    """A change of the offer's price, as a refresh keeps it: of the whole instance."""
    with context.store._write() as connection:
        connection.execute(insert(price_history), [row_of(price, usd, at) | {"asked": asked_of}])


def remember_own(context: AppContext, price: Price, *changes: tuple[Decimal | None, datetime]) -> None:
    """Changes of what the offer costs one team alone, the first one first."""
    rows = [row_of(price, usd, at) | {"asked": "file", "team": "vision", "id": -n} for n, (usd, at) in enumerate(changes, start=1)]
    with context.store._write() as connection:
        connection.execute(insert(team_price_history), rows)


def row_of(price: Price, usd: Decimal | None, at: datetime) -> dict[str, Any]:
    """The row of a change, without who said so."""
    return {
        "provider": price.provider,
        "region": price.region,
        "instance_type": price.instance_type,
        "accelerator": price.accelerator,
        "accelerator_count": price.accelerators_per_instance,
        "pricing": price.pricing,
        "market": price.market,
        "usd_per_hour": None if usd is None else usd * price.accelerators_per_instance,
        "availability": "unknown",
        "observed_at": at,
        "source": "seen",
    }


def field_of(context: AppContext, days: int = 30) -> dict[str, Any]:
    prepared = monte_carlo.prepare(context, asked(OFFERED, distributions={PRICE: {"history": {"days": days}}}))
    found: dict[str, Any] = prepared.request["fields"][0]["stated"]
    return found


def test_prices_are_weighed_by_how_long_they_were_asked(context: AppContext) -> None:
    """2 USD for ten days, nothing for five, 4 USD for five; what another source says of it is left aside."""
    price, now = resolve_machine(context, asked(OFFERED).base, AssumptionLog()).price, context.clock()
    for usd, days in ((Decimal(2), 20), (None, 10), (Decimal(4), 5)):
        remember(context, price, usd, now - timedelta(days=days))
    remember(context, price, Decimal(9), now - timedelta(days=7), asked_of="another")
    found = field_of(context)
    assert found["choice"] == [2.0, 4.0]
    assert found["weights"][0] / found["weights"][1] == pytest.approx(2.0, rel=1e-3)


class TestOfATeam:
    @pytest.fixture(autouse=True)
    def own(self, context: AppContext) -> None:
        """2 USD for ten days and then 4, of one team alone; everybody's price file said 9 before and after."""
        price, now = resolve_machine(context, asked(OFFERED).base, AssumptionLog()).price, context.clock()
        remember_own(context, price, *((Decimal(usd), now - timedelta(days=days)) for usd, days in ((2, 20), (4, 10))))
        for usd, days in ((Decimal(9), 25), (Decimal(8), 5)):
            remember(context, price, usd, now - timedelta(days=days), asked_of="file")

    def test_its_own_prices_alone_are_its_history(self, context: AppContext) -> None:
        """Not those that all see, of the same file provider, though newer."""
        assert field_of(context.priced_for("vision"))["choice"] == [2.0, 4.0]
        assert field_of(context.priced_for("speech"))["choice"] == [8.0, 9.0]

    def test_a_newer_list_price_does_not_take_its_place(self, context: AppContext) -> None:
        """The team goes on paying its own; one that has not moved has no distribution, whatever the list price does."""
        price, now = resolve_machine(context, asked(OFFERED).base, AssumptionLog()).price, context.clock()
        remember(context, price, Decimal(7), now - timedelta(days=1))
        assert field_of(context.priced_for("vision"))["choice"] == [2.0, 4.0]
        with pytest.raises(InvalidRequest, match="last 15 days"):
            field_of(context.priced_for("vision"), days=15)

    def test_where_its_book_is_gone_it_has_everybodys(self, context: AppContext) -> None:
        """Which is what it pays now."""
        price, now = resolve_machine(context, asked(OFFERED).base, AssumptionLog()).price, context.clock()
        gone = (None, now - timedelta(days=1))
        with context.store._write() as connection:
            connection.execute(delete(team_price_history))
        remember_own(context, price, (Decimal(2), now - timedelta(days=20)), gone)
        assert field_of(context.priced_for("vision"))["choice"] == [8.0, 9.0]


def test_a_price_that_never_moved_has_no_distribution(context: AppContext) -> None:
    """Said so, with the days that were looked at."""
    with pytest.raises(InvalidRequest, match="last 30 days") as refused:
        field_of(context)
    assert refused.value.pointer == f"/distributions/{PRICE}"


def test_a_stated_price_has_no_history(context: AppContext) -> None:
    """Nothing to look up."""
    with pytest.raises(InvalidRequest, match="states a price"):
        monte_carlo.prepare(context, asked(CERTAIN_RUN, distributions=HISTORY))
