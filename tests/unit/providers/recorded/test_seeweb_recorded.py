"""Seeweb's sample against values read by hand."""

from __future__ import annotations

from decimal import Decimal

from providers.seeweb import parse
from tests.unit.providers.recorded_samples import collector, recorded


def test_plans() -> None:
    """Counts as texts, one plan at two sites, one without accelerator; at a rate of 1, euros can be read off."""
    fetched = parse(recorded("seeweb/plans.json"), collector("seeweb"), Decimal(1))
    assert {(o.instance_type, o.region, o.accelerator, o.accelerator_count, o.usd_per_hour) for o in fetched.offers} == {
        ("ECS1GPU7", "it-fr2", "NVIDIA-L40S", 1, Decimal("0.85")),
        ("ECS1GPU7", "it-mi2", "NVIDIA-L40S", 1, Decimal("0.85")),
        ("ECS2GPU3", "it-fr2", "NVIDIA-A100-80GB-SXM", 2, Decimal("1.98")),
        ("ECS1GPU9", "it-fr2", "AMD-MI300X", 1, Decimal("1.6")),
    }
    assert {offer.availability for offer in fetched.offers} == {"offered"}
    assert (fetched.rejected, dict(fetched.skipped)) == ((), {"no accelerator": 1})
