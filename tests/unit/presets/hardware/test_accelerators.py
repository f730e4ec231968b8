"""The accelerator table: sourced, physically plausible, and found under the names people and clouds use."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import pytest

from service.domain.errors import UnknownName
from service.domain.training.hardware import PRECISIONS, Accelerator
from service.presets.documents import load_document
from service.presets.hardware import accelerators as presets
from service.presets.hardware.accelerators import canonical_accelerator, find_accelerator, load_accelerators
from tests.support.rows import for_each

ROWS = list(load_accelerators().values())
GIB = 2**30
REFERENCE = Path(__file__).parents[5] / "shared" / "reference" / "accelerators.csv"

every_row = for_each("part", ROWS, ids=lambda part: part.name)

ALIASES = [
    ("H100", "NVIDIA-H100-80GB-SXM"),
    ("h100-sxm", "NVIDIA-H100-80GB-SXM"),
    ("H100-80GB", "NVIDIA-H100-80GB-SXM"),
    ("H100-SXM5-80GB", "NVIDIA-H100-80GB-SXM"),
    ("H100-80G-SXM5", "NVIDIA-H100-80GB-SXM"),
    ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-SXM"),
    ("nvidia_h100", "NVIDIA-H100-80GB-SXM"),
    ("H100-MEGA", "NVIDIA-H100-80GB-SXM"),
    ("H100_80GB", "NVIDIA-H100-80GB-SXM"),
    ("H100 PCIe", "NVIDIA-H100-80GB-PCIe"),
    ("H100-80G-PCIe-NVLink", "NVIDIA-H100-80GB-PCIe"),
    ("NVIDIA H100 PCIe", "NVIDIA-H100-80GB-PCIe"),
    ("H100 NVL", "NVIDIA-H100-94GB-NVL"),
    ("NVIDIA H100 NVL", "NVIDIA-H100-94GB-NVL"),
    ("H800", "NVIDIA-H800-80GB-SXM"),
    ("NVIDIA H20", "NVIDIA-H20-96GB"),
    ("H200", "NVIDIA-H200-141GB-SXM"),
    ("NVIDIA H200", "NVIDIA-H200-141GB-SXM"),
    ("H200 NVL", "NVIDIA-H200-141GB-NVL"),
    ("GH200", "NVIDIA-GH200-96GB"),
    ("NVIDIA GH200 480GB", "NVIDIA-GH200-96GB"),
    ("B200", "NVIDIA-B200-SXM"),
    ("NVIDIA B200", "NVIDIA-B200-SXM"),
    ("GB200", "NVIDIA-GB200"),
    ("GB200 NVL72", "NVIDIA-GB200"),
    ("B300", "NVIDIA-B300-SXM"),
    ("GB300", "NVIDIA-GB300"),
    ("A100", "NVIDIA-A100-80GB-SXM"),
    ("A100-80GB", "NVIDIA-A100-80GB-SXM"),
    ("A100-SXM4-80GB", "NVIDIA-A100-80GB-SXM"),
    ("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-80GB-SXM"),
    ("a100_80gb", "NVIDIA-A100-80GB-SXM"),
    ("A100-40GB", "NVIDIA-A100-40GB-SXM"),
    ("NVIDIA A100-SXM4-40GB", "NVIDIA-A100-40GB-SXM"),
    ("A100-80G-PCIe", "NVIDIA-A100-80GB-PCIe"),
    ("NVIDIA A100 80GB PCIe", "NVIDIA-A100-80GB-PCIe"),
    ("NVIDIA A100-PCIE-40GB", "NVIDIA-A100-40GB-PCIe"),
    ("A800", "NVIDIA-A800-80GB-SXM"),
    ("V100", "NVIDIA-V100-16GB-SXM2"),
    ("Tesla-V100", "NVIDIA-V100-16GB-SXM2"),
    ("Tesla V100-SXM2-32GB", "NVIDIA-V100-32GB-SXM2"),
    ("V100-32GB", "NVIDIA-V100-32GB-SXM2"),
    ("T4", "NVIDIA-T4"),
    ("Tesla T4", "NVIDIA-T4"),
    ("A10G", "NVIDIA-A10G"),
    ("A10", "NVIDIA-A10"),
    ("A40", "NVIDIA-A40"),
    ("L4", "NVIDIA-L4"),
    ("L40S", "NVIDIA-L40S"),
    ("RTXA6000", "NVIDIA-RTX-A6000"),
    ("NVIDIA RTX A6000", "NVIDIA-RTX-A6000"),
    ("RTX6000-Ada", "NVIDIA-RTX-6000-Ada"),
    ("3090", "NVIDIA-RTX-3090"),
    ("4090", "NVIDIA-RTX-4090"),
    ("NVIDIA GeForce RTX 4090", "NVIDIA-RTX-4090"),
    ("RTX5090", "NVIDIA-RTX-5090"),
    ("RTX PRO Server 6000", "NVIDIA-RTX-PRO-6000-Blackwell"),
    ("K80", "NVIDIA-K80"),
    ("P100", "NVIDIA-P100-SXM2"),
    ("tpu-v2-8", "Google-TPU-v2"),
    ("v3-2048", "Google-TPU-v3"),
    ("TPU v4", "Google-TPU-v4"),
    ("tpu-v5p", "Google-TPU-v5p"),
    ("tpu-v5p-128", "Google-TPU-v5p"),
    ("v5litepod", "Google-TPU-v5e"),
    ("tpu-v5litepod-16", "Google-TPU-v5e"),
    ("tpu-v5-lite-podslice", "Google-TPU-v5e"),
    ("TPU-v6e", "Google-TPU-v6e"),
    ("Trillium", "Google-TPU-v6e"),
    ("ironwood", "Google-TPU-v7"),
    ("tpu7x", "Google-TPU-v7"),
    ("trn1", "AWS-Trainium1"),
    ("Trainium", "AWS-Trainium1"),
    ("trn2", "AWS-Trainium2"),
    ("AWS Trainium2", "AWS-Trainium2"),
    ("trn3", "AWS-Trainium3"),
    ("Gaudi HL-205", "Intel-Gaudi"),
    ("Gaudi2", "Intel-Gaudi2"),
    ("Habana Gaudi2", "Intel-Gaudi2"),
    ("HL-225", "Intel-Gaudi2"),
    ("Gaudi 3", "Intel-Gaudi3"),
    ("MI300X", "AMD-MI300X"),
    ("amd_mi300x", "AMD-MI300X"),
    ("AMD Instinct MI300X", "AMD-MI300X"),
    ("MI325X", "AMD-MI325X"),
    ("MI355X", "AMD-MI355X"),
    ("MI250X", "AMD-MI250X"),
    ("MI250X GCD", "AMD-MI250X-GCD"),
    ("Max 1550", "Intel-Max-1550"),
    ("Ascend 910B", "Huawei-Ascend-910B"),
    ("CS-2", "Cerebras-CS-2"),
]


def test_the_table_is_wide_enough() -> None:
    """At least 45 accelerators, and every maker the service promises."""
    assert len(ROWS) >= 45
    assert {part.vendor for part in ROWS} >= {"NVIDIA", "AMD", "Google", "AWS", "Intel"}


@every_row
def test_every_row_says_where_its_figures_are_from(part: Accelerator) -> None:
    """Source, family, link and year are always there."""
    assert len(part.source) > 5
    assert part.family
    assert part.link
    assert 2014 <= part.release_year <= 2026


@every_row
def test_peaks_are_of_known_precisions_and_never_fall_as_precision_does(part: Accelerator) -> None:
    """A narrower format is at least as fast as a wider one on the same part."""
    assert set(part.peak_tflops) <= set(PRECISIONS)
    ladder = [part.peak_tflops[name] for name in ("fp32", "tf32", "bf16", "fp8", "fp4") if name in part.peak_tflops]
    assert all(slower <= faster for slower, faster in itertools.pairwise(ladder))
    assert 1 < min(part.peak_tflops.values()) <= max(part.peak_tflops.values()) < 20_000


@every_row
def test_block_scaled_formats_run_at_the_rate_of_their_width(part: Accelerator) -> None:
    """mxfp8 runs as fp8 does and nvfp4 as fp4, on the parts that have them."""
    peaks = part.peak_tflops
    assert peaks.get("mxfp8", 0) in {0, peaks.get("fp8", peaks.get("mxfp8"))}
    assert peaks.get("nvfp4", 0) in {0, peaks.get("fp4")}
    assert "nvfp4" not in peaks or part.family == "blackwell"


@every_row
def test_memory_is_what_a_program_may_allocate(part: Accelerator) -> None:
    """A data sheet's GB is at most a GiB (1.0737), and no more than a tenth of it is kept from programs."""
    assert 0.9 * part.memory_gb * 1e9 <= part.usable_memory_bytes <= 1.075 * part.memory_gb * 1e9


