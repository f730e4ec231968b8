"""The inherited provider tests with the service's own accelerator names."""

from __future__ import annotations

from providers.testing import ProviderConformance, RecordedAnswer
from service.presets.hardware.accelerators import canonical_accelerator

__all__ = ["Conformance", "RecordedAnswer"]


class Conformance(ProviderConformance):
    """For the providers of this project."""

    @staticmethod
    def canonical(label: str, memory_gb: float | None) -> str | None:
        """The service's canonical name of a vendor's label."""
        return canonical_accelerator(label, memory_gb)
