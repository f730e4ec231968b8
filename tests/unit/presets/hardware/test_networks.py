"""The network of instance types: figures as published, every pattern in use, and no large cloud's training machine left out."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest

from providers.offer import Offer
from providers.snapshot import SnapshotProvider
from service.presets.hardware.networks import InstancePattern, find_network, load_networks, network_note
from tests.support.rows import for_each

H100, A100 = "NVIDIA-H100-80GB-SXM", "NVIDIA-A100-80GB-SXM"
OFFERS = SnapshotProvider().fetch().offers
ROWS = list(chain.from_iterable(load_networks().values()))
LARGE_CLOUDS = {"aws", "azure", "gcp", "oci"}
TRAINED_ON = ("NVIDIA-A100", "NVIDIA-H100", "NVIDIA-H200", "NVIDIA-B200")
FABRICS = {"EFA", "InfiniBand", "RoCE", "GPUDirect-TCPX", "GPUDirect-TCPXO", "Ethernet"}


def _sold(offer: Offer) -> tuple[str, str, str]:
    return offer.provider, offer.instance_type, offer.accelerator


SOLD = sorted({_sold(offer) for offer in OFFERS})


def _shown(row: InstancePattern) -> str:
    return f"{row.provider} {row.types.pattern}"


def _rate(provider: str, instance_type: str, accelerator: str = H100) -> float | None:
    found = find_network(provider, instance_type, accelerator)
    return None if found is None else found.gbit_per_s_per_instance


def _covered(row: InstancePattern) -> bool:
    return any(provider == row.provider and row.covers(kind, accelerator) for provider, kind, accelerator in SOLD)


def _trains(offer: Offer) -> bool:
    return offer.accelerator_count == 8 and offer.accelerator.startswith(TRAINED_ON)


@pytest.mark.parametrize(
    ("provider", "instance_type", "gbit_per_s", "fabric"),
    [
        ("azure", "Standard_ND96isr_H100_v5", 8 * 400, "InfiniBand"),
        ("azure", "Standard_ND96is_noIB_H100_v5", 80, "Ethernet"),
        ("azure", "Standard_ND128isr_NDR_GB200_v6", 4 * 400, "InfiniBand"),
        ("gcp", "a3-highgpu-8g", 4 * 200, "GPUDirect-TCPX"),
        ("gcp", "a3-megagpu-8g", 8 * 200, "GPUDirect-TCPXO"),
        ("gcp", "a3-ultragpu-8g", 8 * 400, "RoCE"),
        ("gcp", "a2-ultragpu-8g", 100, "Ethernet"),
        ("aws", "p4d.24xlarge", 400, "EFA"),
        ("aws", "p5.48xlarge", 3200, "EFA"),
        ("aws", "p6-b300.48xlarge", 6400, "EFA"),
        ("oci", "BM.GPU.A100-v2.8", 16 * 100, "RoCE"),
        ("oci", "BM.GPU.H100.8", 8 * 2 * 200, "RoCE"),
        ("crusoe", "h100-80gb-sxm-ib.8x", 8 * 400, "InfiniBand"),
    ],
)
def test_figures_are_the_published_ones(provider: str, instance_type: str, gbit_per_s: float, fabric: str) -> None:
    """Read in the clouds' own documents, for the cards that serve exchanges between accelerators."""
    found = find_network(provider, instance_type, H100)
    assert found is not None
    assert (found.gbit_per_s_per_instance, found.fabric, found.verified) == (gbit_per_s, fabric, True)


@pytest.mark.parametrize("size", ["is_noIB", "is_flex", "is", "isf"])
def test_an_azure_size_without_rdma_is_far_below_its_sibling(size: str) -> None:
    """One H100 machine, sold with InfiniBand and without: a fortieth is left."""
    with_rdma, without = _rate("azure", "Standard_ND96isr_H100_v5"), _rate("azure", f"Standard_ND96{size}_H100_v5")
    assert with_rdma is not None
    assert without is not None
    assert without == pytest.approx(with_rdma / 40)


def test_case_does_not_matter() -> None:
    """Clouds and catalogues write one name in different ways."""
    assert _rate("Azure", "standard_nd96ISR_h100_V5") == _rate("azure", "Standard_ND96isr_H100_v5") == 3200


