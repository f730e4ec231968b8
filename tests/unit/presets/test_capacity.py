"""Accelerators that are let without a contract, by kind of provider."""

from __future__ import annotations

from service.presets.hardware.accelerators import load_accelerators
from service.presets.hardware.capacity import capacity_band, load_capacity_bands

H100, TPU = (load_accelerators()[name] for name in ("NVIDIA-H100-80GB-SXM", "Google-TPU-v5p"))


def test_bands_are_by_provider_and_vendor_and_others_have_one_too() -> None:
    """AWS's capacity block, GCP's requests of GPUs and of TPUs, Lambda's clusters, a marketplace, anyone else."""
    assert [capacity_band(name, H100).most for name in ("aws", "gcp", "lambda", "runpod", "anyone")] == [512, 640, 2000, 64, 512]
    assert capacity_band("gcp", TPU).most == 1024


def test_every_band_has_a_source_and_only_the_last_is_for_all() -> None:
    """A row for all others above the last would hide the rows below it."""
    *named, last = load_capacity_bands()
    assert all(band.providers for band in named)
    assert not last.providers
    assert all(len(band.source) > 40 and band.most > 0 for band in load_capacity_bands())
