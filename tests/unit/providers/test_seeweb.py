"""Seeweb: small answers in the shape of its plans, prices in euros as of 2025, with the reference rate of a day."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.offer import Fetched, ProviderError
from providers.seeweb import ECB, Seeweb
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.seeweb.it/ecs/v2/plans"
RATES = """<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope><Cube><Cube time='2025-11-28'><Cube currency='USD' rate='1.1566'/><Cube currency='JPY' rate='180.89'/></Cube></Cube>
</gesmes:Envelope>"""


def plan(name: str, gpu: str, label: str | None, price: object, *sites: str, **more: object) -> dict[str, object]:
    """One plan as the API writes it: numbers as texts."""
    regions = [{"id": 1, "location": site, "description": ""} for site in sites]
    size = {"cpu": "32", "ram": "245760", "disk": "2000", "host_type": "ECS"}
    return {
        "name": name,
        **size,
        "gpu": gpu,
        "gpu_label": label,
        "hourly_price": price,
        "available": True,
        "available_regions": regions,
        **more,
    }


PLANS = [
    plan("ECS1GPU7", "1", "L40s 48GB", 0.85, "it-fr2", "it-mi2"),
    plan("ECS2GPU3", "2", "A100 80GB", 1.98, "it-fr2"),
    plan("eCS4", "0", None, 0.063, "it-fr2", "it-mi2"),
    plan("ECS1GPU9", "1", "MI300X", 1.6, "it-fr2"),
]


class TestSeeweb(Conformance):
    """What the answer's plans become."""

    provider = Seeweb
    env = {"SEEWEB_API_TOKEN": "token"}
    answers = (RecordedAnswer(URL, {"status": "ok", "plans": PLANS}), RecordedAnswer(ECB, RATES))

    def brought(self, *plans: dict[str, object]) -> Fetched:
        """What these plans become."""
        return self.fetched((RecordedAnswer(URL, {"status": "ok", "plans": list(plans)}), RecordedAnswer(ECB, RATES)))

    def test_euros_become_dollars_once_and_exactly(self) -> None:
        """The price in euros and the rate stay with the offer."""
        (found,) = [offer for offer in self.fetched().offers if offer.instance_type == "ECS2GPU3"]
        assert (found.accelerator, found.accelerator_count) == ("NVIDIA-A100-80GB-SXM", 2)
        assert found.usd_per_hour == Decimal("1.98") * Decimal("1.1566")
        assert found.extras == {"eur_per_hour": "1.98", "usd_per_eur": "1.1566"}

    def test_a_site_where_a_plan_is_sold_is_an_offer_and_no_stock(self) -> None:
        """The answer does not know what is free."""
        found = {(o.region, o.availability) for o in self.fetched().offers if o.instance_type == "ECS1GPU7"}
        assert found == {("it-fr2", "offered"), ("it-mi2", "offered")}

    def test_a_plan_without_accelerator_is_left_out(self) -> None:
        """It is no misread row."""
        fetched = self.fetched()
        assert (dict(fetched.skipped), fetched.rejected) == ({"no accelerator": 1}, ())

    def test_a_plan_that_is_not_sold_is_left_out(self) -> None:
        """Its price is of the past."""
        fetched = self.brought(PLANS[0], plan("ECS8GPU1", "8", "H100 80GB", 20, "it-fr2", available=False))
        assert dict(fetched.skipped) == {"the plan is not sold": 1}

    def test_another_status_is_an_error_with_its_message(self) -> None:
        """Even in an answer of status 200."""
        with pytest.raises(ProviderError, match="seeweb answered error: token expired"):
            self.fetched((RecordedAnswer(URL, {"status": "error", "message": "token expired"}), RecordedAnswer(ECB, RATES)))

    def test_without_the_rate_there_are_no_prices(self) -> None:
        """A euro is not taken for a dollar."""
        with pytest.raises(ProviderError, match="reference rates has none of the dollar"):
            self.fetched((self.answers[0], RecordedAnswer(ECB, RATES.replace("USD", "CHF"))))
