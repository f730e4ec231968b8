"""Grid carbon, PUE and power: sourced, plausible, and honest about what stands in for what."""

from __future__ import annotations

import re

import pytest

from service.domain.errors import UnknownName
from service.domain.training.hardware import Accelerator
from service.presets.hardware.accelerators import load_accelerators
from service.presets.hardware.energy import electricity_price, find_power
from service.presets.hardware.regions import Region, find_region, load_regions, region_of_offer
from tests.support.rows import for_each

REGIONS = list(load_regions().values())
CLOUD_REGIONS = [region for region in REGIONS if ":" in region.key and not region.key.startswith("country:")]

every_part = for_each("part", load_accelerators().values(), ids=lambda part: part.name)


def test_the_large_clouds_are_covered() -> None:
    """More than 120 cloud regions, Google's 44 with figures of their own, and most countries."""
    assert len(CLOUD_REGIONS) > 120
    assert sum(region.key.startswith("gcp:") and region.exact for region in CLOUD_REGIONS) == 44
    assert sum(region.key.startswith("aws:") for region in CLOUD_REGIONS) >= 33
    assert sum(region.key.startswith("azure:") for region in CLOUD_REGIONS) >= 58
    assert sum(region.key.startswith("country:") for region in REGIONS) > 190


@for_each("region", REGIONS, ids=lambda region: region.key)
def test_every_region_is_sourced_and_plausible(region: Region) -> None:
    """No grid is free of carbon nor worse than an old coal plant's 1,400 g; PUE lies between 1 and 2."""
    assert 1 < region.grid_gco2_per_kwh < 1400
    assert 1 < region.pue < 2
    assert len(region.source) > 20
    assert len(region.pue_source) > 10
    assert region.place
    assert region.year is None or 2009 <= region.year <= 2026
    assert region.key in {"world", "on_prem"} or re.fullmatch("[A-Z]{3}", region.country)


@pytest.mark.parametrize(
    ("key", "grid", "pue"),
    [
        ("gcp:us-central1", 412.72, 1.11),
        ("gcp:europe-north2", 2.73, 1.1),
        ("aws:us-east-1", 415.755, 1.14),
        ("aws:eu-north-1", 8, 1.14),
        ("azure:eastus", 415.755, 1.18),
        ("azure:finlandcentral", 77, 1.18),
        ("azure:germanywestcentral", 402, 1.18),
        ("country:FRA", 56.039, 1.25),
        ("country:FR", 56.039, 1.25),
        ("GCP:US-Central1", 412.72, 1.11),
        ("world", 480.6, 1.25),
        ("on_prem", 480.6, 1.63),
    ],
)
def test_known_regions_have_their_published_figures(key: str, grid: float, pue: float) -> None:
    """Tons a kWh are grams here, the two lost decimal points are restored, and keys are case-blind."""
    region = find_region(key)
    assert region.grid_gco2_per_kwh == pytest.approx(grid)
    assert region.pue == pue


def test_a_place_on_a_known_grid_takes_its_figure_and_says_so() -> None:
    """Montréal runs on Québec's hydropower, not on Canada's average."""
    region = find_region("aws:ca-central-1")
    assert region.grid_gco2_per_kwh == find_region("gcp:northamerica-northeast1").grid_gco2_per_kwh
    assert not region.exact
    assert region.source.startswith("same grid as gcp:northamerica-northeast1")


def test_a_place_without_a_figure_takes_its_country_and_says_so() -> None:
    """Hyderabad has no figure of its own in the sources."""
    region = find_region("aws:ap-south-2")
    assert region.grid_gco2_per_kwh == find_region("country:IND").grid_gco2_per_kwh
    assert not region.exact
    assert "average of India" in region.source


@pytest.mark.parametrize(
    ("key", "near"), [("gcp:us-centrall", "gcp:us-central1"), ("aws:us-east-9", "aws:us-east-2"), ("country:FRX", "country:FRA")]
)
def test_an_unknown_region_is_answered_with_near_ones(key: str, near: str) -> None:
    """Three known keys, at the field's pointer."""
    with pytest.raises(UnknownName) as caught:
        find_region(key)
    assert caught.value.pointer == "/energy/region"
    assert len(caught.value.near) == 3
    assert near in caught.value.near