def test_a_rate_may_hang_on_what_is_attached() -> None:
    """Google's N1 machines have the fast rate with V100 only."""
    assert _rate("gcp", "n1-standard-64", "NVIDIA-V100-16GB-SXM2") == 100
    assert _rate("gcp", "n1-standard-64", "NVIDIA-P100-PCIe") is None


@for_each("row", ROWS, ids=_shown)
def test_every_pattern_is_of_a_known_instance_type_or_newer_than_the_shipped_prices(row: InstancePattern) -> None:
    """A pattern of the one kind matches an offer, a pattern of the other matches none."""
    assert _covered(row) is not row.newer


@for_each("row", ROWS, ids=_shown)
def test_every_figure_is_possible_and_sourced(row: InstancePattern) -> None:
    """Above nothing and below the fastest rack, of a fabric that we know, from a named and dated source."""
    assert 0 < row.network.gbit_per_s_per_instance < 30_000
    assert row.network.fabric in FABRICS
    assert row.network.is_fast_fabric is (row.network.fabric != "Ethernet")
    assert ", 202" in row.network.source


def test_no_instance_type_has_two_networks() -> None:
    """The order of the rows decides nothing."""
    matches = Counter(sold for sold in SOLD for row in load_networks().get(sold[0], ()) if row.covers(sold[1], sold[2]))
    assert max(matches.values()) == 1


def test_no_training_machine_of_a_large_cloud_is_unknown() -> None:
    """Eight A100, H100, H200 or B200 on AWS, Azure, Google Cloud or Oracle."""
    asked = {_sold(offer) for offer in OFFERS if _trains(offer) and offer.provider in LARGE_CLOUDS}
    assert {provider for provider, _, _ in asked} == LARGE_CLOUDS
    assert {sold for sold in asked if find_network(*sold) is None} == set()


def test_most_offers_of_eight_accelerators_are_known() -> None:
    """The rest are slices of TPUs and two clouds for which no figure was found."""
    eight = [_sold(offer) for offer in OFFERS if offer.accelerator_count == 8]
    unknown = [sold for sold in eight if find_network(*sold) is None]
    assert len(unknown) < 0.1 * len(eight)
    assert {provider for provider, _, _ in unknown} == {"fluidstack", "gcp", "scp"}


@pytest.mark.parametrize(
    ("provider", "instance_type"),
    [
        ("lambda", "gpu_8x_h100_sxm5"),
        ("verda", "8H100.80S.176V"),
        ("runpod", "8x_H100-SXM_SECURE"),
        ("runpod", "8x NVIDIA H100 80GB HBM3 SECURE"),
        ("vast", "8x-H100_SXM-32-65536"),
        ("vast", "8x H100 SXM"),
        ("hyperstack", "n3-H100x8"),
        ("paperspace", "H100x8"),
    ],
)
def test_single_machines_have_no_fast_fabric(provider: str, instance_type: str) -> None:
    """What is sold as a cluster by the same cloud is another product; alone they have an ordinary card at most."""
    found = find_network(provider, instance_type, H100)
    assert found is not None
    assert not found.is_fast_fabric
    assert found.gbit_per_s_per_instance <= 100


@pytest.mark.parametrize(
    ("provider", "instance_type", "said"),
    [
        ("azure", "Standard_ND96isr_H100_v5", ["3200 Gbit/s", "InfiniBand", "Microsoft Learn"]),
        ("azure", "Standard_ND96is_noIB_H100_v5", ["80 Gbit/s", "no fast fabric"]),
        ("coreweave", "hgx-h100", ["3200 Gbit/s", "quoted from memory"]),
        ("lambda", "gpu_8x_h100_sxm5", ["25 Gbit/s", "no fast fabric", "not published"]),
        ("gcp", "tpu-v5p-16", ["not known", "its own links", "data sheet"]),
        ("nobody", "unheard-of", ["not known", "no figure", "data sheet"]),
    ],
)
def test_the_note_says_what_is_taken_and_from_where(provider: str, instance_type: str, said: list[str]) -> None:
    """And, where nothing is known, that the data sheet is assumed."""
    note = network_note(provider, instance_type, find_network(provider, instance_type, H100))
    assert note.startswith((f"{provider} {instance_type}: ", f"the network of {provider} {instance_type} "))
    assert [words for words in said if words not in note] == []


def test_what_was_read_in_its_source_is_not_called_quoted_from_memory() -> None:
    """Only unverified figures are."""
    assert "memory" not in network_note("aws", "p4de.24xlarge", find_network("aws", "p4de.24xlarge", A100))
