"""Buying or renting on a small market: what takes part, what is assumed, what turns the verdict, and generations of fleets."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest, NoOffer
from service.domain.procurement.answer import BuyOrRent, ProcurementOption
from service.usecases.procurement.buy_or_rent import buy_or_rent
from tests.unit.usecases.comparison.comparing import H200, offer, selling
from tests.unit.usecases.requests import pointer_of

DEMAND: dict[str, Any] = {"accelerator": "H100", "count": 256, "start": date(2027, 1, 1), "years": 3.0, "utilisation": 0.7}
OWN: dict[str, Any] = {
    "name": "dc1",
    "capex_usd_per_accelerator": 32_000.0,
    "residual_share": 0.25,
    "kw_per_accelerator": 1.3,
    "pue": 1.3,
    "usd_per_kwh": 0.09,
    "opex_share_per_year": 0.06,
}
QUOTE: dict[str, Any] = {"name": "lambda 3y", "pricing": "reserved_3y", "usd_per_accelerator_hour": 1.89}
MARKET = (
    offer("3.90"),
    offer("1.60", pricing="spot"),
    offer("2.40", pricing="reserved_1y"),
    offer("2.95", "nebius", "eu-north1"),
    offer("2.20", "runpod", "US", accelerator_count=1),
)


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings), MARKET)


def answered(context: AppContext, **changed: Any) -> BuyOrRent:
    """The answer with 200 trials; `demand` and `rent` are laid over the usual ones."""
    request = {
        "demand": DEMAND | changed.pop("demand", {}),
        "own": [OWN],
        "rent": {"quotes": [QUOTE]},
        "cost_of_capital": 0.09,
        "trials": 200,
    }
    return buy_or_rent(context, request | changed)


def option(found: BuyOrRent, name: str) -> ProcurementOption:
    return next(each for each in found.options if each.name.startswith(name))


def test_every_way_is_an_option(context: AppContext) -> None:
    """Fleets, quotes, offers in whole nodes, and a mix for each kind of reserved terms; one machine alone is no node of a fleet."""
    found = answered(context)
    assert {each.kind for each in found.options} == {"own", "reserved", "on_demand", "spot", "mix"}
    assert sum(each.kind == "mix" for each in found.options) == 2
    assert not any("runpod" in each.name for each in found.options)
    assert found.considered == 8
    assert [each.rank for each in found.options] == list(range(1, 9))
    assert {each.field for each in found.assumptions} >= {
        "rent.instances",
        "own.tax_rate",
        "demand.peak_utilisation",
        "own.dc1.availability",
    }


def test_the_two_that_are_compared_have_curves_with_bands(context: AppContext) -> None:
    """From the same trials as their cost: the last of a curve is its range; what is not uncertain has no band."""
    found = answered(context)
    assert {curve.option for curve in found.curves} == {found.verdict.choice, found.verdict.against}
    for curve in found.curves:
        npv = option(found, curve.option).npv_usd
        ends = (curve.p10_usd[-1], curve.p50_usd[-1], curve.p90_usd[-1])
        assert ends == pytest.approx((npv.p10, npv.p50, npv.p90))
        assert len(curve.p50_usd) == DEMAND["years"] * 12 + 1
        assert all(low <= middle <= high for low, middle, high in zip(curve.p10_usd, curve.p50_usd, curve.p90_usd, strict=True))
    alone = answered(context, own=[], rent={"providers": [], "quotes": [QUOTE]})
    assert [curve.option for curve in alone.curves] == ["lambda 3y"]
    assert alone.curves[0].p10_usd == alone.curves[0].p90_usd


def test_a_node_alone_takes_any_instance(context: AppContext) -> None:
    """Of one accelerator too."""
    assert any("runpod" in each.name for each in answered(context, demand={"count": 1}).options)


def test_spot_takes_part_where_it_can_serve_the_demand(context: AppContext) -> None:
    """More than it can be had, it is told with its cost; less, it may win; with nothing else it does."""
    busy, idle = answered(context), answered(context, demand={"utilisation": 0.3})
    assert "spot is available 59% of the time, but 70% is needed" in (option(busy, "aws us-east-1 eight-H100 spot").ruled_out or "")
    assert any("aws spot (eight-H100 in us-east-1) would cost" in warning for warning in busy.warnings)
    assert idle.verdict.kind == "spot"
    assert "taken back at any time; the cheapest capacity that stays" in idle.summary.text
    alone = answered(context, own=[], rent={"pricing": ["spot"]})
    assert (alone.verdict.kind, alone.verdict.against, alone.verdict.grid) == ("spot", None, None)


def test_fresh_prices_come_before_stale_ones(settings: Settings) -> None:
    """Of the same kind; where all are stale the cheapest is taken, and said."""
    old = offer("1.00", "verda", "FIN-01", days=300)
    both = answered(selling(build_context(settings), (old, offer("2.95", "nebius", "eu-north1"))), own=[], rent={})
    assert both.verdict.choice == "nebius eu-north1 eight-H100 on_demand"
    assert both.options[0].ruled_out is not None
    assert "its price is stale: ask for a quote" in both.warnings[0]
    stale = answered(selling(build_context(settings), (old,)), own=[], rent={})
    assert stale.verdict.choice == "verda FIN-01 eight-H100 on_demand"
    assert any("every on demand price is stale" in warning for warning in stale.warnings)


def test_a_quote_has_its_terms(context: AppContext) -> None:
    """One that ended or is for more takes no part; one that ends soon is told; a term of 18 months is paid to its end."""
    quotes = [
        QUOTE | {"name": "ended", "expires": date(2026, 11, 1)},
        QUOTE | {"name": "soon", "expires": date(2026, 11, 30)},
        QUOTE | {"name": "large", "minimum_accelerators": 1024},
        {"name": "months", "pricing": "reserved_1y", "term_months": 24, "usd_per_accelerator_hour": 1.5, "upfront_share": 0.5},
    ]
    found = answered(context, rent={"providers": [], "quotes": quotes})
    assert "ended on 2026-11-01" in (option(found, "ended").ruled_out or "")
    assert "1,024" in (option(found, "large").ruled_out or "")
    assert option(found, "soon").ruled_out is None
    assert any("ends in 9 days" in warning for warning in found.warnings)
    months = option(found, "months")
    assert months.offer is not None
    assert months.offer.term_hours == 24 * 730
    assert len(months.years) == 4
    assert months.years[3].used_accelerator_hours == 0
    assert months.years[3].cash_usd > 0
    assert any("paid for 12 months after the demand ends" in warning for warning in found.warnings)


def test_several_fleets_are_each_an_option(context: AppContext) -> None:
    """Half as many owned leave the rest to be rented on demand."""
    half = OWN | {"name": "half", "count": 128}
    found = answered(context, own=[OWN, half])
    assert option(found, "half").on_demand is not None
    assert option(found, "dc1").on_demand is None
    assert option(found, "half").years[0].lines_usd["on demand"] > 0
    assert any(warning.startswith("half does not cover ") for warning in found.warnings)


def test_the_next_generation_is_as_fast_as_modelled(context: AppContext) -> None:
    """Sold after a year and a half for H200s: fewer, by their throughput on the reference run; stated, by that."""
    change = {"after_years": 1.5, "accelerator": "H200", "capex_usd_per_accelerator": 35_000.0}
    found = answered(context, own=[OWN | {"refresh": [change]}])
    assumed = {each.field: each for each in found.assumptions}
    speedup = assumed["own.dc1.refresh.0.speedup"]
    assert 1.0 < speedup.value < 1.6  # type: ignore[operator]  # a number
    assert "llama-3.1-8b" in speedup.source
    years = option(found, "dc1").years
    assert years[1].lines_usd["capital"] > 0 > years[1].lines_usd["resale"]
    stated = answered(context, own=[OWN | {"refresh": [change | {"speedup": 2.0}]}])
    assert option(stated, "dc1").years[1].lines_usd["capital"] == pytest.approx(128 * 35_000)
    bought = answered(context, own=[OWN | {"accelerator": H200, "speedup": 1.6}])
    assert option(bought, "dc1").count == 160


def test_tax_is_the_companys(context: AppContext) -> None:
    """It lowers every option; fleets cannot have different rates, and straight line over five years is assumed."""
    before, after = answered(context), answered(context, own=[OWN | {"tax_rate": 0.25}])
    assert all(option(after, name).npv_usd.p50 < option(before, name).npv_usd.p50 for name in ("dc1", "lambda 3y", "nebius"))
    assert option(after, "lambda 3y").npv_usd.p50 == pytest.approx(0.75 * option(before, "lambda 3y").npv_usd.p50)
    assert {"own.dc1.depreciation", "own.dc1.depreciation_years"} <= {each.field for each in after.assumptions}
    macrs = answered(context, own=[OWN | {"tax_rate": 0.25, "depreciation": "macrs_5_year"}])
    assert option(macrs, "dc1").npv_usd.p50 < option(after, "dc1").npv_usd.p50
    two = [OWN | {"tax_rate": 0.2}, OWN | {"name": "dc2", "tax_rate": 0.3}]
    assert pointer_of(lambda: answered(context, own=two), InvalidRequest) == "/own/1/tax_rate"


def _with(path: str, value: float) -> dict[str, Any]:
    """The request's sections with the field at a path of the flips set."""
    *_, name = path.split(".")
    if path.startswith("own."):
        return {"own": [OWN | {name: value}]}
    return {"demand": {name: value}} if path.startswith("demand.") else {name: value}


