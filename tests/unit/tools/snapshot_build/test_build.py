"""How catalogue files become the snapshot: each reader, each trap, and which source wins."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from providers.catalog_files.model import parse_count, parse_optional_usd
from providers.row_parsing import BadRow
from providers.snapshot import parse
from service.presets.hardware.accelerators import canonical_accelerator
from tools.snapshot_build.build import READERS, BuildResult, build
from tools.snapshot_build.sources import sources

REPOSITORY = Path(__file__).parents[4]
CATALOGUES = REPOSITORY / "tests" / "data" / "catalogues"
FULL_CATALOGUES = REPOSITORY.parent / "shared" / "prices"


@pytest.fixture(scope="module")
def result() -> BuildResult:
    """The snapshot of the small catalogues."""
    return build(CATALOGUES, canonical_accelerator)


@pytest.fixture(scope="module")
def rows(result: BuildResult) -> list[dict[str, str]]:
    return list(csv.DictReader(result.snapshot_csv.splitlines()))


def only(rows: list[dict[str, str]], **wanted: str) -> dict[str, str]:
    found = select(rows, **wanted)
    assert len(found) == 1, found
    return found[0]


def select(rows: list[dict[str, str]], **wanted: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def reasons(result: BuildResult, part: str) -> set[str]:
    """Reasons given for the rejected rows whose name holds `part`."""
    return {rejected.reason for rejected in result.rejected if part in rejected.row}


class TestFigures:
    @pytest.mark.parametrize("text", ["", "  ", None])
    def test_an_empty_price_is_not_offered(self, text: str | None) -> None:
        """It is neither an error nor a price."""
        assert parse_optional_usd(text) is None

    @pytest.mark.parametrize("text", ["0", "0.00", "-1", "NaN", "inf", "on request"])
    def test_zero_and_unreadable_prices_are_unknown_never_free(self, text: str) -> None:
        """The reason travels with the error."""
        with pytest.raises(BadRow, match=r"unknown, not free|not a number"):
            parse_optional_usd(text)

    def test_a_price_keeps_its_digits_down_to_a_millionth(self) -> None:
        """Floating-point dust of a feed goes."""
        assert parse_optional_usd("4.760000000100001") == Decimal("4.76")
        assert parse_optional_usd("21.957642") == Decimal("21.957642")

    @pytest.mark.parametrize("text", ["0.167", "0", "", None, "NaN", "two"])
    def test_a_fraction_of_an_accelerator_is_no_count(self, text: str | None) -> None:
        """A sixth of an A10 trains nothing by the hour of a whole one."""
        with pytest.raises(BadRow):
            parse_count(text)

    def test_a_count_may_be_written_as_a_decimal(self) -> None:
        """Catalogues write 8 and 8.0."""
        assert parse_count("8.0") == 8


class TestAws:
    def test_spot_of_a_region_is_the_median_over_its_zones(self, rows: list[dict[str, str]]) -> None:
        """12.9954, 13.7017 and 14.1338 in three zones."""
        spot = only(rows, provider="aws", instance_type="p4d.24xlarge", region="us-east-1", pricing="spot")
        assert (spot["usd_per_hour"], spot["observed_at"]) == ("13.7017", "2024-05-01")

    def test_the_newest_source_of_an_on_demand_price_wins(self, rows: list[dict[str, str]]) -> None:
        """July 2026 over November 2025 over May 2024 in one region; November 2025 where July 2026 is silent."""
        east = only(rows, instance_type="p4d.24xlarge", region="us-east-1", pricing="on_demand")
        west = only(rows, instance_type="p4d.24xlarge", region="us-west-2", pricing="on_demand")
        assert (east["usd_per_hour"], east["source"]) == ("21.957642", "karpenter-aws")
        assert (west["usd_per_hour"], west["source"]) == ("21.95764", "aws-gpu")

    def test_a_year_older_price_does_not_survive_in_a_region_the_newer_sources_lack(self, rows: list[dict[str, str]]) -> None:
        """The 2024 price of p4d in Tokyo is from before the price cut."""
        assert select(rows, instance_type="p4d.24xlarge", region="ap-northeast-1") == []

    def test_an_old_spot_price_above_the_newer_on_demand_price_is_dropped(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """Spot of 2024 at 58.11 against on-demand of 55.04 since."""
        assert select(rows, instance_type="p5.48xlarge", pricing="spot") == []
        assert any("above on-demand (55.04" in reason for reason in reasons(result, "p5.48xlarge"))

    def test_reserved_prices_are_those_of_one_year(self, rows: list[dict[str, str]]) -> None:
        """Where the table has one; an empty field is none."""
        assert only(rows, pricing="reserved_1y", region="us-east-1")["usd_per_hour"] == "13.921094"
        assert select(rows, instance_type="p5.48xlarge", pricing="reserved_1y") == []

    def test_a_wrong_memory_figure_does_not_lose_a_known_type(self, rows: list[dict[str, str]]) -> None:
        """The catalogue states the memory of four L4 for one."""
        l4 = select(rows, instance_type="g6.12xlarge")
        assert {(row["accelerator"], row["accelerator_count"]) for row in l4} == {("NVIDIA-L4", "4")}

    def test_a_k80_is_a_board_of_two_devices(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """16 K80 of the catalogue are 8 boards, and half a board is no offer."""
        assert {row["accelerator_count"] for row in select(rows, instance_type="p2.16xlarge")} == {"8"}
        assert select(rows, instance_type="p2.xlarge") == []
        assert result.skipped["aws: half a K80 board"] == 1

    def test_inference_chips_and_fractions_are_counted_and_left_out(self, result: BuildResult) -> None:
        """Nothing disappears without a reason."""
        assert result.skipped["aws: no training accelerator"] == 1
        assert result.skipped["aws: fractional GPU"] == 2

    def test_prices_of_china_are_yuan_and_rejected(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """The column is called USD; p3.2xlarge at 36.078 is CNY."""
        assert select(rows, region="cn-north-1") == []
        assert reasons(result, "cn-north-1 p3.2xlarge") == {"price in CNY under the name USD"}


class TestAzure:
    def test_rows_with_an_eleventh_field_are_read(self, rows: list[dict[str, str]]) -> None:
        """`V1,V2` unquoted in the last column leaves the first ten in place."""
        assert only(rows, instance_type="Standard_NC24ads_A100_v4", pricing="on_demand")["usd_per_hour"] == "3.673"

    @pytest.mark.parametrize(
        ("sku", "accelerator", "count"),
        [
            ("Standard_ND128isr_NDR_GB200_v6", "NVIDIA-GB200", "4"),
            ("Standard_ND96is_MI300X_v5", "AMD-MI300X", "8"),
            ("Standard_NC40ads_H100_v5", "NVIDIA-H100-94GB-NVL", "1"),
            ("Standard_NC24ads_A100_v4", "NVIDIA-A100-80GB-PCIe", "1"),
            ("Standard_NC12", "NVIDIA-K80", "1"),
        ],
    )
    def test_accelerators_follow_from_the_sku_name(self, rows: list[dict[str, str]], sku: str, accelerator: str, count: str) -> None:
        """Whether or not the catalogue names one, and whichever variant it calls just H100."""
        found = select(rows, instance_type=sku)
        assert {(row["accelerator"], row["accelerator_count"]) for row in found} == {(accelerator, count)}

    def test_spot_without_discount_is_kept(self, rows: list[dict[str, str]]) -> None:
        """A spot price equal to on-demand is what Azure lists."""
        assert {row["usd_per_hour"] for row in select(rows, instance_type="Standard_ND96isr_H200_v5")} == {"122.96"}

    def test_a_single_newer_list_price_wins_over_the_catalogues(self, rows: list[dict[str, str]]) -> None:
        """September's answer of the price API for eastus, June's table elsewhere."""
        assert only(rows, instance_type="Standard_ND96isr_H100_v5", region="eastus", pricing="on_demand")["source"] == "listed-azure"
        australia = only(rows, instance_type="Standard_ND96isr_H100_v5", region="australiaeast", pricing="on_demand")
        assert (australia["usd_per_hour"], australia["source"]) == ("142.6", "karpenter-azure")

    def test_zero_prices_are_rejected(self, result: BuildResult) -> None:
        """The 2024 catalogue lists NC40ads H100 at 0.0."""
        assert reasons(result, "sky-azure: eastus Standard_NC40ads_H100_v5") == {"price 0.0 is unknown, not free"}

    def test_what_is_fractional_or_not_known_for_certain_is_left_out(self, result: BuildResult) -> None:
        """A sixth of an A10, and a new type whose GPU count no source states."""
        assert result.skipped["azure: fractional GPU"] == 1
        assert result.skipped["azure: accelerator of this type is not known for certain"] == 1
        assert result.skipped["azure: no training accelerator"] == 2

    def test_an_old_row_stays_where_nothing_newer_covers_it(self, rows: list[dict[str, str]]) -> None:
        """K80 of 2024, with its own date."""
        assert {row["observed_at"] for row in select(rows, instance_type="Standard_NC12")} == {"2024-05-01"}


class TestGcp:
    def test_the_host_is_added_to_the_gpus(self, rows: list[dict[str, str]]) -> None:
        """8 A100 at 23.47126 and a2-highgpu-8g at 5.91582 in us-central1."""
        machine = only(rows, instance_type="a2-highgpu-8g", region="us-central1", pricing="on_demand")
        assert Decimal(machine["usd_per_hour"]) == Decimal("23.47126") + Decimal("5.91582")
        assert only(rows, instance_type="a3-highgpu-8g", region="us-east4", pricing="on_demand")["usd_per_hour"] == "87.83247"

    def test_gpus_without_a_host_price_are_not_sold(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """A zone without the host, and a host at 0.0."""
        assert select(rows, region="us-west3") == []
        assert reasons(result, "us-west3-b 8x A100") == {"no host in this zone"}
        assert reasons(result, "1x T4 n1-standard-8 on_demand") == {"no host price in this zone"}
        assert only(rows, instance_type="n1-standard-8", accelerator="NVIDIA-T4")["usd_per_hour"] == "0.30454"

    def test_an_a4_slice_includes_its_host(self, rows: list[dict[str, str]]) -> None:
        """Its host row says 0.0 and is not needed."""
        assert only(rows, instance_type="a4-highgpu-8g")["usd_per_hour"] == "34.2368"

    def test_what_cannot_be_bought_on_demand_has_only_a_spot_price(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """A4, A3 Ultra and A3 High below 8 GPUs have list prices that nobody can pay."""
        for instance_type in ("a4-highgpu-8g", "a3-ultragpu-8g", "a3-highgpu-1g"):
            assert {row["pricing"] for row in select(rows, instance_type=instance_type)} == {"spot"}
        assert reasons(result, "a4-highgpu-8g on_demand") == {"listed, but cannot be bought on demand"}

    def test_calendar_mode_prices_are_not_taken_for_on_demand(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """The feed has 8 H100 in us-central1 at 33.61 and 8 A100 in europe-west4 at 12.91; spot there is kept."""
        assert {row["pricing"] for row in select(rows, instance_type="a3-highgpu-8g", region="us-central1")} == {"spot"}
        assert {row["pricing"] for row in select(rows, instance_type="a2-highgpu-8g", region="europe-west4")} == {"spot"}
        assert any("calendar-mode" in reason for reason in reasons(result, "us-central1-a 8x H100"))

    @pytest.mark.parametrize(
        ("name", "accelerator", "chips"),
        [
            ("tpu-v2-8", "Google-TPU-v2", "4"),
            ("tpu-v4-8", "Google-TPU-v4", "4"),
            ("tpu-v5p-8", "Google-TPU-v5p", "4"),
            ("tpu-v5litepod-8", "Google-TPU-v5e", "8"),
            ("tpu-v6e-8", "Google-TPU-v6e", "8"),
        ],
    )
    def test_tpu_slices_are_counted_in_chips(self, rows: list[dict[str, str]], name: str, accelerator: str, chips: str) -> None:
        """Names count TensorCores up to v4 and for v5p, chips for v5e and v6e."""
        assert {(row["accelerator"], row["accelerator_count"]) for row in select(rows, instance_type=name)} == {(accelerator, chips)}

    def test_one_price_for_every_slice_size_is_a_placeholder(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """700.0 for 1, 8 and 256 chips: the last would pass for 2.73 a chip."""
        assert select(rows, region="asia-east1") == []
        assert reasons(result, "asia-east1-c tpu-v6e") == {"one price for every size: a placeholder"}

    def test_slices_between_powers_of_two_and_unknown_generations_are_counted(self, result: BuildResult) -> None:
        """They are left out on purpose."""
        assert result.skipped["TPU slices between powers of two, at the same price a chip"] == 1
        assert result.skipped["no canonical name: tpu-v7x-8"] == 1

    def test_a_single_k80_device_has_no_host(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """Two devices make the board that is sold."""
        assert only(rows, provider="gcp", accelerator="NVIDIA-K80", pricing="on_demand")["usd_per_hour"] == "1.28"
        assert result.skipped["gcp: no host known for 1.0 K80"] == 1


class TestSmallClouds:
    @pytest.mark.parametrize(
        ("instance_type", "accelerator"),
        [
            ("gpu_8x_h100_sxm5", "NVIDIA-H100-80GB-SXM"),
            ("gpu_1x_h100_pcie", "NVIDIA-H100-80GB-PCIe"),
            ("gpu_8x_a100", "NVIDIA-A100-40GB-SXM"),
            ("gpu_8x_a100_80gb_sxm4", "NVIDIA-A100-80GB-SXM"),
            ("n3-H100x8", "NVIDIA-H100-80GB-PCIe"),
            ("n3-H100-SXM5x8", "NVIDIA-H100-80GB-SXM"),
            ("8A100.176V", "NVIDIA-A100-80GB-SXM"),
            ("4L40S.80V", "NVIDIA-L40S"),
            ("8x-H100_SXM-32-65536", "NVIDIA-H100-80GB-SXM"),
        ],
    )
    def test_variants_are_told_by_the_instance_type(self, rows: list[dict[str, str]], instance_type: str, accelerator: str) -> None:
        """H100 alone can be three parts; quoting with null and memory multiplied twice don't disturb."""
        assert {row["accelerator"] for row in select(rows, instance_type=instance_type)} == {accelerator}

    def test_older_prices_give_way_even_in_regions_the_newer_catalogue_lacks(self, rows: list[dict[str, str]]) -> None:
        """Lambda's H100 of 2024 in texas-1; its A10, which nothing newer covers here, stays dated."""
        assert {row["usd_per_hour"] for row in select(rows, instance_type="gpu_8x_h100_sxm5")} == {"31.92"}
        assert only(rows, instance_type="gpu_1x_a10")["observed_at"] == "2024-05-01"

    def test_an_auctions_reserve_price_is_labelled_a_floor(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """And is no on-demand price."""
        floor = only(rows, provider="mithril")
        assert (floor["pricing"], floor["market"], floor["usd_per_hour"]) == ("spot", "auction_floor", "8")
        assert reasons(result, "v8-mithril") == {"reserve price of an auction, not an on-demand price"}

    def test_marketplace_offers_are_labelled_and_their_zero_spot_is_unknown(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """Single hosts' offers, by country, the median where there are several."""
        vast = select(rows, provider="vast")
        assert {(row["market"], row["pricing"]) for row in vast} == {("marketplace", "on_demand")}
        assert only(vast, instance_type="4x-H200-32-65536", region="US")["usd_per_hour"] == "10.85"
        assert "price 0.00 is unknown, not free" in reasons(result, "anycloud-vast")

    def test_a_rows_memory_is_shared_by_its_devices(self, rows: list[dict[str, str]]) -> None:
        """Two A100 with 160 GB are 80 GB parts, two with 80 GB are 40 GB parts."""
        a100 = select(rows, instance_type="2x-A100_SXM4-32-65536")
        assert {(row["region"], row["accelerator"]) for row in a100} == {("US", "NVIDIA-A100-80GB-SXM"), ("DE", "NVIDIA-A100-40GB-SXM")}

    def test_runpods_community_is_a_marketplace(self, rows: list[dict[str, str]]) -> None:
        """Its secure cloud has list prices."""
        assert only(rows, instance_type="1x_H100-SXM_COMMUNITY")["market"] == "marketplace"
        assert only(rows, instance_type="8x_H100-SXM_SECURE")["market"] == "list"

    def test_spot_above_on_demand_is_rejected(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """12.50 for what costs 2.95; the on-demand price stays."""
        assert only(rows, provider="nebius", accelerator_count="1")["usd_per_hour"] == "2.95"
        assert any("spot price above on-demand (2.95" in reason for reason in reasons(result, "1gpu-16vcpu"))

    def test_a_tenfold_outlier_is_rejected(self, result: BuildResult, rows: list[dict[str, str]]) -> None:
        """2,360 for 23.60 once three prices of the part are known."""
        assert select(rows, provider="nebius", region="eu-west1") == []
        assert any("tenfold" in reason for reason in reasons(result, "2360"))

    def test_an_unreadable_price_is_rejected_and_named(self, result: BuildResult) -> None:
        """`on request` costs nobody the other rows."""
        assert reasons(result, "us-central1 gpu-h100-sxm_8gpu") == {"price 'on request' is not a number"}

    def test_parts_without_canonical_name_are_counted(self, result: BuildResult) -> None:
        """By the vendor's label."""
        assert result.skipped["no canonical name: RTX-A4000"] == 1


class TestResult:
    def test_building_twice_gives_the_same_bytes(self, result: BuildResult) -> None:
        """The snapshot's name is made from them."""
        again = build(CATALOGUES, canonical_accelerator)
        assert (again.snapshot_csv, again.sources_csv) == (result.snapshot_csv, result.sources_csv)

    def test_the_provider_reads_every_row_that_is_built(self, result: BuildResult) -> None:
        """Writer and reader agree on the format."""
        table = {row["key"]: row["source"] for row in csv.DictReader(result.sources_csv.splitlines())}
        fetched = parse(result.snapshot_csv, table)
        assert len(fetched.offers) == result.rows
        assert fetched.rejected == ()

    def test_files_that_the_folder_lacks_are_named(self, result: BuildResult) -> None:
        """A partial folder builds, and says what it did without."""
        assert "skypilot-catalog/oci/vms.csv" in result.missing
        assert "anycloud-catalog/gcp/vms.csv" not in result.missing

    def test_a_folder_without_any_known_file_is_an_error(self, tmp_path: Path) -> None:
        """Better than a snapshot of the few single list prices."""
        with pytest.raises(FileNotFoundError, match="none of the price files"):
            build(tmp_path, canonical_accelerator)

    def test_both_files_are_written_as_they_are(self, result: BuildResult, tmp_path: Path) -> None:
        """With line feeds, whatever the system."""
        result.write(tmp_path)
        assert (tmp_path / "snapshot.csv").read_bytes() == result.snapshot_csv.encode()
        assert (tmp_path / "snapshot_sources.csv").read_bytes() == result.sources_csv.encode()

    def test_a_row_without_region_is_rejected(self, tmp_path: Path) -> None:
        """A short row costs nobody the others."""
        target = tmp_path / "skypilot-catalog" / "ibm" / "vms.csv"
        target.parent.mkdir(parents=True)
        header = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
        good = "gx2-8x64x1v100,V100,1,8,64,V100,2.497,,us-south,us-south-1"
        target.write_text(f"{header}\ngx2-8x64x1v100,V100,1\n{good}\n")
        built = build(tmp_path, canonical_accelerator)
        assert [rejected.reason for rejected in built.rejected] == ["row without region or instance type"]
        assert "ibm,us-south,gx2-8x64x1v100,NVIDIA-V100-16GB-PCIe,1,on_demand,2.497,2024-05-01,sky-ibm,list" in built.snapshot_csv

    def test_every_source_has_a_reader_its_own_key_and_a_stated_origin(self) -> None:
        """A line added to `sources.csv` cannot lack what a row of the snapshot must carry."""
        keys = [source.key for source in sources()]
        assert len(keys) == len(set(keys))
        assert {source.reader for source in sources()} == set(READERS)
        assert all(source.source and source.licence for source in sources())


@pytest.mark.skipif(not FULL_CATALOGUES.is_dir(), reason="the full price catalogues lie beside the repository only where it is developed")
def test_the_shipped_snapshot_is_what_the_full_catalogues_give(tmp_path: Path) -> None:
    """The committed files are the build's, byte for byte."""
    build(FULL_CATALOGUES, canonical_accelerator).write(tmp_path)
    for name in ("snapshot.csv", "snapshot_sources.csv"):
        assert (tmp_path / name).read_bytes() == (REPOSITORY / "providers" / "data" / name).read_bytes()
