"""SkyPilot's catalogue: a few rows of each schema version and spelling, as they stood between 2024 and 2026."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest

from providers.catalog_files import READERS
from providers.offer import Fetched, Offer, ProviderError
from providers.skypilot import SkyPilotCatalog, clouds, parse
from providers.testing import WRONG_VALUES
from tests.unit.providers.conformance import Conformance, RecordedAnswer
from tests.unit.providers.recorded_samples import collector

HOME = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
CLOUDS = {cloud.name: cloud for cloud in clouds()}

PYTHON_LITERAL = "\"{'Gpus': [{'Name': 'H100', 'Manufacturer': 'NVIDIA', 'Count': 8, 'MemoryInfo': {'SizeInMiB': 81920}}]}\""
JSON = '"{""Gpus"": [{""Name"": ""H100"", ""Count"": 8, ""MemoryInfo"": {""SizeInMiB"": 5242880}}]}"'
WITH_NULL = "\"{'Gpus': [{'Name': 'H100-80G-PCIe', 'Manufacturer': null, 'Count': 8, 'MemoryInfo': {'SizeInMiB': 81920}}]}\""
BARE = "H100"

NEBIUS = f"""InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
gpu-h100-sxm_8gpu-128vcpu-1600gb,H100,8,128,1600,23.60,eu-north1,{PYTHON_LITERAL},10.00
cpu-e2_2vcpu-8gb,,,2,8,0.05,eu-north1,,
"""
VERDA = f"""InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,Price,SpotPrice
8H100.80S.176V,8H100.80S.176V,176.0,1480.0,H100,8.0,{JSON},FIN-01,18.32,4.57
"""
GCP = """InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
a2-highgpu-8g,96.0,680.0,,,,us-central1,us-central1-a,5.91582,2.95791
a4-highgpu-8g,224.0,3968.0,,,,us-central1,us-central1-b,0.0,0.0
,,,A100,8.0,A100,us-central1,us-central1-a,23.47126,11.736
,,,A100,8.0,A100,us-west9,us-west9-a,23.47126,11.736
,,,tpu-v6e-1,1,tpu-v6e-1,asia-east1,asia-east1-c,700.0,
,,,tpu-v6e-4,1,tpu-v6e-4,asia-east1,asia-east1-c,700.0,
,,,tpu-v6e-8,1,tpu-v6e-8,asia-east1,asia-east1-c,700.0,
"""
RUNPOD = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo
8x_H100-SXM_SECURE,H100-SXM,8.0,224.0,1600.0,US,,21.52,US-CA-2,H100
8x_H100-SXM_SECURE,H100-SXM,8.0,224.0,1600.0,IS,,21.52,EUR-IS-1,H100
1x_H100-SXM_COMMUNITY,H100-SXM,1.0,28.0,200.0,US,1.75,2.25,US-CA-2,H100
"""
VAST = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region
4x-H200-32-65536,H200,4,32,64.0,"{'Gpus': [{'Name': 'H200', 'Count': 4, 'MemoryInfo': {'SizeInMiB': 575084}}]}",10.59,0.00,"France, FR, EU"
4x-H200-32-65536,H200,4,32,64.0,"{'Gpus': [{'Name': 'H200', 'Count': 4, 'MemoryInfo': {'SizeInMiB': 575084}}]}",11.59,0.00,"Lyon, FR, EU"
"""
MITHRIL = f"""InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo
h100-80gb.sxm.8x,H100,8,168,1814,8.0,8.0,us-central2-a,{PYTHON_LITERAL}
"""
AZURE = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Generation
Standard_ND96isr_H100_v5,H100,8.0,96.0,1900.0,H100,98.32,36.8,eastus,V1,V2
Standard_NC40ads_H100_v5,H100,1.0,40.0,320.0,H100,0.0,,eastus,V2
"""


def read(cloud: str, text: str) -> Fetched:
    """What one cloud's file becomes."""
    return parse(CLOUDS[cloud], text, collector("skypilot"))


def offers(cloud: str, text: str) -> list[Offer]:
    """Its offers."""
    return list(read(cloud, text).offers)