@every_row
def test_power_links_and_bandwidth_are_physical(part: Accelerator) -> None:
    """50 W to 30 kW, and bandwidths between a PCIe card's and a wafer's."""
    assert part.tdp_w is None or 50 <= part.tdp_w <= 30_000
    assert 200 <= part.memory_bandwidth_gb_per_s <= 2.1e7
    assert part.link_gb_per_s is None or 30 <= part.link_gb_per_s <= 3_000
    assert part.internode_gbit_per_s is None or 10 <= part.internode_gbit_per_s <= 1_600
    assert 1 <= part.accelerators_per_node <= 64


@pytest.mark.parametrize(
    ("name", "precision", "advertised_sparse_tflops"),
    [
        ("NVIDIA-A100-80GB-SXM", "bf16", 624),
        ("NVIDIA-H100-80GB-SXM", "bf16", 1979),
        ("NVIDIA-H100-80GB-SXM", "fp8", 3958),
        ("NVIDIA-H200-141GB-SXM", "bf16", 1979),
        ("NVIDIA-H200-141GB-NVL", "bf16", 1671),
        ("NVIDIA-L40S", "fp8", 1466),
        ("NVIDIA-B200-SXM", "bf16", 4500),
        ("NVIDIA-B200-SXM", "fp4", 18000),
        ("AMD-MI300X", "bf16", 2614.9),
        ("AMD-MI300X", "fp8", 5229.8),
    ],
)
def test_peaks_are_dense(name: str, precision: str, advertised_sparse_tflops: float) -> None:
    """The advertised figure with 2:4 sparsity is twice the one in the table."""
    assert load_accelerators()[name].peak_tflops[precision] == pytest.approx(advertised_sparse_tflops / 2, rel=0.002)


