"""The library gpuhunt, with catalogues of a few rows in the format that it publishes, as its own tests write them."""

from __future__ import annotations

import csv
import io
import socket
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from providers.gpuhunt import Gpuhunt
from providers.offer import Offer, ProviderError
from providers.testing import mock_answers
from tests.unit.providers.conformance import Conformance, RecordedAnswer
from tests.unit.providers.misbehaving_server import Server, listening

COLUMNS = (
    *("instance_name", "location", "price", "cpu", "memory", "gpu_count"),
    *("gpu_name", "gpu_memory", "spot", "disk_size", "gpu_vendor", "flags"),
)
PUBLISHED = ("aws", "azure", "verda", "gcp", "lambdalabs", "nebius", "oci", "runpod", "cloudrift")
"""The clouds whose catalogues the library downloads."""

ROWS: dict[str, list[tuple[object, ...]]] = {
    "aws": [
        ("p4d.24xlarge", "us-east-1", 21.957642, 96, 1152, 8, "A100", 40, False, "", "nvidia", ""),
        ("p4d.24xlarge", "us-east-1", 9.5, 96, 1152, 8, "A100", 40, True, "", "nvidia", ""),
        ("g6f.xlarge", "us-east-1", 0.24, 4, 16, 1, "L4", 3, False, "", "nvidia", ""),
        ("m5.large", "us-east-1", 0.096, 2, 8, 0, "", "", False, "", "", ""),
    ],
    "gcp": [
        ("a2-highgpu-1g", "us-central1-a", 3.673385, 12, 85, 1, "A100", 40, False, "", "nvidia", ""),
        ("a2-highgpu-1g", "us-central1-b", 3.673385, 12, 85, 1, "A100", 40, False, "", "nvidia", ""),
        ("a2-highgpu-1g", "us-central1-a", 1.8, 12, 85, 1, "A100", 40, True, "", "nvidia", ""),
        ("a2-highgpu-1g", "us-central1-b", 1.9, 12, 85, 1, "A100", 40, True, "", "nvidia", ""),
        ("a4-highgpu-8g", "us-central1-b", 64.0, 224, 3968, 8, "B200", 180, False, "", "nvidia", "gcp-dws-calendar-mode gcp-a4"),
        ("v5p-8", "us-east5-a", 16.8, 208, 448, 1, "v5p-8", 95, False, "", "google", ""),
    ],
    "azure": [("Standard_NC40ads_H100_v5", "eastus", 6.98, 40, 320, 1, "H100", 94, False, "", "nvidia", "")],
    "runpod": [
        ("NVIDIA A100 80GB PCIe", "EU-RO-1", 1.64, 8, 117, 1, "A100", 80, False, "", "nvidia", ""),
        ("NVIDIA A100 80GB PCIe", "CA", 1.19, 8, 117, 1, "A100", 80, False, "", "nvidia", ""),
        ("NVIDIA H100 80GB HBM3", "US-KS-2", 25.0, 8, 117, 8, "H100", 80, False, "", "nvidia", "runpod-cluster"),
    ],
    "cloudrift": [("tt-box", "us-east", 1.0, 8, 64, 1, "n150", 12, False, "", "tenstorrent", "")],
    "oci": [("VM.GPU3.1", "us-ashburn-1", 0, 12, 90, 1, "V100", 16, False, "", "nvidia", "")],
    "verda": [
        ("1H100.80S.30V", "FIN-03", 1.99, 30, 120, 1, "H100", 80, False, "", "nvidia", ""),
        ("1H100.80S.30V", "FIN-03", 9.99, 30, 120, 1, "H100", 80, True, "", "nvidia", ""),
    ],
    "lambdalabs": [("gpu_1x_gh200", "us-east-3", 2.29, 64, 432, 1, "GH200", 96, False, "", "nvidia", "lambda-arm")],
}


