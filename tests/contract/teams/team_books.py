"""Teams with price books of their own: what the tests of their prices ask a service that holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import Flask

from providers.offer import Fetched
from providers.snapshot import SnapshotProvider
from service import create_app
from service.config import load_settings
from service.context import AppContext
from service.domain.jobs import ignore_progress
from service.domain.teams import SCOPES
from service.prices.catalog import PriceCatalog
from service.prices.snapshots import SnapshotRepository
from service.usecases.keys import make_key
from service.usecases.prices.refresh import refresh_prices

Body = dict[str, Any]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
AWS = {"provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "accelerator": "H100-80GB", "accelerator_count": 8}
LIST_USD = 6.88
OWN_USD = {"vision": 0.1111, "speech": 0.2727}
"""What an accelerator-hour of the same machine costs the teams that have agreed on it: less than anybody's."""
SHARED = [{**AWS, "provider": "everycloud", "pricing": "on_demand", "usd_per_hour": 500, "observed_at": "2026-10-01"}]

SHIPPED = SnapshotProvider().fetch()
FEW = [offer for offer in SHIPPED.offers if offer.provider in ("aws", "azure", "lambda") and offer.accelerator == "NVIDIA-H100-80GB-SXM"]
"""Of the shipped prices those that are asked for here."""

BASE: Body = {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"accelerator": "H100", "count": 8}}
ON_AWS = BASE | {"price": {"provider": "aws"}}
PROGRAM: Body = {"name": "p", "start": "2027-01-04", "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": BASE}]}]}
COMPARE: Body = {
    "workload": {"model": BASE["model"], "data": BASE["data"]},
    "candidates": {"accelerators": ["H100"], "counts": [8], "pricing": ["on_demand"]},
}

KEPT_OUT = ("Date", "X-Request-Id", "RateLimit")


def unpriced(example: Body) -> Body:
    """A request that leaves the price to the service."""
    return {name: value for name, value in example.items() if name != "price"}


@dataclass(frozen=True)
class Teams:
    """A service with a key for each team, and the folder of its price files."""

    app: Flask
    tokens: Mapping[str, str]
    folder: Path

    @property
    def context(self) -> AppContext:
        """The service's context."""
        context: AppContext = self.app.extensions["context"]
        return context

    def ask(self, team: str | None, path: str, body: Body | None = None, **headers: str) -> Any:
        """The answer to a team; to whoever comes where there are no keys."""
        sent = {**headers, **({"Authorization": f"Bearer {self.tokens[team]}"} if team else {})}
        return self.app.test_client().open(path, method="GET" if body is None else "POST", json=body, headers=sent)

    def good(self, team: str | None, path: str, body: Body | None = None) -> Body:
        """The body of a good answer."""
        answer = self.ask(team, path, body)
        assert answer.status_code in (200, 202), answer.text
        found: Body = answer.get_json()
        return found

    def rate(self, team: str | None, request: Body = ON_AWS) -> float:
        """What an estimate takes as the price of an accelerator-hour."""
        return float(self.good(team, "/v1/estimate", request)["price"]["usd_per_accelerator_hour"])

    def write(self, **books: object) -> None:
        """These are the price files now, and have been read."""
        for old in self.folder.iterdir():
            old.unlink()
        for name, content in books.items():
            (self.folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        told = refresh_prices(self.context, {"provider": "file", "by_hand": True}, ignore_progress)
        assert "error" not in told, told
        self.context.catalog.refresh()


def book(team: str, usd: float) -> Body:
    """A book with a price of what all know, one of what nobody else knows, a discount, and a slip."""
    rows = [
        {**AWS, "pricing": "on_demand", "usd_per_accelerator_hour": usd},
        {**AWS, "provider": f"{team}cloud", "region": f"{team}-north", "pricing": "on_demand", "usd_per_hour": 77},
        {**AWS, "pricing": f"{team} price"},
    ]
    discounts = [{"name": f"{team} discount", "percent": 10, "provider": "azure"}, {"name": f"{team} typo", "percent": 1, "provider": "x"}]
    return {"book": f"{team} agreement", "team": team, "observed_at": "2026-10-01", "prices": rows, "discounts": discounts}


BOOKS = {team: book(team, usd) for team, usd in OWN_USD.items()}


class Few(SnapshotProvider):
    """Some of the prices that ship with the project: thousands would take minutes."""

    def fetch(self) -> Fetched:
        return replace(SHIPPED, offers=tuple(FEW))


def opened(folder: Path, keyed: tuple[str, ...]) -> Teams:
    """A service on an empty SQLite database, whose clock stands, with keys of these teams."""
    files = folder / "prices"
    files.mkdir()
    env = {"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1", "OUTLAY_RATE_LIMIT": "1000000/hour", "OUTLAY_PRICE_FILES": str(files)}
    app = create_app(load_settings(env))
    context: AppContext = app.extensions["context"]
    context.store.migrate()
    tokens = {team: make_key(context, team, "k", SCOPES, "1h")[1] for team in keyed}
    providers = replace(context.providers, load=lambda name: Few() if name == "snapshot" else context.providers.load(name))
    app.extensions["context"] = replace(
        context, clock=lambda: NOW, providers=providers, catalog=PriceCatalog(SnapshotRepository(Few, context.store))
    )
    return Teams(app, tokens, files)


def plainly(answer: Any) -> tuple[int, Mapping[str, str], str]:
    """Status, headers and body without what differs between any two answers."""
    headers = {name: value for name, value in answer.headers.items() if name not in KEPT_OUT}
    return answer.status_code, headers, answer.get_data(as_text=True).replace(answer.headers["X-Request-Id"], "…")
