"""Verda (formerly DataCrunch): prices of whole instances as text, and stock by location, separate for spot.

https://api.verda.com/v1/docs: OAuth2 client credentials, then instance types, availability twice, locations and long-term periods. The
memory of an instance is that of all its accelerators. A period's price is the on-demand price less its discount, paid at its start
(https://docs.verda.com, pricing and billing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.common import isolate_part
from providers.offer import NO_TERMS, Fetched, OfferTerms, Pricing, ProviderError
from providers.row_parsing import (
    ANY_REGION,
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_list,
    expect_object,
    get_count,
    get_object,
    get_text,
    get_texts,
    get_usd,
    parse_decimal,
)

PRICES: tuple[tuple[Pricing, str], ...] = (("on_demand", "price_per_hour"), ("spot", "spot_price"))

HOURS_PER_MONTH = 730
PERIODS: Mapping[int, Pricing] = {12: "reserved_1y", 36: "reserved_3y"}
"""Kinds of pricing of periods by months; others are `reserved`."""

Places = Mapping[str, Sequence[str]]
"""Instance type -> codes of the locations that have it in stock."""
Sale = tuple[Pricing, Decimal, OfferTerms]
"""Kind of pricing, price [USD per hour] and terms."""


@dataclass(frozen=True, slots=True)
class Period:
    """A commitment that lowers the on-demand price by a share [1]."""

    months: int
    discount: Decimal

    @property
    def pricing(self) -> Pricing:
        """Kind of pricing."""
        return PERIODS.get(self.months, "reserved")

    @property
    def terms(self) -> OfferTerms:
        """Its terms; the length where the kind of pricing does not state it."""
        hours = float(self.months * HOURS_PER_MONTH) if self.pricing == "reserved" else None
        return OfferTerms(term_hours=hours, upfront_share=1.0)


class Verda(RemoteProvider):
    """Verda's dedicated instances, on demand, spot and for long-term periods."""

    name = "verda"
    home = "https://api.verda.com/v1"
    fresh_for = timedelta(minutes=30)
    credentials = ("VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET")

    def fetch(self) -> Fetched:
        """All instance types; without stock, countries or periods where those cannot be read. Raises ProviderError."""
        collector, headers = self.collector(), {"Authorization": f"Bearer {self._token()}"}
        types = self.http.get_json(f"{self.url}/instance-types", headers=headers)
        stock: dict[Pricing, Places] = {}
        for pricing, _ in PRICES:
            with isolate_part(collector, f"stock {pricing}"):
                params = {"is_spot": "true" if pricing == "spot" else "false"}
                answer = self.http.get_json(f"{self.url}/instance-availability", headers=headers, params=params)
                stock[pricing] = parse_stock(answer, collector)
        countries: Mapping[str, str] = {}
        with isolate_part(collector, "locations"):
            countries = parse_locations(self.http.get_json(f"{self.url}/locations", headers=headers), collector)
        periods: Sequence[Period] = ()
        with isolate_part(collector, "long-term periods"):
            periods = parse_periods(self.http.get_json(f"{self.url}/long-term/periods/instances", headers=headers), collector)
        return parse(types, stock, countries, collector, periods)

    def _token(self) -> str:
        client, secret = (self.credential(name) for name in self.credentials)
        asked = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
        token = expect_object(self.http.post_json(f"{self.url}/oauth2/token", asked), "the token's answer").get("access_token")
        if not isinstance(token, str) or not token:
            raise ProviderError("verda gave no access_token")
        return token


def parse_stock(answer: object, collector: OfferCollector) -> Places:
    """Locations with stock by instance type."""
    places: dict[str, list[str]] = defaultdict(list)
    for row in expect_list(answer, "availability"):
        with collector.row(row):
            location = get_text(row, "location_code")
            for name in get_texts(row, "availabilities"):
                if location not in places[name]:
                    places[name].append(location)
    return places


def parse_locations(answer: object, collector: OfferCollector) -> Mapping[str, str]:
    """Country code of two letters by location."""
    countries = {}
    for row in expect_list(answer, "locations"):
        with collector.row(row):
            countries[get_text(row, "code")] = get_text(row, "country_code")
    return countries


def parse_periods(answer: object, collector: OfferCollector) -> Sequence[Period]:
    """The periods that can be bought now."""
    periods: dict[int, Period] = {}
    for row in expect_list(answer, "long-term periods"):
        with collector.row(row):
            unit = get_text(row, "unit_name")
            if row.get("is_enabled") is not True:
                raise SkippedRow("long-term period not sold now")
            if unit.rstrip("s") != "month":
                raise BadRow(f"a period in {unit} where months were expected")
            percent = parse_decimal(row.get("discount_percentage"), "discount_percentage")
            if not 0 <= percent < 100:
                raise BadRow(f"discount_percentage is {percent}")
            period = Period(get_count(row, "unit_value"), percent / 100)
            periods.setdefault(period.months, period)
    return tuple(periods.values())


def parse(
    types: object,
    stock: Mapping[Pricing, Places],
    countries: Mapping[str, str],
    collector: OfferCollector,
    periods: Sequence[Period] = (),
) -> Fetched:
    """Offers of an answer: one for each location with stock, or one without region, by the hour and for each period."""
    for row in expect_list(types, "instance types"):
        with collector.row(row.get("instance_type") if isinstance(row, dict) else row):
            name, count = get_text(row, "instance_type"), _count(row)
            accelerator = _accelerator(row, count, collector)
            for pricing, field in PRICES:
                with collector.row(f"{name} {pricing}"):
                    price, places = _price(row, field), stock.get(pricing, {}).get(name, ())
                    sales = [(pricing, price, NO_TERMS)]
                    if pricing == "on_demand":
                        sales += [(period.pricing, price * (1 - period.discount), period.terms) for period in periods]
                    _add((name, accelerator, count), sales, places, countries, collector)
    return collector.fetched()


def _add(
    sold: tuple[str, str, int], sales: Sequence[Sale], places: Sequence[str], countries: Mapping[str, str], collector: OfferCollector
) -> None:
    """Add an instance type with its accelerators in each place, for each way to buy it."""
    for region in places or [ANY_REGION]:
        extras = {"country": countries[region]} if region in countries else {}
        for pricing, price, terms in sales:
            more = {"availability": "live" if places else "listed", "extras": dict(extras), "terms": terms}
            collector.add(region, sold[0], sold[1], sold[2], pricing, price, **more)


def _count(row: object) -> int:
    gpu = get_object(row, "gpu")
    if gpu.get("number_of_gpus") == 0:
        raise SkippedRow("no accelerator")
    return get_count(gpu, "number_of_gpus")


def _accelerator(row: Mapping[str, Any], count: int, collector: OfferCollector) -> str:
    total = parse_decimal(get_object(row, "gpu_memory").get("size_in_gigabytes"), "gpu_memory.size_in_gigabytes")
    return collector.accelerator(get_text(row, "name"), float(total / count))


def _price(row: Mapping[str, Any], field: str) -> Decimal:
    """Price of the whole instance [USD per hour]."""
    if get_text(row, "currency").casefold() != "usd":
        raise BadRow(f"currency is {row['currency']} where usd was expected")
    if field == "spot_price" and not row.get(field):
        raise SkippedRow("not sold as spot")
    return get_usd(row, field, get_usd(row, "price_per_hour"))
