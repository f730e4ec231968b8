"""Prices of single teams. Readers name the team."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from service.store.database import Database
from service.store.tables import team_price_history, team_prices


@dataclass(frozen=True, slots=True)
class TeamPrices:
    """A team's present own prices: the snapshot, and counts and examples of its rows."""

    team: str
    snapshot: str
    offers: int = 0
    rejected_count: int = 0
    rejected: Sequence[Mapping[str, Any]] = ()
    suspicious_count: int = 0
    suspicious: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TeamPriceChanges:
    """All present team prices, and by team the resulting rows of history."""

    prices: Sequence[TeamPrices]
    history: Mapping[str, Sequence[Mapping[str, Any]]]


class TeamPriceRows(Database):
    """Statements for team prices."""

    def team_prices(self, team: str | None = None) -> dict[str, TeamPrices]:
        """Own prices of the team, by its name; of every team for None, which only operators may see."""
        query = select(team_prices).order_by(team_prices.c.team)
        if team is not None:
            query = query.where(team_prices.c.team == team)
        return {prices.team: prices for prices in self._list(TeamPrices, query)}


def save_team_prices(connection: Connection, owned: TeamPriceChanges) -> None:
    """Replace all team prices; the caller holds the lock."""
    connection.execute(delete(team_prices))
    if owned.prices:
        connection.execute(insert(team_prices), [asdict(prices) for prices in owned.prices])
    for team, changes in owned.history.items():
        if changes:
            last = connection.scalar(select(func.min(team_price_history.c.id)).where(team_price_history.c.team == team)) or 0
            rows = [{**change, "team": team, "id": last - n} for n, change in enumerate(changes, start=1)]
            connection.execute(insert(team_price_history), rows)
