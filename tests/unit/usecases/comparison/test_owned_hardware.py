"""Owned hardware among the options, and from when on it beats renting."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import InvalidRequest, UnknownName
from service.engine.procurement.ownership import owned_cost
from service.presets.comparison.defaults import is_plausible
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.regions import find_region
from service.presets.procurement.ownership import complete_cluster
from service.usecases.comparison.compare import Comparison
from tests.unit.usecases.comparison.comparing import WORKLOAD, compared, offer, selling
from tests.unit.usecases.requests import pointer_of

DC1: dict[str, Any] = {
    "name": "dc1",
    "accelerator": "H100",
    "count": 128,
    "capex_usd_per_accelerator": 32_000.0,
    "years": 4.0,
    "residual_share": 0.1,
    "cost_of_capital": 0.08,
    "utilisation": 0.7,
    "kw_per_accelerator": 1.3,
    "pue": 1.3,
    "usd_per_kwh": 0.09,
    "opex_share_per_year": 0.06,
}
COUNT = {"counts": [128]}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context that sells the same machine dearer and cheaper than it is owned."""
    return selling(build_context(settings), (offer("6.88"), offer("1.10", "verda", "FIN-01")))


def owned(found: Comparison, name: str = "dc1") -> Option:
    (option,) = (option for option in found.options if option.offer.provider == f"on_prem:{name}")
    return option


def test_an_owned_machine_costs_its_delivered_hours(context: AppContext) -> None:
    """At the price of `owned_cost`, with the same time as the same machine rented, without instances or terms."""
    found = compared(context, COUNT, on_prem=[DC1], workload=WORKLOAD | {"storage": {"checkpoints_kept": 0}})
    option, rented = owned(found), found.options[-1]
    plant, _ = complete_cluster(find_accelerator("H100").accelerator, DC1)
    assert option.offer.usd_per_accelerator_hour == pytest.approx(owned_cost(plant).usd_per_delivered_accelerator_hour)
    assert found.on_prem[0].usd_per_delivered_accelerator_hour == option.offer.usd_per_accelerator_hour
    assert (option.offer.pricing, option.count, option.nodes, option.offer.source) == ("owned", 128, 16, "caller")
    assert option.time is not None
    assert option.cost_usd is not None
    assert option.time == rented.time
    assert option.cost_usd.p50 == pytest.approx(option.time.accelerator_hours.p50 * option.offer.usd_per_accelerator_hour)
    assert sum(found.on_prem[0].lines_usd_per_year.values()) == pytest.approx(found.on_prem[0].annual_usd)


def test_it_stands_among_the_options_by_its_rank(context: AppContext) -> None:
    """Between the cheaper and the dearer cloud; shown even where the answer is cut before it."""
    found = compared(context, COUNT, on_prem=[DC1])
    assert [option.offer.provider for option in found.options] == ["verda", "on_prem:dc1", "aws"]
    cut = compared(context, COUNT, on_prem=[DC1], limit=1)
    assert [(option.rank, option.offer.provider) for option in cut.options] == [(1, "verda"), (2, "on_prem:dc1")]


def test_its_energy_is_that_of_its_own_power_and_building(context: AppContext) -> None:
    """As it draws, times its PUE, on the grid that is stated for the workload, or that of a site nobody knows."""
    option = owned(compared(context, COUNT, on_prem=[DC1 | {"load_factor": None}]))
    assert option.time is not None
    assert option.energy is not None
    plant, _ = complete_cluster(find_accelerator("H100").accelerator, DC1)
    mwh = option.time.accelerator_hours.p50 * 1.3 * float(plant.load_factor) * 1.3 / 1000
    assert option.energy.mwh == pytest.approx(mwh)
    assert option.energy.tco2e == pytest.approx(mwh * find_region("on_prem").grid_gco2_per_kwh / 1000)
    green = owned(compared(context, COUNT, on_prem=[DC1], workload=WORKLOAD | {"energy": {"grid_gco2_per_kwh": 20.0}}))
    assert green.energy is not None
    assert green.energy.tco2e == pytest.approx(green.energy.mwh * 20 / 1000)


