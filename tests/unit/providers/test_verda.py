"""Verda: small answers in the shape of https://api.verda.com/v1/docs, prices as listed in January 2026."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from providers.offer import ProviderError
from providers.testing import mock_answers
from providers.verda import Verda
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.verda.com/v1"


def kind(name: str, model: str, gpus: int, memory: int, price: str, spot: str | None) -> dict[str, object]:
    """One instance type as the API writes it; the memory is that of all GPUs."""
    return {
        "instance_type": name,
        "name": model,
        "gpu": {"description": f"{gpus}x {model}", "number_of_gpus": gpus},
        "gpu_memory": {"description": f"{memory}GB GPU RAM", "size_in_gigabytes": memory},
        "price_per_hour": price,
        "spot_price": spot,
        "currency": "usd",
    }


TYPES = [
    kind("8H100.80S.176V", "H100 SXM5 80GB", 8, 640, "15.92", "7.96"),
    kind("8A100.40S.176V", "A100 SXM4 40GB", 8, 320, "5.77", "1.73"),
    kind("8B200.240V", "B200 SXM6 180GB", 8, 1440, "30.32", None),
    kind("CPU.4V.16G", "AMD EPYC", 0, 0, "0.10", "0.03"),
]
TOKEN = RecordedAnswer(f"{URL}/oauth2/token", {"access_token": "token", "token_type": "Bearer", "expires_in": 3600}, method="POST")
INSTANCES = RecordedAnswer(f"{URL}/instance-types", TYPES)
ON_DEMAND = RecordedAnswer(
    f"{URL}/instance-availability?is_spot=false",
    [{"location_code": place, "availabilities": ["8H100.80S.176V", "CPU.4V.16G"]} for place in ("FIN-01", "ICE-01")],
)
SPOT = RecordedAnswer(f"{URL}/instance-availability?is_spot=true", [{"location_code": "FIN-02", "availabilities": ["8H100.80S.176V"]}])
LOCATIONS = RecordedAnswer(f"{URL}/locations", [{"code": "FIN-01", "name": "Finland 1", "country_code": "FI"}])


def period(months: object, percent: object, **changes: object) -> dict[str, object]:
    """A long-term period as the API writes it."""
    row = {"code": f"{months}_MONTHS", "name": f"{months} months", "is_enabled": True, "unit_name": "month", "unit_value": months}
    return {**row, "discount_percentage": percent, **changes}


PERIODS = RecordedAnswer(f"{URL}/long-term/periods/instances", [period(6, 4.0), period(12, 8.0), period(24, 25.0, is_enabled=False)])


class TestVerda(Conformance):
    """What the answers' rows become."""

    provider = Verda
    env = {"VERDA_CLIENT_ID": "client", "VERDA_CLIENT_SECRET": "secret"}
    answers = (TOKEN, INSTANCES, ON_DEMAND, SPOT, LOCATIONS, PERIODS)

    def test_stock_is_told_apart_for_spot_and_on_demand(self) -> None:
        """Each with the places that have it."""
        offers = [o for o in self.fetched().offers if "H100" in o.instance_type and not o.term_hours]
        found = {(o.pricing, o.region, o.usd_per_hour, o.availability) for o in offers}
        assert found == {
            ("on_demand", "FIN-01", Decimal("15.92"), "live"),
            ("on_demand", "ICE-01", Decimal("15.92"), "live"),
            ("spot", "FIN-02", Decimal("7.96"), "live"),
        }

    def test_the_memory_is_that_of_all_gpus(self) -> None:
        """320 GB on eight are A100 of 40 GB."""
        (offer,) = [offer for offer in self.fetched().offers if "A100" in offer.instance_type and offer.pricing == "spot"]
        assert (offer.accelerator, offer.accelerator_count) == ("NVIDIA-A100-40GB-SXM", 8)
        assert (offer.region, offer.availability) == ("any", "listed")

    def test_without_a_spot_price_there_is_no_spot(self) -> None:
        """Null is no price."""
        found = {offer.pricing for offer in self.fetched().offers if "B200" in offer.instance_type}
        assert found == {"on_demand", "reserved", "reserved_1y"}

    def test_a_period_costs_what_on_demand_does_less_its_discount(self) -> None:
        """Paid at its start, of any length, in the same places; one that is not sold now is none."""
        offers = [o for o in self.fetched().offers if "H100" in o.instance_type and o.term_hours]
        found = {(o.region, o.pricing, o.term_hours, o.usd_per_hour, o.terms.upfront_share) for o in offers}
        assert found == {
            *((place, "reserved", 4380, Decimal("15.2832"), 1.0) for place in ("FIN-01", "ICE-01")),
            *((place, "reserved_1y", 8760, Decimal("14.6464"), 1.0) for place in ("FIN-01", "ICE-01")),
        }
        assert self.fetched().skipped["long-term period not sold now"] == 1

    @pytest.mark.parametrize(
        "broken",
        [
            period(12, None),
            period(12, 100),
            period(12, -3),
            period(0, 8.0),
            period(12, 8.0, unit_name="weeks"),
            "text",
            period(12, "eight"),
        ],
    )
    def test_a_period_that_is_not_understood_is_no_price(self, broken: object) -> None:
        """Blank is not zero; the other period and all prices by the hour stay."""
        fetched = self.fetched((*self.answers[:-1], replace(PERIODS, body=[broken, period(6, 4.0)])))
        assert {offer.pricing for offer in fetched.offers} == {"on_demand", "spot", "reserved"}
        assert len(fetched.rejected) == 1

    def test_without_periods_the_prices_by_the_hour_stay(self) -> None:
        """And those of periods known before."""
        fetched = self.fetched((*self.answers[:-1], replace(PERIODS, status=404, body="no")))
        assert {offer.pricing for offer in fetched.offers} == {"on_demand", "spot"}
        assert fetched.partial

    def test_the_country_is_told_where_it_is_known(self) -> None:
        """By the code of the location."""
        assert {offer.region: offer.extras for offer in self.fetched().offers}["FIN-01"] == {"country": "FI"}

    def test_processors_alone_are_left_out(self) -> None:
        """They train nothing."""
        assert self.fetched().skipped["no accelerator"] == 1

    def test_another_currency_is_no_price_in_dollars(self) -> None:
        """A number in euros would be a wrong number."""
        with pytest.raises(ProviderError, match="currency is eur"):
            self.fetched((TOKEN, replace(INSTANCES, body=[TYPES[0] | {"currency": "eur"}]), ON_DEMAND, SPOT, LOCATIONS, PERIODS))

    def test_a_spot_price_above_on_demand_is_rejected_alone(self) -> None:
        """The price on demand stays."""
        fetched = self.fetched((TOKEN, replace(INSTANCES, body=[TYPES[0] | {"spot_price": "16"}]), ON_DEMAND, SPOT, LOCATIONS, PERIODS))
        assert [rejected.row for rejected in fetched.rejected] == ["8H100.80S.176V spot"]
        assert {offer.pricing for offer in fetched.offers} == {"on_demand", "reserved", "reserved_1y"}

    def test_prices_stay_where_stock_and_places_cannot_be_read(self) -> None:
        """Each call that fails is named."""
        broken = tuple(replace(answer, status=500, body="oops") for answer in (ON_DEMAND, SPOT, LOCATIONS))
        fetched = self.fetched((TOKEN, INSTANCES, *broken, PERIODS))
        assert [rejected.row for rejected in fetched.rejected] == ["stock on_demand", "stock spot", "locations"]
        assert {offer.availability for offer in fetched.offers} == {"listed"}

    def test_the_secret_goes_for_a_token_and_the_token_with_every_question(self) -> None:
        """OAuth 2 client credentials."""
        with mock_answers(self.answers) as mock:
            self.make().fetch()
            first, *others = mock.calls
        assert json.loads(first.request.body or "") == {
            "grant_type": "client_credentials",
            "client_id": "client",
            "client_secret": "secret",
        }
        assert {call.request.headers["Authorization"] for call in others} == {"Bearer token"}