def publish(folder: Path, cloud: str) -> None:
    """One cloud's catalogue as the library's server holds it: a file with the newest version's name, and that version zipped."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    writer.writerows(ROWS.get(cloud, []))
    version = folder / cloud / "20261120-7"
    version.mkdir(parents=True)
    (folder / cloud / "version").write_text(version.name)
    with zipfile.ZipFile(version / "catalog.zip", "w") as archive:
        archive.writestr(f"{cloud}.csv", written.getvalue())


@pytest.fixture(name="library")
def _library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library, reading catalogues of this machine, with no key of any cloud that it would ask."""
    gpuhunt = pytest.importorskip("gpuhunt", reason="the extra gpuhunt is not installed")
    for cloud in PUBLISHED:
        publish(tmp_path, cloud)
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", tmp_path.as_uri())
    for key in ("CRUSOE_ACCESS_KEY", "HOTAISLE_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    gpuhunt.default_catalog.cache_clear()
    yield
    gpuhunt.default_catalog.cache_clear()


@pytest.mark.usefixtures("library")
class TestGpuhunt(Conformance):
    """What the library's items become."""

    provider = Gpuhunt

    def found(self) -> dict[tuple[str, str, str, str], Offer]:
        """The offers by provider, region, instance type and pricing."""
        return {(o.provider, o.region, o.instance_type, o.pricing): o for o in self.fetched().offers}

    def test_items_are_offers_of_their_cloud(self) -> None:
        """Dated by the day on which the library published them."""
        found = self.found()["aws", "us-east-1", "p4d.24xlarge", "on_demand"]
        assert (found.accelerator, found.accelerator_count, found.usd_per_hour) == ("NVIDIA-A100-40GB-SXM", 8, Decimal("21.957642"))
        assert (found.source, found.observed_at) == ("gpuhunt aws", datetime(2026, 11, 20, tzinfo=UTC))
        assert self.found()["aws", "us-east-1", "p4d.24xlarge", "spot"].usd_per_hour == Decimal("9.5")

    def test_a_library_that_hangs_is_an_error_in_the_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It states no limit of time for its downloads; without one, a worker would be held for good."""
        monkeypatch.setattr("providers.gpuhunt.WAIT_S", 0.1)
        with listening(Server()) as server:
            for cloud in PUBLISHED:
                server.on(lambda handler: handler.drip(b"", b""), f"/{cloud}/version")
            monkeypatch.setenv("GPUHUNT_CATALOG_URL", f"http://{server.host}")
            with pytest.raises(ProviderError, match="catalogue cannot be loaded"):
                self.make().fetch()
        assert socket.getdefaulttimeout() is None

    def test_clouds_go_by_their_name_here(self) -> None:
        """Lambda's is not Lambda Labs any more."""
        assert self.found()["lambda", "us-east-3", "gpu_1x_gh200", "on_demand"].accelerator == "NVIDIA-GH200-96GB"

    def test_zones_become_their_region(self) -> None:
        """On demand by the cheapest, spot by the median."""
        found = self.found()
        assert found["gcp", "us-central1", "a2-highgpu-1g", "on_demand"].usd_per_hour == Decimal("3.673385")
        assert found["gcp", "us-central1", "a2-highgpu-1g", "spot"].usd_per_hour == Decimal("1.85")

    def test_tpu_slices_are_counted_in_chips(self) -> None:
        """The library counts a slice as one."""
        found = self.found()["gcp", "us-east5", "tpu-v5p-8", "on_demand"]
        assert (found.accelerator, found.accelerator_count) == ("Google-TPU-v5p", 4)

    def test_the_variant_is_told_by_the_instance_type(self) -> None:
        """The library says H100 of an NVL and A100 of a PCIe card."""
        found = self.found()
        assert found["azure", "eastus", "Standard_NC40ads_H100_v5", "on_demand"].accelerator == "NVIDIA-H100-94GB-NVL"
        assert found["runpod", "EU-RO-1", "NVIDIA A100 80GB PCIe", "on_demand"].accelerator == "NVIDIA-A100-80GB-PCIe"

    def test_runpods_community_is_a_marketplace(self) -> None:
        """It is placed by country, RunPod's own machines by data center."""
        found = self.found()
        assert found["runpod", "CA", "NVIDIA A100 80GB PCIe", "on_demand"].market == "marketplace"
        assert found["runpod", "EU-RO-1", "NVIDIA A100 80GB PCIe", "on_demand"].market == "list"

    def test_what_is_not_taken_is_counted_with_its_reason(self) -> None:
        """Other products under the same names, fractions, and accelerators nobody plans with here."""
        assert dict(self.fetched().skipped) == {
            "aws: fractional GPU": 1,
            "gcp: calendar mode: a price for days that are booked ahead": 1,
            "no canonical name: n150": 1,
            "runpod: sold as a cluster of several machines only": 1,
        }

    def test_zero_prices_and_spot_above_on_demand_are_rejected(self) -> None:
        """And a cloud of which nothing is left is named."""
        reasons = {rejected.row: rejected.reason for rejected in self.fetched().rejected}
        assert reasons["oci us-ashburn-1 VM.GPU3.1"] == "price is 0.0: unknown, not free"
        assert reasons["verda FIN-03 1H100.80S.30V spot"] == "the spot price 9.99 is above on-demand (1.99)"
        assert reasons["nebius"] == "the library has no GPU offers of it"

    def test_a_cloud_that_the_library_asks_itself_is_left_alone_without_its_key(self) -> None:
        """Not configured is no outage."""
        assert not {"crusoe", "hotaisle"} & {rejected.row for rejected in self.fetched().rejected}

    def test_a_cloud_that_fails_the_library_costs_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hot Aisle cannot be reached."""
        monkeypatch.setenv("HOTAISLE_API_KEY", "key")
        monkeypatch.setenv("HOTAISLE_TEAM_HANDLE", "team")
        fetched = self.fetched((RecordedAnswer("https://admin.hotaisle.app/", {}, status=500),))
        assert "hotaisle" in {rejected.row for rejected in fetched.rejected}
        assert len(fetched.offers) == len(self.found())

    def test_without_any_catalogue_it_is_an_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """The last good prices stay in use."""
        monkeypatch.setenv("GPUHUNT_CATALOG_URL", (tmp_path / "nothing").as_uri())
        with pytest.raises(ProviderError, match="gpuhunt's catalogue cannot be loaded"):
            self.fetched()


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is an extra."""
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with mock_answers(()), pytest.raises(ProviderError, match=r"pip install outlay\[gpuhunt\]"):
        TestGpuhunt().make().fetch()
