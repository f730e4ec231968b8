"""Nimbus, a cloud that does not exist: prices of whole machines in cents, and how many are free in each region."""

from __future__ import annotations

from datetime import timedelta

from providers.base import RemoteProvider
from providers.offer import Availability, Fetched
from providers.row_parsing import OfferCollector, SkippedRow, expect_list, expect_object, get_count, get_text, parse_usd_cents


class Nimbus(RemoteProvider):
    """Nimbus' price list; the stock in it changes by the hour."""

    name = "nimbus"
    home = "https://api.nimbus.example"
    fresh_for = timedelta(hours=1)
    credentials = ("NIMBUS_API_KEY",)

    def fetch(self) -> Fetched:
        """All machines. Raises ProviderError."""
        headers = {"Authorization": f"Bearer {self.credential('NIMBUS_API_KEY')}"}
        return parse(self.http.get_json(f"{self.url}/v1/machines", headers=headers), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer, one for each machine and region."""
    for machine in expect_list(expect_object(answer, "the answer").get("machines"), "machines"):
        with collector.row(machine.get("type") if isinstance(machine, dict) else "a machine"):
            _read(machine, collector)
    return collector.fetched()


def _read(machine: dict[str, object], collector: OfferCollector) -> None:
    instance_type = get_text(machine, "type")
    if machine.get("os") == "windows":
        raise SkippedRow("Windows")
    free = machine.get("free")
    availability: Availability = "live" if isinstance(free, int) and free > 0 else "listed"
    collector.add(
        region=get_text(machine, "region"),
        instance_type=instance_type,
        accelerator=collector.accelerator(get_text(machine, "gpu"), get_count(machine, "gpu_memory_gb")),
        accelerator_count=get_count(machine, "gpus"),
        pricing="on_demand",
        usd_per_hour=parse_usd_cents(machine.get("cents_per_hour"), "cents_per_hour"),
        availability=availability,
    )
