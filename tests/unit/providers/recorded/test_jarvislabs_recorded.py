"""JarvisLabs' sample against values read by hand."""

from __future__ import annotations

from decimal import Decimal

from providers.jarvislabs import parse
from tests.unit.providers.recorded_samples import collector, recorded


def test_server_meta() -> None:
    """Seven rows: the L4 twice, two spellings of the RTX PRO 6000, a spot price of null, no num_gpus for the H100."""
    fetched = parse(recorded("jarvislabs/misc_server_meta.json"), collector("jarvislabs"))
    found = {(o.instance_type, o.region, o.pricing): (o.accelerator, o.usd_per_hour, o.availability) for o in fetched.offers}
    assert fetched.rejected == ()
    assert len(found) == len(fetched.offers) == 8 + 6 + 8 + 4 + 1 + 1
    assert found["8x L4", "india-noida-01", "on_demand"] == ("NVIDIA-L4", Decimal("3.52"), "listed")
    assert found["2x L4", "india-noida-01", "spot"] == ("NVIDIA-L4", Decimal("0.58"), "live")
    assert found["4x A100-80GB", "india-noida-01", "on_demand"] == ("NVIDIA-A100-80GB-SXM", Decimal("5.96"), "listed")
    assert found["1x A100-80GB", "india-noida-01", "spot"] == ("NVIDIA-A100-80GB-SXM", Decimal("0.89"), "live")
    assert found["2x RTX-PRO6000", "india-chennai-01", "on_demand"] == ("NVIDIA-RTX-PRO-6000-Blackwell", Decimal("3.78"), "live")
    assert found["1x RTX PRO 6000", "india-noida-01", "on_demand"] == ("NVIDIA-RTX-PRO-6000-Blackwell", Decimal("1.89"), "live")
    assert found["1x H100", "europe-01", "on_demand"] == ("NVIDIA-H100-80GB-SXM", Decimal("2.99"), "live")
    assert ("1x RTX PRO 6000", "india-noida-01", "spot") not in found
