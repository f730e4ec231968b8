"""DigitalOcean's samples against values read by hand."""

from __future__ import annotations

from decimal import Decimal

from providers.digitalocean import has_more, read
from tests.unit.providers.recorded_samples import collector, recorded


def test_droplets_with_gpus() -> None:
    """Two of three, with the memory of all eight GPUs."""
    answer, found = recorded("digitalocean/v2_sizes.json"), collector("digitalocean")
    read(answer, found)
    assert {(o.instance_type, o.region, o.accelerator, o.accelerator_count, o.usd_per_hour) for o in found.fetched().offers} == {
        ("gpu-h100x8-640gb", "nyc1", "NVIDIA-H100-80GB-SXM", 8, Decimal("23.92")),
        ("gpu-mi300x8-1536gb", "nyc1", "AMD-MI300X", 8, Decimal("15.92")),
    }
    assert {o.availability for o in found.offers} == {"offered"}
    assert not has_more(answer)


def test_the_first_of_many_pages() -> None:
    """The documentation's example has one size a page, without a GPU, and names the next."""
    answer, found = recorded("digitalocean/v2_sizes_documented_example.json"), collector("digitalocean")
    read(answer, found)
    assert has_more(answer)
    assert (found.offers, found.skipped) == ([], {"no accelerator": 1})