def damaged(text: str) -> Iterator[str]:
    """The file again and again, each time with one cell put wrong."""
    header, *lines = text.splitlines()
    for number, line in enumerate(lines):
        cells = line.split(",")
        for cell in range(len(cells)):
            for wrong in (*WRONG_VALUES, "1e999999", "0.5", "1e-9", '"'):
                changed = ",".join([*cells[:cell], str(wrong), *cells[cell + 1 :]])
                yield "\n".join([header, *lines[:number], changed, *lines[number + 1 :]])


class TestSkyPilot(Conformance):
    """Two clouds can be read, the others are not found."""

    provider = SkyPilotCatalog
    answers = (
        RecordedAnswer(f"{HOME}/nebius/vms.csv", NEBIUS),
        RecordedAnswer(f"{HOME}/verda/vms.csv", VERDA),
        RecordedAnswer(re.compile(rf"{re.escape(HOME)}/.*"), "404: Not Found", status=404),
    )

    def test_offers_are_those_of_the_cloud_and_name_the_catalogue(self) -> None:
        """SkyPilot sells nothing itself."""
        assert {(offer.provider, offer.source, offer.availability) for offer in self.fetched().offers} == {
            ("nebius", "SkyPilot catalog v8 nebius", "listed"),
            ("verda", "SkyPilot catalog v8 verda", "listed"),
        }

    def test_a_cloud_that_cannot_be_read_is_named_and_costs_nothing_else(self) -> None:
        """One file missing is no outage."""
        assert {rejected.row for rejected in self.fetched().rejected} == set(CLOUDS) - {"nebius", "verda"}

    def test_resellers_are_left_to_their_own_providers(self) -> None:
        """Shadeform's and Prime Intellect's files do not say which cloud sells."""
        assert not {"shadeform", "primeintellect"} & set(CLOUDS)