def test_its_grid_is_its_own(context: AppContext) -> None:
    """Stated for the plant it is no other offer's, and above the workload's; not stated anywhere it is assumed and said."""
    found = compared(context, COUNT, on_prem=[DC1 | {"grid_gco2_per_kwh": 20.0}])
    hydro, usual = owned(found), compared(context, COUNT, on_prem=[DC1])
    assert hydro.energy is not None
    assert hydro.energy.tco2e == pytest.approx(hydro.energy.mwh * 20 / 1000)
    assert found.options[-1].energy == usual.options[-1].energy
    everywhere = WORKLOAD | {"energy": {"grid_gco2_per_kwh": 500.0}}
    both = owned(compared(context, COUNT, on_prem=[DC1 | {"grid_gco2_per_kwh": 20.0}], workload=everywhere))
    assert both.energy == hydro.energy
    field = "on_prem.dc1.grid_gco2_per_kwh"
    assert {each.field: each.value for each in usual.assumptions}[field] == find_region("on_prem").grid_gco2_per_kwh
    assert field not in {each.field for each in found.assumptions}
    assert field not in {each.field for each in compared(context, COUNT, on_prem=[DC1], workload=everywhere).assumptions}


def test_its_power_is_paid_once(context: AppContext) -> None:
    """The workload's price of electricity is no second bill for it."""
    dear = WORKLOAD | {"energy": {"usd_per_kwh": 5.0}}
    assert owned(compared(context, COUNT, on_prem=[DC1], workload=dear)).cost_usd == owned(compared(context, COUNT, on_prem=[DC1])).cost_usd


def test_a_lead_time_delays_it(context: AppContext) -> None:
    """Past the deadline where the clouds keep it, and its probability of keeping it says so too."""
    constraints = {"start": date(2027, 1, 4), "deadline": date(2027, 6, 30)}
    there, ordered = (
        owned(compared(context, COUNT, on_prem=[DC1 | {"lead_time_months": months}], constraints=constraints)) for months in (0, 9)
    )
    assert there.feasible
    assert ordered.reasons == tuple(text for text in ordered.reasons if "later than the deadline" in text) != ()
    assert there.time is not None
    assert ordered.time is not None
    assert (there.time.deadline_probability or 0) > 0.9
    assert (ordered.time.deadline_probability or 0) < 0.1


def test_at_the_break_even_price_nothing_is_won_or_lost(context: AppContext, settings: Settings) -> None:
    """Rented for just that, buying saves nothing over the plant's years, and its odds are about even."""
    first = compared(context, COUNT, on_prem=[DC1]).break_even[0]
    price = Decimal(repr(first.usd_per_accelerator_hour))
    even = compared(selling(context, (offer(str(price)),)), COUNT, on_prem=[DC1]).break_even[0]
    assert even.against_usd_per_accelerator_hour == pytest.approx(float(price))
    assert even.npv_saved_usd == pytest.approx(0, abs=1.0)
    assert even.utilisation == pytest.approx(DC1["utilisation"])
    assert 0.1 < even.probability_buying_wins < 0.9


def test_break_even_stands_against_what_can_be_had(settings: Settings) -> None:
    """Feasible options only, where there is one; with the best of every kind of pricing, however few are shown."""
    market = (
        *(offer(f"{price:.2f}", "aws", f"us-east-{index}", pricing="spot") for index, price in enumerate((1.0, 1.1, 1.2))),
        *(
            offer("0.50", "cheap", "US", accelerator_count=1),
            offer("3.00", "gcp", "us-central1"),
            offer("2.50", "gcp", "us-central1", pricing="reserved_1y"),
        ),
    )
    found = compared(selling(build_context(settings), market), COUNT, on_prem=[DC1], limit=1)
    assert [each.pricing for each in found.break_even] == ["spot", "on_demand", "reserved_1y"]
    assert [each.against_usd_per_accelerator_hour for each in found.break_even[1:]] == pytest.approx([3.0, 2.5 / 0.7])
    assert not any("cheap" in each.against for each in found.break_even)
    assert [each.pricing for each in found.break_even if each.sensitivity] == ["on_demand"]
    nowhere = compared(selling(build_context(settings), market), COUNT, on_prem=[DC1], constraints={"jurisdictions": ["JP"]}, limit=1000)
    assert len(nowhere.break_even) == len(market)
    spot = compared(selling(build_context(settings), market[:3]), COUNT, on_prem=[DC1])
    assert [bool(each.sensitivity) for each in spot.break_even] == [True, False, False]


def test_a_verdict_that_flips_nowhere_plausible_does_not_flip(context: AppContext) -> None:
    """Electricity at some dollars a kWh, or a PUE of 4, tells nobody anything."""
    found = [turn for each in compared(context, COUNT, on_prem=[DC1]).break_even for turn in each.sensitivity or ()]
    flips = {turn.input: turn.flips_at for turn in found if turn.flips_at is not None}
    assert "capex_usd_per_accelerator" in flips
    assert all(is_plausible(name, value) for name, value in flips.items())
    assert {turn.input for turn in found if turn.flips_at is None} >= {"pue"}