@pytest.mark.parametrize(
    ("name", "mib"),
    [("NVIDIA-H100-80GB-SXM", 81559), ("NVIDIA-A100-80GB-SXM", 81920), ("NVIDIA-H200-141GB-SXM", 143771), ("NVIDIA-B200-SXM", 183359)],
)
def test_usable_memory_is_what_drivers_report(name: str, mib: int) -> None:
    """Totals printed by drivers and cloud interfaces, in MiB."""
    assert load_accelerators()[name].usable_memory_bytes == pytest.approx(mib * 2**20, rel=1e-4)


@for_each(("alias", "canonical"), ALIASES)
def test_usual_names_are_understood(alias: str, canonical: str) -> None:
    """People's, clouds' and drivers' spellings lead to the canonical name, in any case."""
    for spelling in (alias, alias.lower(), alias.upper(), f" {alias} "):
        assert find_accelerator(spelling).accelerator.name == canonical


@every_row
def test_a_canonical_name_is_never_ambiguous(part: Accelerator) -> None:
    """The full name means that part and no other, whatever its short form could mean."""
    found = find_accelerator(part.name.lower())
    assert found.accelerator is part
    assert found.ambiguous_with == ()


def test_no_name_belongs_to_two_parts() -> None:
    """Each alias is listed once, an ambiguous one under its usual part, and none is another part's name."""
    owner: dict[str, str] = {}
    for part in ROWS:
        aliases = [presets._key(alias) for alias in part.aliases]
        assert len(set(aliases)) == len(aliases)
        for key in {presets._key(part.name), *aliases}:
            assert owner.setdefault(key, part.name) == part.name


def test_every_ambiguous_name_names_known_parts_and_its_reason() -> None:
    """Usual and other parts are canonical names, and the choice is explained."""
    for row in load_document("accelerators")["ambiguous"]:
        assert {row["usual"], *row["others"]} <= set(load_accelerators())
        assert row["usual"] not in row["others"]
        assert row["why"]


@pytest.mark.parametrize("name", ["H100", "A100", "A100-80GB", "V100", "V100-32GB", "MI250X", "H200", "TPU v5"])
def test_a_name_of_several_parts_says_so(name: str) -> None:
    """The resolution lists what else it could have meant, and why not that."""
    found = find_accelerator(name)
    assert found.requested == name
    assert found.ambiguous_with
    assert found.why