class TestRows:
    """The traps of the files."""

    @pytest.mark.parametrize("gpu_info", [PYTHON_LITERAL, JSON, WITH_NULL, BARE, '"{broken"', ""])
    def test_every_spelling_of_gpu_info_is_read_or_done_without(self, gpu_info: str) -> None:
        """Name and count stand in columns of their own."""
        (offer,) = offers(
            "nebius",
            "Price,InstanceType,Region,AcceleratorName,AcceleratorCount,GpuInfo\n"
            f"23.60,gpu-h100-sxm_8gpu-128vcpu-1600gb,eu-north1,H100,8.0,{gpu_info}\n",
        )
        assert (offer.accelerator, offer.accelerator_count, offer.usd_per_hour) == ("NVIDIA-H100-80GB-SXM", 8, Decimal("23.6"))

    def test_spot_stands_beside_on_demand(self) -> None:
        """Two offers of one row; a row without accelerator is none."""
        assert {(o.pricing, o.usd_per_hour) for o in offers("nebius", NEBIUS)} == {("on_demand", Decimal("23.6")), ("spot", Decimal(10))}

    def test_memory_that_was_multiplied_twice_is_not_believed(self) -> None:
        """5,242,880 MiB in an H100 would make it another accelerator."""
        assert {offer.accelerator for offer in offers("verda", VERDA)} == {"NVIDIA-H100-80GB-SXM"}

    def test_gpus_and_their_host_are_added_and_gpus_without_host_left_out(self) -> None:
        """A zone without the host sells no machine; a host without GPUs is no offer."""
        fetched = read("gcp", GCP)
        assert {(o.region, o.instance_type, o.pricing, o.usd_per_hour) for o in fetched.offers} == {
            ("us-central1", "a2-highgpu-8g", "on_demand", Decimal("29.38708")),
            ("us-central1", "a2-highgpu-8g", "spot", Decimal("14.69391")),
        }
        assert "no host in this zone" in {rejected.reason for rejected in fetched.rejected}

    def test_one_price_for_every_size_is_a_placeholder(self) -> None:
        """700.0 for one chip and for eight."""
        reasons = [rejected.reason for rejected in read("gcp", GCP).rejected if "tpu-v6e" in rejected.row]
        assert reasons == ["one price for every size: a placeholder"] * 3

    def test_a_type_crossed_with_every_region_is_offered_without_one(self) -> None:
        """RunPod's file lists each type in each data center, whatever is there."""
        found = {(o.instance_type, o.region, o.market, o.pricing): o.usd_per_hour for o in offers("runpod", RUNPOD)}
        assert found == {
            ("8x_H100-SXM_SECURE", "any", "list", "on_demand"): Decimal("21.52"),
            ("1x_H100-SXM_COMMUNITY", "any", "marketplace", "on_demand"): Decimal("2.25"),
            ("1x_H100-SXM_COMMUNITY", "any", "marketplace", "spot"): Decimal("1.75"),
        }

    def test_a_crossed_type_with_prices_by_region_keeps_its_regions(self) -> None:
        """The price then says something of the place."""
        dearer = RUNPOD.replace("IS,,21.52", "IS,,22.00")
        found = {(o.region, o.usd_per_hour) for o in offers("runpod", dearer) if o.accelerator_count == 8}
        assert found == {("US", Decimal("21.52")), ("IS", Decimal("22.00"))}

    def test_hosts_of_one_country_are_one_offer_and_a_spot_price_of_zero_is_unknown(self) -> None:
        """The median of what they ask."""
        fetched = read("vast", VAST)
        (offer,) = fetched.offers
        assert (offer.region, offer.market, offer.usd_per_hour) == ("FR", "marketplace", Decimal("11.09"))
        assert {rejected.reason for rejected in fetched.rejected} == {"price 0.00 is unknown, not free"}

    def test_an_auctions_reserve_price_is_a_floor_of_spot(self) -> None:
        """1.00 a GPU is what a bid must reach, not what a machine costs."""
        (offer,) = offers("mithril", MITHRIL)
        assert (offer.pricing, offer.market, offer.usd_per_hour) == ("spot", "auction_floor", Decimal(8))

    def test_ragged_rows_are_read_and_zero_prices_unknown(self) -> None:
        """`V1,V2` unquoted in the last column leaves the first ten in place."""
        fetched = read("azure", AZURE)
        assert {(o.instance_type, o.usd_per_hour) for o in fetched.offers} == {
            ("Standard_ND96isr_H100_v5", Decimal("98.32")),
            ("Standard_ND96isr_H100_v5", Decimal("36.8")),
        }
        assert [rejected.reason for rejected in fetched.rejected] == ["price 0.0 is unknown, not free"]

    @pytest.mark.parametrize(
        ("cloud", "text"), [("nebius", NEBIUS), ("gcp", GCP), ("vast", VAST), ("runpod", RUNPOD), ("mithril", MITHRIL)]
    )
    def test_a_wrong_value_in_any_cell_costs_its_row_at_most(self, cloud: str, text: str) -> None:
        """Every cell of a sample for each reader is put wrong in turn: sound offers come back, or a ProviderError."""
        for changed in damaged(text):
            try:
                fetched = read(cloud, changed)
            except ProviderError:
                continue
            assert all(offer.usd_per_hour > 0 for offer in fetched.offers)

    def test_a_file_without_the_columns_is_no_catalogue(self) -> None:
        """They are named."""
        with pytest.raises(ProviderError, match=r"SkyPilot catalog: the columns InstanceType, .* are missing"):
            read("nebius", "a,b\n1,2\n")

    def test_a_file_with_a_null_character_or_a_giant_field_is_no_catalogue(self) -> None:
        """The CSV reader's own limits are an outage of this cloud."""
        with pytest.raises(ProviderError, match="no readable CSV"):
            read("nebius", NEBIUS + "x" * 200_000 + "\n")


def test_every_cloud_has_a_reader_and_a_rule_for_its_memory() -> None:
    """The table cannot name what the snapshot's build does not know."""
    assert all(cloud.gpu_memory in {"device", "row", "unusable"} for cloud in clouds())
    assert all(cloud.reader in READERS for cloud in clouds())
    assert len(CLOUDS) == len(clouds())