@pytest.mark.parametrize("key", ["", "x" * 100_000, "country:", "\ud800"])
def test_nonsense_is_an_unknown_region(key: str) -> None:
    """Empty and endless keys are refused with a short message."""
    with pytest.raises(UnknownName) as caught:
        find_region(key)
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    ("provider", "region", "like"),
    [
        ("gcp", "us-central1-a", "gcp:us-central1"),
        ("aws", "us-east-1-bos-1", "aws:us-east-1"),
        ("aws", "us-east-1a", "aws:us-east-1"),
        ("vast", "Norway, NO, EU", "country:NOR"),
        ("vast", "California, US, NA", "country:USA"),
        ("vast", ", CA, NA", "country:CAN"),
        ("runpod", "CA", "country:CAN"),
        ("runpod", "EU-RO-1", "country:ROU"),
        ("shadeform", "helsinki-finland-1", "country:FIN"),
        ("someone", "dc-1", "world"),
        ("someone", "", "world"),
        ("azure", "westus9", "world"),
    ],
)
def test_an_offer_falls_back_from_zone_to_country_to_world(provider: str, region: str, like: str) -> None:
    """The offer's own key is kept, the grid is the nearest known one, and it is not called exact."""
    found = region_of_offer(provider, region)
    assert found.key == f"{provider}:{region}"
    assert found.grid_gco2_per_kwh == find_region(like).grid_gco2_per_kwh
    assert not found.exact


def test_an_offer_in_a_known_region_is_that_region() -> None:
    """Nothing is replaced where the region is in the table."""
    assert region_of_offer("gcp", "us-central1") is find_region("gcp:us-central1")


def test_a_zone_keeps_its_regions_pue_and_an_unknown_place_its_providers() -> None:
    """PUE belongs to the operator, the grid to the place."""
    assert region_of_offer("gcp", "us-central1-a").pue == 1.11
    assert region_of_offer("aws", "atlantis-1").pue == 1.14
    assert region_of_offer("on_prem:dc1", "").pue == 1.63


@every_part
def test_every_accelerator_has_a_power(part: Accelerator) -> None:
    """Mean draw with the node lies between half the TDP and twice it, and estimates say that they are."""
    power = find_power(part)
    assert power.estimated == (part.tdp_w is None and power.tdp_w is not None)
    assert len(power.source) > 20
    if part.tdp_w is not None:
        assert 0.5 * part.tdp_w <= power.watts.p50 <= 2 * part.tdp_w
    if power.estimated:
        assert power.watts.p90 >= 3 * power.watts.p10


def test_rated_power_follows_the_published_server_model() -> None:
    """Epoch's H100: 0.7 kW x 1.821 x 0.75 = 0.956 kW; A100: 0.4 x 2.031 x 0.75 = 0.609 kW."""
    assert find_power(load_accelerators()["NVIDIA-H100-80GB-SXM"]).watts.p50 == pytest.approx(956, rel=0.001)
    assert find_power(load_accelerators()["NVIDIA-A100-80GB-SXM"]).watts.p50 == pytest.approx(609, rel=0.001)


def test_measured_power_is_preferred_to_rated() -> None:
    """GPT-3's V100 drew 330 W with its host, PaLM's TPU v4 378.5 W."""
    assert find_power(load_accelerators()["NVIDIA-V100-16GB-SXM2"]).watts.p50 == 330
    assert find_power(load_accelerators()["Google-TPU-v4"]).watts.p90 == 378.5


def test_electricity_costs_the_newest_known_average() -> None:
    """US industry paid 8.26 cents in 2025."""
    price = electricity_price()
    assert (price.usd_per_kwh, price.year) == (0.0826, 2025)
    assert price.source


@pytest.mark.parametrize("key", ["crusoe:any", "coreweave:north-america", "aws:us-east-1a", "vastai:Alberta, CA, NA"])
def test_an_offers_region_can_be_stated_back(key: str) -> None:
    """Its figures are those of the offer."""
    provider, _, place = key.partition(":")
    assert find_region(key) == region_of_offer(provider, place)
    assert find_region(key).key == key


@pytest.mark.parametrize("key", ["aws:us-esat-1", "aws:", ":any", "country:any", "aws:us-east-10", "anywhere"])
def test_a_place_that_may_be_misspelt_is_refused(key: str) -> None:
    """It would be the world's average without a word."""
    with pytest.raises(UnknownName):
        find_region(key)