@pytest.mark.parametrize("name", ["H100-SXM", "A100-80GB-PCIe", "B200", "tpu-v5p"])
def test_a_name_of_one_part_does_not_hedge(name: str) -> None:
    """No other part is mentioned where none was meant."""
    assert find_accelerator(name).ambiguous_with == ()


@pytest.mark.parametrize(
    ("name", "near"), [("H10O", "H100"), ("A1000", "A100"), ("MI300Y", "MI300X"), ("tpu-v5q", "TPU v5"), ("B20", "B200")]
)
def test_an_unknown_name_is_answered_with_near_ones(name: str, near: str) -> None:
    """Three known names of different parts, the likeliest among them, at the field's pointer."""
    with pytest.raises(UnknownName) as caught:
        find_accelerator(name)
    assert caught.value.pointer == "/hardware/accelerator"
    assert len(caught.value.near) == 3
    assert near in caught.value.near
    assert len({find_accelerator(known).accelerator.name for known in caught.value.near}) == 3


@pytest.mark.parametrize("name", ["", "-", "nvidia", "\ud800", "x" * 100_000, "tpu-v5p-" + "9" * 50])
def test_nonsense_is_an_unknown_name(name: str) -> None:
    """Empty, endless and unprintable names are refused like any other, with a short message."""
    with pytest.raises(UnknownName) as caught:
        find_accelerator(name)
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    ("label", "memory_gb", "canonical"),
    [
        ("A100", 40960 / 1024, "NVIDIA-A100-40GB-SXM"),
        ("A100", 81920 / 1024, "NVIDIA-A100-80GB-SXM"),
        ("A100", 85.9, "NVIDIA-A100-80GB-SXM"),
        ("A100-80GB-640GB", 80, "NVIDIA-A100-80GB-SXM"),
        ("H100", 81559 / 1024, "NVIDIA-H100-80GB-SXM"),
        ("H100", 95830 / 1024, "NVIDIA-H100-94GB-NVL"),
        ("H100-80G-PCIe", 80, "NVIDIA-H100-80GB-PCIe"),
        ("V100", 16, "NVIDIA-V100-16GB-SXM2"),
        ("V100", 32, "NVIDIA-V100-32GB-SXM2"),
        ("MI250X", 64, "AMD-MI250X-GCD"),
        ("B200", 192, "NVIDIA-B200-SXM"),
        ("B300", 262, "NVIDIA-B300-SXM"),
        ("L4", 22888 / 1024, "NVIDIA-L4"),
        ("tpu-v5p-128", None, "Google-TPU-v5p"),
        ("H100-SXM", None, "NVIDIA-H100-80GB-SXM"),
        ("A100-80GB", None, "NVIDIA-A100-80GB-SXM"),
        ("Trainium", None, "AWS-Trainium1"),
    ],
)
def test_a_label_and_its_memory_pick_the_part(label: str, memory_gb: float | None, canonical: str) -> None:
    """Catalogues give a short label and the memory of one device, in GB or GiB."""
    assert canonical_accelerator(label, memory_gb) == canonical


@pytest.mark.parametrize(
    ("label", "memory_gb"),
    [("A100", 24), ("H100-80GB", 94), ("L4", 11444 / 1024), ("RTX 6000", 24), ("A100", None), ("Virtex", 16), ("H100-80GB", float("nan"))],
)
def test_a_label_is_not_stretched_over_a_memory_it_never_had(label: str, memory_gb: float | None) -> None:
    """Slices, contradictions, unknown labels and labels of several sizes without one are None, not a guess."""
    assert canonical_accelerator(label, memory_gb) is None


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference table is not beside this checkout")
def test_the_reference_table_is_carried_whole() -> None:
    """Every reference row is here under its name; a peak that differs is explained in the notes."""
    with REFERENCE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            part = load_accelerators()[row["name"]]
            assert part.memory_gb == float(row["memory_gb"])
            assert part.memory_bandwidth_gb_per_s == float(row["memory_bandwidth_gb_s"])
            stated = {key.split("_")[1]: float(value) for key, value in row.items() if key.startswith("peak_") and value}
            differing = {name for name, peak in stated.items() if part.peak_tflops.get(name) != peak}
            assert not differing or "reference table" in part.notes
