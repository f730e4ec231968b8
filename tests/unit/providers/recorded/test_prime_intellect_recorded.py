"""Summaries of Prime Intellect's answers: none of its answers itself is at hand."""

from __future__ import annotations

import json

import pytest

from providers.common import accelerator_in_form
from tests.unit.providers.recorded_samples import collector, sample


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [
        ("A100_80GB_PCIe", "NVIDIA-A100-80GB-PCIe"),
        ("A100_80GB_SXM4", "NVIDIA-A100-80GB-SXM"),
        ("B200_180GB", "NVIDIA-B200-SXM"),
        ("GH200_96GB", "NVIDIA-GH200-96GB"),
        ("H100_80GB_PCIe", "NVIDIA-H100-80GB-PCIe"),
        ("H100_80GB_SXM5", "NVIDIA-H100-80GB-SXM"),
        ("H200_141GB", "NVIDIA-H200-141GB-SXM"),
    ],
)
def test_its_labels_are_understood(name: str, accelerator: str) -> None:
    """Its `gpuType` and `socket`, as they stand in half a year of summaries."""
    lines = sample(f"recorded/prime-intellect/{name}_daily.jsonl").read_text(encoding="utf-8").splitlines()
    labels = {(row["gpu_type"], row["socket_type"] or "") for row in map(json.loads, lines)}
    assert {accelerator_in_form(collector("prime_intellect"), model, socket) for model, socket in labels} == {accelerator}


def test_its_prices_are_those_of_whole_machines() -> None:
    """The totals of machines with eight H100 are eight times what one costs."""
    lines = sample("recorded/prime-intellect/H100_80GB_SXM5_daily.jsonl").read_text(encoding="utf-8").splitlines()
    eights = [row["by_config"]["8x"] for row in map(json.loads, lines) if "8x" in row["by_config"]]
    assert eights
    assert all(each["avg_total"] == pytest.approx(8 * each["avg_per_gpu"], abs=0.05) for each in eights)
