"""What teams have of their own: prices that count for one team alone. Whoever reads them names the team."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from service.store.database import Database
from service.store.tables import team_price_history, team_prices


@dataclass(frozen=True, slots=True)
class TeamPrices:
    """A team's own prices as they are now, by the team's name: the snapshot, and what was said of the rows that were read for it."""

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
    """All that teams have of their own from now on, and by team's name the rows of history that make the difference."""

    prices: Sequence[TeamPrices]
    history: Mapping[str, Sequence[Mapping[str, Any]]]


class TeamPriceRows(Database):
    """The part of the store that remembers whose prices are not everybody's."""

    def team_prices(self, team: str | None = None) -> dict[str, TeamPrices]:
        """What the team of that name has of its own, by its name; None: what every team has, for who may see all of it."""
        query = select(team_prices).order_by(team_prices.c.team)
        if team is not None:
            query = query.where(team_prices.c.team == team)
        with self._read() as connection:
            found = connection.execute(query).mappings()
            return {row["team"]: TeamPrices(**row) for row in found}


def save_team_prices(connection: Connection, owned: TeamPriceChanges) -> None:
    """Put what teams have in the place of what they had; the caller sees to it that nobody else does so meanwhile."""
    connection.execute(delete(team_prices))
    if owned.prices:
        connection.execute(insert(team_prices), [asdict(prices) for prices in owned.prices])
    for team, changes in owned.history.items():
        if changes:
            last = connection.scalar(select(func.min(team_price_history.c.id)).where(team_price_history.c.team == team)) or 0
            rows = [{**change, "team": team, "id": last - n} for n, change in enumerate(changes, start=1)]
            connection.execute(insert(team_price_history), rows)
