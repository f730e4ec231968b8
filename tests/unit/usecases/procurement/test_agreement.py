"""One truth: a fleet asked about in a comparison and as buy or rent has the same winner."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from service.config import Settings
from service.container import build_context
from service.domain.procurement.ownership import OwnedCluster
from service.domain.quantities import Range
from service.engine.procurement.break_even import break_even
from service.engine.procurement.cash_flows import OnDemandPrice, RentTerms
from service.engine.procurement.options import RentedCapacity, option_npvs
from service.engine.procurement.ownership import owned_cost
from service.usecases.comparison.break_even import fleet_inputs
from service.usecases.comparison.owned_hardware import OwnedHardware
from service.usecases.procurement.buy_or_rent import buy_or_rent
from tests.unit.usecases.comparison.comparing import compared, offer, selling

FLEETS = 500


def random_cluster(random: np.random.Generator) -> OwnedCluster:
    return OwnedCluster(
        "dc1",
        "NVIDIA-H100-80GB-SXM",
        count=8 * int(random.integers(1, 200)),
        years=float(random.integers(1, 8)),
        utilisation=float(random.uniform(0.05, 1.0)),
        capex_usd_per_accelerator=float(random.uniform(10_000, 60_000)),
        residual_share=float(random.uniform(0, 0.5)),
        cost_of_capital=float(random.uniform(0, 0.2)),
        kw_per_accelerator=float(random.uniform(0.5, 2)),
        idle_power_share=float(random.uniform(0, 1)),
        pue=float(random.uniform(1.05, 1.8)),
        usd_per_kwh=float(random.uniform(0.03, 0.3)),
        opex_share_per_year=float(random.uniform(0, 0.12)),
        lead_time_months=float(random.choice([0, 0, 3, 6])),
    )


def test_500_random_fleets_have_one_winner() -> None:
    """What a run is charged ranks as present values do at steady prices; break-even figures do at any drift and lead time."""
    random = np.random.default_rng(19)
    winners = []
    for _ in range(FLEETS):
        cluster, drift = random_cluster(random), float(random.uniform(-0.3, 0.3))
        on_demand, reserved = float(random.uniform(1, 6)), float(random.uniform(0.8, 3.5))
        hardware = OwnedHardware(cluster, None, owned_cost(cluster), Range.exactly(drift), ())
        inputs = fleet_inputs(hardware)
        terms = RentTerms(12, count=float(cluster.count))
        rents = (RentedCapacity(RentTerms(), on_demand), RentedCapacity(terms, reserved))
        asked = replace(inputs, rents=rents, on_demand=OnDemandPrice(on_demand))
        npvs = option_npvs(asked)[:, 0]
        for each, usd, npv in zip((RentTerms(), terms), (on_demand, reserved), npvs[1:], strict=True):
            saved = break_even(inputs, each, np.array([usd]), on_demand).npv_saved_usd[0]
            assert saved == pytest.approx(npv - npvs[0], abs=1e-6 * npvs[0])
        steady = replace(cluster, lead_time_months=0.0)
        inputs = replace(fleet_inputs(replace(hardware, cluster=steady)), list_change_per_year=0.0)
        of_run = [owned_cost(steady).usd_per_delivered_accelerator_hour, on_demand, reserved / float(cluster.utilisation)]
        over_years = option_npvs(replace(inputs, rents=rents, on_demand=OnDemandPrice(on_demand)))[:, 0]
        years = int(float(cluster.years))
        assert over_years / over_years[1] == pytest.approx(np.array(of_run) / on_demand), years
        winners.append(int(np.argmin(of_run)))
        assert winners[-1] == int(np.argmin(over_years))
    assert set(winners) == {0, 1, 2}


OWN: dict[str, Any] = {
    "name": "dc1",
    "capex_usd_per_accelerator": 32_000.0,
    "residual_share": 0.25,
    "kw_per_accelerator": 1.3,
    "pue": 1.3,
    "usd_per_kwh": 0.09,
    "opex_share_per_year": 0.06,
}


@pytest.mark.parametrize("utilisation", [0.3, 0.7, 0.95])
@pytest.mark.parametrize(("on_demand", "reserved"), [("4.00", "1.30"), ("1.60", "3.00"), ("5.00", "2.60")])
def test_both_questions_have_one_answer(settings: Settings, utilisation: float, on_demand: str, reserved: str) -> None:
    """The same fleet, prices and drift: what a comparison says is saved over the years is what buy or rent says, and so is the winner."""
    context = selling(build_context(settings), (offer(on_demand), offer(reserved, "gcp", "us-central1", pricing="reserved_1y")))
    entry = OWN | {"accelerator": "H100", "count": 128, "years": 3.0, "utilisation": utilisation, "cost_of_capital": 0.09}
    run = compared(context, {"counts": [128]}, on_prem=[entry | {"cloud_price_decline_per_year": 0.0}])
    demand = {"accelerator": "H100", "count": 128, "start": date(2027, 1, 1), "years": 3.0, "utilisation": utilisation}
    fleet = buy_or_rent(
        context, {"demand": demand, "own": [OWN], "cost_of_capital": 0.09, "list_price_change_per_year": 0.0, "trials": 100}
    )
    npv = {option.kind: option.npv_usd.p50 for option in fleet.options}
    saved = {verdict.pricing: verdict.npv_saved_usd for verdict in run.break_even}
    assert saved["on_demand"] == pytest.approx(npv["on_demand"] - npv["own"], rel=1e-6)
    assert saved["reserved_1y"] == pytest.approx(npv["reserved"] - npv["own"], rel=1e-6)
    pricing = {"owned": "own", "reserved_1y": "reserved"}
    ranked = [pricing.get(option.offer.pricing, option.offer.pricing) for option in run.options]
    assert ranked == sorted((kind for kind in npv if kind != "mix"), key=lambda kind: npv[kind])