def test_flips_really_flip_when_asked_again(context: AppContext) -> None:
    """Each flip value, a hair beyond, makes the other side the best; it stays the best a hair before."""
    asked: dict[str, Any] = {
        "rent": {"providers": ["nebius"], "quotes": [QUOTE]},
        "demand": {"growth_per_year": 0.05},
        "list_price_change_per_year": -0.05,
    }
    found = answered(context, **asked)
    flips = [flip for flip in found.verdict.flips if flip.variable != "rent.price_factor"]
    assert len(flips) > 5
    for flip in flips:
        step = 1e-3 * (flip.to - flip.origin)
        for value, turned in ((flip.to + step, True), (flip.to - step, False)):
            laid = _with(flip.variable, value)
            again = answered(context, **asked | laid | {"demand": asked["demand"] | laid.get("demand", {})})
            assert (again.verdict.kind == "own") == ((found.verdict.kind == "own") != turned), flip


def test_the_grid_has_the_saving_of_the_base(context: AppContext) -> None:
    """At today's price and utilisation it is the difference of the two options."""
    found = answered(context, demand={"utilisation": 0.7})
    grid = found.verdict.grid
    assert grid is not None
    row, column = grid.utilisation.index(0.7), 3
    rent = next(each for each in found.options if each.name == grid.against)
    assert rent.offer is not None
    assert grid.usd_per_accelerator_hour[column] == pytest.approx(rent.offer.usd_per_accelerator_hour)
    assert grid.npv_saved_usd[row][column] == pytest.approx(rent.npv_usd.p50 - option(found, "dc1").npv_usd.p50)