def test_its_grid_may_be_that_of_a_region(context: AppContext) -> None:
    """Where none is stated; a region nobody knows is told where it stands."""
    found = owned(compared(context, COUNT, on_prem=[DC1 | {"region": "country:FRA"}]))
    assert found.energy is not None
    assert found.energy.tco2e == pytest.approx(found.energy.mwh * find_region("country:FRA").grid_gco2_per_kwh / 1000)
    stated = owned(compared(context, COUNT, on_prem=[DC1 | {"region": "country:FRA", "grid_gco2_per_kwh": 20.0}]))
    assert stated.energy is not None
    assert stated.energy.tco2e == pytest.approx(stated.energy.mwh * 20 / 1000)
    assert pointer_of(lambda: compared(context, COUNT, on_prem=[DC1 | {"region": "mars"}]), UnknownName) == "/on_prem/0/region"


def test_break_even_stands_against_every_rented_option_shown(context: AppContext) -> None:
    """The dearer the rent, the less use and time it takes, and the surer buying wins; what never pays is null."""
    found = compared(context, COUNT, on_prem=[DC1])
    cheap, dear = found.break_even
    assert [each.against for each in found.break_even] == [option.id for option in found.options if option.offer.pricing != "owned"]
    assert cheap.npv_saved_usd < 0 < dear.npv_saved_usd
    assert cheap.months is None
    assert dear.months is not None
    assert 0 < dear.months < 48
    assert dear.utilisation is not None
    assert dear.utilisation < DC1["utilisation"]
    assert cheap.probability_buying_wins < dear.probability_buying_wins
    assert dear.probability_buying_wins > 0.9
    assert cheap.sensitivity
    assert dear.sensitivity is None
    assert "utilisation" in {turn.input for turn in cheap.sensitivity}


def test_a_break_even_weighs_what_is_paid(settings: Settings) -> None:
    """Whole instances and spares of both: of the same number their price, of more accelerators the rent of the same work."""
    context = selling(build_context(settings), (offer("2.00"),))
    found = compared(context, {"counts": [100, 128, 256]}, on_prem=[DC1])
    rented = {option.id: option for option in found.options}
    assert {option.count: option.spare_accelerators for option in found.options} == {100: 0, 128: 0, 256: 8}
    own = owned(found)
    assert own.time is not None
    for each in found.break_even:
        option = rented[each.against]
        assert option.time is not None
        paid = option.time.wall_clock_hours.p50 * (option.nodes * 8 + option.spare_accelerators)
        assert each.against_usd_per_accelerator_hour == pytest.approx(2.0 * paid / own.time.accelerator_hours.p50)
    same = compared(context, {"counts": [256]}, on_prem=[DC1 | {"count": 256}])
    assert [each.against_usd_per_accelerator_hour for each in same.break_even] == pytest.approx([2.0])


def test_owned_machines_alone_are_compared(context: AppContext) -> None:
    """Also where nobody sells what is asked for; then there is nothing to break even with."""
    found = compared(context, {"accelerators": ["MI300X"]}, on_prem=[DC1, DC1 | {"name": "dc2", "count": 64}])
    assert (found.considered, found.break_even, found.prices_as_of) == (2, (), None)
    assert {owned(found).count, owned(found, "dc2").count} == {128, 64}


def test_every_variant_runs_on_every_plant(context: AppContext) -> None:
    """And each is weighed against the options of its own kind."""
    variants = [{"name": "short", "workload": {"data": {"tokens": 10**11}}}, {"name": "long", "workload": {}}]
    found = compared(context, COUNT, on_prem=[DC1, DC1 | {"name": "dc2", "capex_usd_per_accelerator": 20_000.0}], variants=variants)
    assert found.considered == 2 * (2 + 2)
    pairs = {(each.on_prem, each.against.partition(":")[0]) for each in found.break_even}
    assert pairs == {(plant, name) for plant in ("dc1", "dc2") for name in ("short", "long")}


@pytest.mark.parametrize(
    ("plants", "kind", "pointer"),
    [
        ([DC1, DC1], InvalidRequest, "/on_prem/1/name"),
        ([DC1, DC1 | {"name": "dc2", "accelerator": "H1000"}], UnknownName, "/on_prem/1/accelerator"),
        ([DC1 | {"capex_usd_per_accelerator": None}], InvalidRequest, "/on_prem/0/capex_usd_per_accelerator"),
    ],
)
def test_problems_point_at_the_plant(context: AppContext, plants: list[dict[str, Any]], kind: Any, pointer: str) -> None:
    """And its field."""
    assert pointer_of(lambda: compared(context, on_prem=plants), kind) == pointer


