"""Why a run and the years of a fleet disagree on owning or renting: what would mislead whoever reads the ranking alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.domain.comparison.options import OWNED, BreakEvenVerdict, Option
from service.engine.procurement.cash_flows import OnDemandPrice
from service.engine.procurement.options import RentedCapacity, option_npvs
from service.engine.procurement.ownership import delivered_share
from service.formats.headline import money
from service.presets.procurement.defaults import procurement_default
from service.usecases.comparison.break_even import fleet_inputs, make_rival, paid_hours
from service.usecases.comparison.owned_hardware import OwnedHardware

SPOT, ON_DEMAND = "spot", "on_demand"
UNSURE = 0.5
ASK = "POST /v1/buy-or-rent compares the years"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A rented option and the verdict of owned hardware against it."""

    option: Option
    verdict: BreakEvenVerdict

    @property
    def run_usd(self) -> float:
        """Cost of the run on it."""
        return self.option.cost_usd.p50 if self.option.cost_usd else float("inf")


def explain_differences(
    owned_hardware: Sequence[OwnedHardware], options: Sequence[Option], verdicts: Sequence[BreakEvenVerdict]
) -> list[str]:
    """Where a run and the years disagree on owning or renting, and why; that the odds are against owning; that a mix costs less."""
    by_id = {option.id: option for option in options}
    own = {option.offer.provider: option for option in options if option.offer.pricing == OWNED}
    texts: list[str] = []
    for hardware in owned_hardware:
        option = own.get(hardware.provider)
        if option is None or option.cost_usd is None:
            continue
        name, variant = hardware.cluster.name, option.variant
        pairs = [_Pair(by_id[each.against], each) for each in verdicts if each.on_prem == name and each.variant == variant]
        lasting = [pair for pair in pairs if pair.option.offer.pricing != SPOT] or pairs
        texts += [
            *_of_years(hardware, option.cost_usd.p50, lasting),
            *_of_mix(hardware, option, lasting),
            *_of_spot(hardware, option, pairs),
        ]
    return texts


def _of_years(hardware: OwnedHardware, own_usd: float, pairs: Sequence[_Pair]) -> Iterator[str]:
    """That the run's cheaper side is not that of the years, and why; else that the odds are against owning."""
    if not pairs:
        return
    name, life = hardware.cluster.name, f"{float(hardware.cluster.years):g} years"
    first, best = min(pairs, key=lambda pair: pair.run_usd), min(pairs, key=lambda pair: pair.verdict.npv_saved_usd)
    saved, odds = best.verdict.npv_saved_usd, best.verdict.probability_buying_wins
    run_is_cheaper = own_usd < first.run_usd
    if run_is_cheaper and saved < 0:
        yield f"{name} costs less for this run, but over its {life} {best.option.id} costs {money(-saved)} less: {_why(hardware)}. {ASK}"
    elif not run_is_cheaper and saved > 0:
        yield f"{first.option.id} costs less for this run, but over its {life} {name} saves {money(saved)}: {_why(hardware)}. {ASK}"
    elif run_is_cheaper and odds < UNSURE:
        yield f"{name} costs least, but owning costs less than {best.option.id} in only {odds:.0%} of the trials: see break_even"


def _why(hardware: OwnedHardware) -> str:
    change, lead = hardware.list_change.p50, float(hardware.cluster.lead_time_months)
    causes = [f"list prices are assumed to change by {change:+.1%} a year"] if change else []
    causes += [f"its lead time of {lead:g} months is bridged with on-demand capacity"] if lead else []
    return " and ".join(causes) or "a run has other costs than accelerators, and fleets are paid by whole months"


def _of_mix(hardware: OwnedHardware, own: Option, pairs: Sequence[_Pair]) -> Iterator[str]:
    """That owning is beaten by a reserved base with peaks on demand alone, which no run can be ranked on."""
    rivals = [make_rival(pair.option, hardware, paid_hours(own)) for pair in pairs]
    on_demand = min((rival.usd_per_hour for rival in rivals if rival.option.offer.pricing == ON_DEMAND), default=None)
    reserved = tuple(RentedCapacity(rival.terms, rival.usd_per_hour) for rival in rivals if rival.option.commitment is not None)
    if on_demand is None or not reserved or min(pair.verdict.npv_saved_usd for pair in pairs) <= 0:
        return
    peak = float(procurement_default("peak_utilisation").value)
    inputs = replace(fleet_inputs(hardware), peak_utilisation=peak, rents=reserved, on_demand=OnDemandPrice(on_demand), mixes=True)
    npvs = option_npvs(inputs)[:, 0]
    best = int(npvs.argmin())
    if best > len(reserved):
        saved = money(float(npvs[0] - npvs[best]))
        yield f"over its years, reserving the base and renting peaks on demand costs {saved} less than {hardware.cluster.name}: {ASK}"


def _of_spot(hardware: OwnedHardware, own: Option, pairs: Sequence[_Pair]) -> Iterator[str]:
    """That spot costs least for the run, and cannot serve a fleet as much in use as the owned hardware."""
    first = min(pairs, key=lambda pair: pair.run_usd, default=None)
    time = None if first is None else first.option.time
    if first is None or time is None or own.cost_usd is None or first.option.offer.pricing != SPOT or first.run_usd >= own.cost_usd.p50:
        return
    share = time.accelerator_hours.p50 / (time.wall_clock_hours.p50 * first.option.count)
    if float(delivered_share(hardware.cluster)) > share:
        yield (
            f"spot costs less for this run than {hardware.cluster.name}; it is available only {share:.0%} of the time, less than"
            f" {hardware.cluster.name} is in use, so it is left out of the comparison over the years: {ASK}"
        )
