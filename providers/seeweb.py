"""Seeweb: prices of whole instances in euros, without tax, and the sites in Italy where each can be ordered.

GET /ecs/v2/plans, the token in X-APITOKEN; one answer, no pages. `available` says that a plan is sold, not that it is in stock. The answer
names no currency; Seeweb publishes its prices in euros (lists in dollars convert them: github.com/cloud-gpus/cloud-gpus.github.io/pull/62).
They become dollars by the day's reference rate of the European Central Bank, which stands in each offer's extras.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.offer import Fetched, ProviderError
from providers.row_parsing import (
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_object,
    get_count,
    get_decimal,
    get_list,
    get_text,
    get_usd,
    list_at,
)

ECB = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
RATE = re.compile(r"""<Cube currency=['"]USD['"] rate=['"](\d\.\d{1,6})['"]""")
MEMORY = re.compile(r"\s*\b(\d+)\s*GB$", re.IGNORECASE)


class Seeweb(RemoteProvider):
    """Seeweb's cloud servers with accelerators."""

    name = "seeweb"
    home = "https://api.seeweb.it"
    fresh_for = timedelta(hours=12)
    credentials = ("SEEWEB_API_TOKEN",)
    key_header = ("X-APITOKEN", "{}")

    def fetch(self) -> Fetched:
        """All plans. Raises ProviderError."""
        answer = self.get_json("/ecs/v2/plans")
        rate = usd_per_eur(self.http.get_text(self.context.urls.get("ecb", ECB)))
        return parse(answer, self.collector(), rate)


def usd_per_eur(page: str) -> Decimal:
    """Reference rate in the daily file of the European Central Bank [USD per EUR]. Raises ProviderError."""
    found = RATE.search(page)
    if found is None:
        raise ProviderError("the European Central Bank's file of reference rates has none of the dollar")
    return Decimal(found[1])


def parse(answer: object, collector: OfferCollector, rate: Decimal) -> Fetched:
    """Offers of an answer, one for each plan and site.

    Parameters
    ----------
    answer : object
        JSON of the price list [EUR per hour].
    collector : OfferCollector
        Gets the offers.
    rate : Decimal
        Exchange rate [USD per EUR].

    Returns
    -------
    Fetched
        Offers [USD per hour].

    Raises
    ------
    ProviderError
        The answer states an error, or no plan is understood.
    """
    content = expect_object(answer, "the answer")
    if content.get("status", "ok") != "ok":
        raise ProviderError(f"seeweb answered {str(content['status'])[:40]}: {str(content.get('message', ''))[:200]}")
    for plan in list_at(content, "plans"):
        with collector.row(plan.get("name") if isinstance(plan, dict) else "a plan"):
            _read(plan, collector, rate)
    return collector.fetched()


def _read(plan: Mapping[str, Any], collector: OfferCollector, rate: Decimal) -> None:
    name, count = get_text(plan, "name"), _count(plan)
    if plan.get("available") is not True:
        raise SkippedRow("the plan is not sold")
    accelerator = collector.accelerator(*_label(get_text(plan, "gpu_label")))
    eur = get_usd(plan, "hourly_price")
    for site in sorted({get_text(region, "location") for region in get_list(plan, "available_regions")}):
        extras = {"eur_per_hour": f"{eur:f}", "usd_per_eur": f"{rate:f}"}
        collector.add(site, name, accelerator, count, "on_demand", eur * rate, availability="offered", extras=extras)


def _count(plan: Mapping[str, Any]) -> int:
    """Accelerators of a plan, written as text. Raises SkippedRow for a plan without."""
    if not isinstance(plan, Mapping) or "gpu" not in plan:
        raise BadRow("gpu is missing")
    if get_decimal(plan, "gpu") == 0:
        raise SkippedRow("no accelerator")
    return get_count(plan, "gpu")


def _label(label: str) -> tuple[str, float | None]:
    """The accelerator's name and the memory of one device, from `A100 80GB`."""
    found = MEMORY.search(label)
    return (MEMORY.sub("", label), float(found[1])) if found else (label, None)
