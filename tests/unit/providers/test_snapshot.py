"""The snapshot's file format, and what holds for every row that ships."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from statistics import median

import pytest

from providers.offer import PRICINGS, Offer, ProviderError
from providers.snapshot import COLUMNS, SnapshotProvider, packaged_sources, parse

HEADER = ",".join(COLUMNS)
GOOD = "azure,eastus,Standard_ND96isr_H100_v5,NVIDIA-H100-80GB-SXM,8,on_demand,98.32,2026-09-16,api,list"
SOURCES = {"api": "Azure Retail Prices API, 2026-09-16"}
SCALING = {
    "gcp": r"(tpu-v[456].*|a[23]-.*)",
    "lambda": r".*",
    "runpod": r".*",
    "azure": r"Standard_NC\d+ads_A100_v4",
    "verda": r".*",
    "oci": r".*",
}


@pytest.fixture(scope="module")
def shipped() -> tuple[Offer, ...]:
    """Every offer of the packaged snapshot, and none rejected."""
    fetched = SnapshotProvider().fetch()
    assert fetched.rejected == ()
    return fetched.offers


def price_of(offers: tuple[Offer, ...], provider: str, region: str, instance_type: str, pricing: str = "on_demand") -> Decimal:
    found = [o for o in offers if (o.provider, o.region, o.instance_type, o.pricing) == (provider, region, instance_type, pricing)]
    assert len(found) == 1
    return found[0].usd_per_hour


def by_thing(offers: tuple[Offer, ...]) -> dict[tuple[str, str, str, str, int], dict[str, Offer]]:
    """Offers of one instance type in one region, by pricing."""
    things: dict[tuple[str, str, str, str, int], dict[str, Offer]] = defaultdict(dict)
    for o in offers:
        things[(o.provider, o.region, o.instance_type, o.accelerator, o.accelerator_count)][o.pricing] = o
    return things


class TestParse:
    def test_a_row_becomes_an_offer_with_its_readable_source(self) -> None:
        """All ten columns arrive, the date as midnight UTC and the price exactly."""
        (offer,) = parse(f"{HEADER}\n{GOOD}\n", SOURCES).offers
        assert offer == Offer(
            "azure", "eastus", "Standard_ND96isr_H100_v5", "NVIDIA-H100-80GB-SXM", 8, "on_demand",
            Decimal("98.32"), datetime(2026, 9, 16, tzinfo=UTC), SOURCES["api"],
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ("98.32", "0", "above zero"),
            ("98.32", "-1", "above zero"),
            ("98.32", "NaN", "above zero"),
            ("98.32", "cheap", "ConversionSyntax|not a number"),
            (",8,", ",0,", "at least one"),
            (",8,", ",0.5,", "invalid literal"),
            ("on_demand", "lease", "unknown pricing"),
            (",list", ",bazaar", "unknown pricing, market"),
            (",api,", ",hearsay,", "unknown pricing, market or source"),
            ("2026-09-16", "yesterday", "does not match format"),
            ("eastus", "", "filled fields"),
            (",list", "", "filled fields"),
            (",list", ",list,extra", "filled fields"),
        ],
    )
    def test_a_malformed_row_is_named_and_costs_no_other_row(self, old: str, new: str, reason: str) -> None:
        """It is never a zero price, and the good row beside it stays."""
        bad = GOOD.replace(old, new)
        fetched = parse(f"{HEADER}\n{bad}\n{GOOD}\n", SOURCES)
        assert len(fetched.offers) == 1
        assert [rejected.row for rejected in fetched.rejected] == [bad]
        assert re.search(reason, fetched.rejected[0].reason)

    def test_the_name_holds_the_newest_date_and_a_digest_of_the_content(self) -> None:
        """Same text, same name; another price, another name."""
        older = GOOD.replace("2026-09-16", "2024-05-01").replace("eastus", "westus")
        first = parse(f"{HEADER}\n{older}\n{GOOD}\n", SOURCES).snapshot
        assert re.fullmatch(r"snapshot-2026-09-16-[0-9a-f]{8}", first)
        assert first == parse(f"{HEADER}\n{older}\n{GOOD}\n", SOURCES).snapshot
        assert first != parse(f"{HEADER}\n{older}\n{GOOD.replace('98.32', '98.33')}\n", SOURCES).snapshot

    @pytest.mark.parametrize("text", ["", "a,b\n1,2\n", f"{HEADER}\n", f"{HEADER}\n{GOOD.replace('98.32', '0')}\n"])
    def test_a_file_without_one_readable_offer_is_an_error(self, text: str) -> None:
        """An empty catalogue would look like a world without prices."""
        with pytest.raises(ProviderError, match="price snapshot"):
            parse(text, SOURCES)


class TestProvider:
    def test_a_built_snapshot_is_read_from_its_folder(self, tmp_path: Path) -> None:
        """A folder with the two files stands in for the packaged ones."""
        (tmp_path / "snapshot.csv").write_text(f"{HEADER}\n{GOOD}\n")
        (tmp_path / "snapshot_sources.csv").write_text("key,observed_at,source,licence\napi,2026-09-16,A price page,none\n")
        assert [offer.source for offer in SnapshotProvider(folder=tmp_path).fetch().offers] == ["A price page"]

    def test_a_missing_file_is_a_provider_error(self, tmp_path: Path) -> None:
        """So that the last good prices stay in use."""
        with pytest.raises(ProviderError, match="cannot be read"):
            SnapshotProvider(folder=tmp_path).fetch()


class TestShippedFile:
    @pytest.mark.parametrize(
        ("provider", "region", "instance_type", "usd"),
        [
            ("azure", "eastus", "Standard_ND96isr_H100_v5", "98.32"),
            ("aws", "us-east-1", "p5.48xlarge", "55.04"),
            ("aws", "us-east-1", "p4d.24xlarge", "21.957642"),
            ("lambda", "us-east-1", "gpu_8x_h100_sxm5", "31.92"),
            ("lambda", "us-east-1", "gpu_8x_b200_sxm6", "53.52"),
            ("coreweave", "north-america", "hgx-h100", "49.24"),
            ("gcp", "us-east5", "tpu-v5p-8", "16.8"),
        ],
    )
    def test_known_list_prices_are_there_to_the_cent(
        self, shipped: tuple[Offer, ...], provider: str, region: str, instance_type: str, usd: str
    ) -> None:
        """Prices that were read at their source on their own."""
        assert price_of(shipped, provider, region, instance_type) == Decimal(usd)

    def test_at_least_ten_clouds_and_each_kind_of_pricing_it_holds(self, shipped: tuple[Offer, ...]) -> None:
        """On-demand, spot and reserved of many clouds, with list prices, marketplaces and auction floors told apart."""
        assert len({o.provider for o in shipped}) >= 10
        assert {o.pricing for o in shipped} == {"on_demand", "spot", "reserved_1y"} <= set(PRICINGS)
        assert {o.provider: o.market for o in shipped if o.market != "list"} == {"vast": "marketplace", "mithril": "auction_floor"}

    def test_every_price_is_finite_and_above_zero(self, shipped: tuple[Offer, ...]) -> None:
        """And inside what one accelerator-hour was ever listed for."""
        assert all(Decimal("0.02") < o.usd_per_accelerator_hour < 60 for o in shipped)

    def test_accelerators_have_canonical_names(self, shipped: tuple[Offer, ...]) -> None:
        """Vendor first, then the part; no cloud's own spelling."""
        pattern = re.compile(r"(NVIDIA|AMD|Google|Intel|AWS)-[A-Z][A-Za-z0-9-]+")
        assert {o.accelerator for o in shipped if not pattern.fullmatch(o.accelerator)} == set()

    def test_every_name_is_in_the_accelerator_catalogue(self, shipped: tuple[Offer, ...]) -> None:
        """An offer of an unknown part could never be estimated."""
        accelerators = pytest.importorskip("service.presets.hardware.accelerators")
        assert {o.accelerator for o in shipped} <= set(accelerators.load_accelerators())

    def test_no_thing_has_two_prices(self, shipped: tuple[Offer, ...]) -> None:
        """One row for a provider's instance type, accelerator and pricing in a region."""
        keys = [(o.provider, o.region, o.instance_type, o.accelerator, o.pricing) for o in shipped]
        assert len(keys) == len(set(keys))

    def test_rows_are_sorted_and_the_file_small(self) -> None:
        """So that a new snapshot is a readable difference."""
        text = (files("providers") / "data" / "snapshot.csv").read_text(encoding="utf-8")
        keys = [(*row[:4], int(row[4]), row[5]) for row in list(csv.reader(text.splitlines()))[1:]]
        assert keys == sorted(keys)
        assert len(text) < 1_500_000

    def test_spot_and_reserved_are_at_most_the_on_demand_price(self, shipped: tuple[Offer, ...]) -> None:
        """Of the same instance type in the same region."""
        things = [prices for prices in by_thing(shipped).values() if "on_demand" in prices and len(prices) > 1]
        assert len(things) > 1000
        for prices in things:
            assert max(o.usd_per_hour for o in prices.values()) == prices["on_demand"].usd_per_hour

    def test_price_scales_with_the_count_within_a_family(self, shipped: tuple[Offer, ...]) -> None:
        """Sizes of one machine family in one region cost the same for each accelerator, within a fifth."""
        families: dict[tuple[str, ...], list[Decimal]] = defaultdict(list)
        for o in shipped:
            if re.fullmatch(SCALING.get(o.provider, "(?!)"), o.instance_type) and o.pricing == "on_demand":
                families[(o.provider, o.region, o.accelerator, re.sub(r"\d+", "#", o.instance_type))].append(o.usd_per_accelerator_hour)
        sized = {family: prices for family, prices in families.items() if len(prices) > 1}
        assert len(sized) > 50
        for family, prices in sized.items():
            middle = median(prices)
            assert all(abs(price - middle) <= middle / 5 for price in prices), family

    def test_gcp_machines_cost_more_than_their_gpus_alone(self, shipped: tuple[Offer, ...]) -> None:
        """The host is in: the cheapest on-demand region of each part stays above the GPU-only price there."""
        gpu_only = {"a2-highgpu-8g": "23.47126", "a2-ultragpu-8g": "35.39358", "a3-highgpu-8g": "78.37241", "a3-megagpu-8g": "82.75421"}
        for instance_type, usd in gpu_only.items():
            machines = [o.usd_per_hour for o in shipped if (o.instance_type, o.pricing) == (instance_type, "on_demand")]
            assert min(machines) > Decimal(usd)

    def test_gcp_sells_no_host_without_gpus(self, shipped: tuple[Offer, ...]) -> None:
        """On-demand prices for 8 H100 that are those of a commitment or of the host alone would stand below 60 USD."""
        h100 = [o.usd_per_hour for o in shipped if o.provider == "gcp" and o.instance_type == "a3-highgpu-8g" and o.pricing == "on_demand"]
        assert len(h100) >= 8
        assert min(h100) > 80

    def test_aws_prices_of_before_june_2025_are_gone_where_newer_ones_stand(self, shipped: tuple[Offer, ...]) -> None:
        """AWS cut its prices by up to 45 %: what is left of 2024 is spot, dated as such."""
        old = {o.pricing for o in shipped if o.provider == "aws" and o.observed_at.year < 2025}
        assert old == {"spot"}

    def test_every_source_key_is_in_the_source_table_and_used(self) -> None:
        """A row's short key leads to repository, commit and date; no source stands there without rows."""
        text = (files("providers") / "data" / "snapshot.csv").read_text(encoding="utf-8")
        used = {row["source"] for row in csv.DictReader(text.splitlines())}
        assert used == set(packaged_sources())
        assert all(re.search(r"20\d\d-\d\d-\d\d", line) for line in packaged_sources().values())

    def test_dates_lie_between_the_oldest_and_the_newest_catalogue(self, shipped: tuple[Offer, ...]) -> None:
        """No row claims to be newer than what it was read from."""
        dates = {o.observed_at for o in shipped}
        assert (min(dates), max(dates)) == (datetime(2024, 5, 1, tzinfo=UTC), datetime(2026, 9, 20, tzinfo=UTC))
