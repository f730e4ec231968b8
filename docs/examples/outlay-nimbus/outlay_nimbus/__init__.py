"""Nimbus, a cloud that does not exist: prices of whole machines in cents, and how many are free in each region."""

from __future__ import annotations

from datetime import timedelta

from providers.base import RemoteProvider
from providers.offer import Availability, Fetched
from providers.row_parsing import NotForUs, Reading, cents, mapping, rows, text, whole


class Nimbus(RemoteProvider):
    """Nimbus' price list; the stock in it changes by the hour."""

    name = "nimbus"
    home = "https://api.nimbus.example"
    fresh_for = timedelta(hours=1)
    credentials = ("NIMBUS_API_KEY",)

    def fetch(self) -> Fetched:
        """All machines. Raises ProviderError."""
        headers = {"Authorization": f"Bearer {self.credential('NIMBUS_API_KEY')}"}
        return parse(self.http.get_json(f"{self.url}/v1/machines", headers=headers), self.reading())


def parse(answer: object, reading: Reading) -> Fetched:
    """The offers of an answer, one for each machine and region."""
    for machine in rows(mapping(answer, "the answer").get("machines"), "machines"):
        with reading.row(machine.get("type") if isinstance(machine, dict) else "a machine"):
            _read(machine, reading)
    return reading.fetched()


def _read(machine: dict[str, object], reading: Reading) -> None:
    instance_type = text(machine, "type")
    if machine.get("os") == "windows":
        raise NotForUs("Windows")
    free = machine.get("free")
    availability: Availability = "live" if isinstance(free, int) and free > 0 else "listed"
    reading.add(
        region=text(machine, "region"),
        instance_type=instance_type,
        accelerator=reading.accelerator(text(machine, "gpu"), whole(machine, "gpu_memory_gb")),
        accelerator_count=whole(machine, "gpus"),
        pricing="on_demand",
        usd_per_hour=cents(machine.get("cents_per_hour"), "cents_per_hour"),
        availability=availability,
    )
