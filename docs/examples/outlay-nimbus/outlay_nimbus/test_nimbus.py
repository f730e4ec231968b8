"""Nimbus does what the service relies on, and what its own answer needs."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from outlay_nimbus import Nimbus
from providers.testing import ProviderConformance, RecordedAnswer
from service.presets.hardware.accelerators import canonical_accelerator

H100 = {"type": "n8", "region": "north", "gpu": "H100 SXM", "gpu_memory_gb": 80, "gpus": 8, "cents_per_hour": 1999, "free": 3}
URL = "https://api.nimbus.example/v1/machines"


class TestNimbus(ProviderConformance):
    """The inherited tests, and one of its own."""

    provider = Nimbus
    env: ClassVar = {"NIMBUS_API_KEY": "key"}
    answers = (RecordedAnswer(URL, {"machines": [H100, {**H100, "region": "south", "free": 0}, {**H100, "os": "windows"}]}),)

    @staticmethod
    def canonical(label: str, memory_gb: float | None) -> str | None:
        """The service's own names."""
        return canonical_accelerator(label, memory_gb)

    def test_cents_of_the_machine_become_dollars_of_the_machine(self) -> None:
        """Price and stock are different things."""
        found = {offer.region: (offer.usd_per_hour, offer.availability) for offer in self.fetched().offers}
        assert found == {"north": (Decimal("19.99"), "live"), "south": (Decimal("19.99"), "listed")}