def test_without_a_price_on_demand_the_bridge_is_the_cheapest_rent(context: AppContext) -> None:
    """It is said, and no mix is offered; with no rent at all a quote is asked for."""
    found = answered(context, own=[OWN | {"lead_time_months": 4}], rent={"providers": [], "quotes": [QUOTE]})
    assert found.mix is None
    said = next(each for each in found.assumptions if each.field == "rent.on_demand")
    assert "no on-demand price is known" in said.source
    nobody = {"own": [OWN | {"lead_time_months": 4}], "rent": {"providers": []}}
    assert pointer_of(lambda: answered(context, **nobody), InvalidRequest) == "/rent/quotes"
    assert pointer_of(lambda: answered(context, own=[], rent={"providers": []}), NoOffer) == "/rent"


def test_the_years_turn_a_verdict_where_value_is_lost_by_the_year(context: AppContext) -> None:
    """Rented for a year, bought for long: the number of years is among the flips, and flips."""
    own = {name: value for name, value in OWN.items() if name != "residual_share"} | {"price_decline_per_year": 0.7}
    found = answered(context, own=[own], rent={"providers": ["nebius"]}, demand={"utilisation": 0.95})
    flip = next(each for each in found.verdict.flips if each.variable == "demand.years")
    again = answered(context, own=[own], rent={"providers": ["nebius"]}, demand={"utilisation": 0.95, "years": flip.to})
    assert (again.verdict.kind == "own") != (found.verdict.kind == "own")


def test_the_same_snapshot_gives_the_same_answer(context: AppContext) -> None:
    """To the last digit, by its name."""
    found = answered(context)
    assert answered(context, snapshot=found.price_snapshot) == replace(found)