def test_what_was_assumed_of_a_plant_is_said(context: AppContext) -> None:
    """Under its name."""
    fields = {each.field for each in compared(context, on_prem=[DC1]).assumptions}
    assert "on_prem.dc1.availability" in fields
    assert "on_prem.dc1.pue" not in fields


def test_idle_hours_of_a_reservation_are_charged_as_those_of_owned_hardware(settings: Settings) -> None:
    """Beside owned hardware a reservation costs its price over the utilisation, its whole term stands apart; alone it costs its term."""
    context = selling(build_context(settings), (offer("2.10", pricing="reserved_1y"), offer("3.00", "gcp", "us-central1")))
    found = compared(context, COUNT, on_prem=[DC1])
    reserved = next(option for option in found.options if option.offer.pricing == "reserved_1y")
    on_demand = next(option for option in found.options if option.offer.pricing == "on_demand")
    alone = next(option for option in compared(context, COUNT).options if option.offer.pricing == "reserved_1y")
    assert reserved.cost_usd is not None
    assert on_demand.cost_usd is not None
    assert alone.cost_usd is not None
    assert reserved.cost_usd.p50 / on_demand.cost_usd.p50 == pytest.approx(2.1 / 0.7 / 3.0, rel=0.01)
    assert reserved.committed_usd == pytest.approx(128 * 8760 * 2.1)
    assert alone.cost_usd.p50 == pytest.approx(128 * 8760 * 2.1, rel=0.01)
    assert on_demand.committed_usd is None
    assert owned(found).committed_usd == pytest.approx(found.on_prem[0].npv_usd)
    assumed = {each.field: each.value for each in found.assumptions}
    assert assumed["candidates.reserved_utilisation"] == pytest.approx(0.7)


def test_a_run_that_is_cheaper_on_what_loses_over_the_years_says_why(settings: Settings) -> None:
    """A price just above what owning costs today, and list prices that fall by a third a year; in the warnings, first."""
    context = selling(build_context(settings), (offer("2.05"),))
    falling = compared(context, COUNT, on_prem=[DC1 | {"cloud_price_decline_per_year": 0.33}])
    assert owned(falling).rank == 1
    assert falling.break_even[0].npv_saved_usd < 0
    assert "list prices are assumed to change by -33.0% a year" in falling.warnings[0]
    steady = compared(context, COUNT, on_prem=[DC1 | {"cloud_price_decline_per_year": 0.0}])
    assert not any("assumed to change" in warning for warning in steady.warnings)
    rising = compared(selling(build_context(settings), (offer("1.80"),)), COUNT, on_prem=[DC1 | {"cloud_price_decline_per_year": -0.3}])
    assert owned(rising).rank == 2
    assert rising.break_even[0].npv_saved_usd > 0
    assert "saves" in rising.warnings[0]


def test_the_wait_for_spot_is_not_paid(settings: Settings) -> None:
    """The rent of spot for an owned hour's work has its lost work in it, not the hours until capacity is back."""
    context = selling(build_context(settings), (offer("1.10", pricing="spot"),))
    found = compared(context, COUNT, on_prem=[DC1])
    spot = next(option for option in found.options if option.offer.pricing == "spot")
    assert spot.time is not None
    assert spot.time.wall_clock_hours.p50 > 1.2 * spot.time.accelerator_hours.p50 / 128
    assert 1.10 < found.break_even[0].against_usd_per_accelerator_hour < 1.25


def test_spot_that_costs_less_for_a_run_is_no_fleet(settings: Settings) -> None:
    """It can be had in 59 % of the time, the owned hardware is used in 70 %; used less, nothing is said."""
    context = selling(build_context(settings), (offer("0.90", pricing="spot"), offer("4.00", "gcp", "us-central1")))
    busy = compared(context, COUNT, on_prem=[DC1])
    assert any("it is available only 59% of the time" in warning for warning in busy.warnings)
    idle = compared(context, COUNT, on_prem=[DC1 | {"utilisation": 0.3}])
    assert not any("is available only" in warning for warning in idle.warnings)


def test_a_mix_that_beats_owning_is_named(settings: Settings) -> None:
    """A reservation just dearer than owning for all hours, with peaks on demand; far dearer it is none."""
    on_demand = offer("2.60", "gcp", "us-central1")
    near, far = (
        compared(selling(build_context(settings), (offer(usd, pricing="reserved_1y"), on_demand)), COUNT, on_prem=[DC1])
        for usd in ("1.50", "2.50")
    )
    assert any("reserving the base and renting peaks on demand costs" in warning for warning in near.warnings)
    assert not any("reserved base" in warning for warning in far.warnings)
