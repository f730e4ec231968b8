"""The options of an answer that are shown in detail, with their monthly cash flows, which the engine makes from the answer's own inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.procurement.ownership import OwnedCluster
from service.engine.procurement.cash_flows import FleetPhase, OnDemandPrice, RentTerms, Scenarios, fleet_streams, rent_streams
from service.engine.procurement.demand import Demand, fleet_demand, planned_demand
from service.engine.procurement.present_value import discount_factors
from service.engine.procurement.price_paths import HOURS_PER_MONTH, list_price_index, paid_months
from service.engine.procurement.streams import at_end_of_month, line_flows
from service.formats.option_words import option_words

Answer = Mapping[str, Any]
FloatArray = NDArray[np.float64]
MOST_DETAILED = 12
KIND_WORDS = {"own": "own", "reserved": "reserved", "on_demand": "on demand", "spot": "spot", "mix": "mix"}


@dataclass(frozen=True)
class DetailedOption:
    """An option with its cash flows: generations of an owned fleet, or the terms of a rent and its price of an hour of work."""

    option: Answer
    phases: tuple[FleetPhase, ...]
    terms: RentTerms | None
    usd_per_hour: float
    lines: dict[str, FloatArray]

    @property
    def name(self) -> str:
        return str(self.option["name"])

    @property
    def words(self) -> str:
        """The option as people read it."""
        return option_words(self.option)

    @property
    def kind(self) -> str:
        return str(self.option["kind"])

    @cached_property
    def cash(self) -> FloatArray:
        """Cash by month, from the start to the last month of any option."""
        return np.asarray(sum(self.lines.values()))


@dataclass(frozen=True)
class CashModel:
    """The answer, what its options share, and those shown in detail, the cheapest first."""

    answer: Answer
    scenarios: Scenarios
    on_demand: OnDemandPrice | None
    last_month: int
    options: tuple[DetailedOption, ...]

    @cached_property
    def discount(self) -> FloatArray:
        """Value at the start of a dollar at the end of each month."""
        return discount_factors(self.answer["inputs"]["cost_of_capital"], self.last_month)

    def cumulative(self, shown: DetailedOption) -> FloatArray:
        """Discounted cash paid by the end of each month."""
        return np.asarray(np.cumsum(shown.cash * self.discount))

    @property
    def bands(self) -> Sequence[Answer]:
        """The curves with a range of the options that the verdict compares; none in answers of earlier versions."""
        return [curve for curve in self.answer.get("curves", ()) if curve["p10_usd"] != curve["p90_usd"]]

    def find(self, name: str | None) -> DetailedOption | None:
        """The detailed option of a name."""
        return next((each for each in self.options if each.name == name), None)

    @property
    def sides(self) -> tuple[DetailedOption | None, DetailedOption | None]:
        """The best owned fleet and the best rent, which the verdict compares."""
        verdict = self.answer["verdict"]
        names = (verdict["choice"], verdict["against"])
        own, rent = names if verdict["kind"] == "own" else names[::-1]
        return self.find(own), self.find(rent)

    @property
    def shown(self) -> tuple[DetailedOption, ...]:
        """The verdict's choice, what it is compared with, and the best of every other kind."""
        verdict = self.answer["verdict"]
        first = [each for name in (verdict["choice"], verdict["against"]) if (each := self.find(name))]
        kinds = {each.kind for each in first}
        for each in self.options:
            if each.kind not in kinds and each.option["ruled_out"] is None:
                kinds.add(each.kind)
                first.append(each)
        return tuple(sorted(first, key=lambda each: each.option["rank"]))


def cash_model(answer: Answer) -> CashModel:
    """The model of an answer to buying or renting, as JSON."""
    inputs, demand = answer["inputs"], answer["demand"]
    peak = inputs["on_demand"]
    on_demand = OnDemandPrice(peak["usd_per_accelerator_hour"], peak["contract"]) if peak else None
    scenarios = Scenarios(
        demand=_demand(inputs, demand),
        cost_of_capital=inputs["cost_of_capital"],
        list_change_per_year=inputs["list_price_change_per_year"],
        tax_rate=inputs["tax_rate"],
    )
    chosen = detailed(answer)
    terms = [_terms(option) for option in chosen]
    last = max((paid_months(each.term_months or 1, demand["months"]) for each in terms if each is not None), default=demand["months"])
    options = tuple(_detail(option, each, (scenarios, on_demand, last), inputs) for option, each in zip(chosen, terms, strict=True))
    return CashModel(answer, scenarios, on_demand, last, options)


def peak_usd_by_month(model: CashModel) -> FloatArray:
    """Price of an accelerator that is rented besides in each month, from the start on [USD]."""
    months = model.scenarios.months
    if model.on_demand is None:
        return np.zeros(months + 1)
    index = np.ones(months) if model.on_demand.fixed else list_price_index(model.scenarios.list_change_per_year, months)
    return at_end_of_month(np.asarray(model.on_demand.usd_per_hour) * HOURS_PER_MONTH * index)


def detailed(answer: Answer) -> list[Answer]:
    """The options shown in detail: the verdict's two, the best of each kind, owned fleets and the caller's quotes; the cheapest first."""
    eligible = [option for option in answer["options"] if option["ruled_out"] is None]
    verdict = answer["verdict"]
    best: dict[str, Answer] = {}
    for option in eligible:
        best.setdefault(option["kind"], option)
    wanted = [
        *(option for option in eligible if option["name"] in (verdict["choice"], verdict["against"])),
        *best.values(),
        *(option for option in answer["options"] if option["kind"] == "own"),
        *(option for option in eligible if option["offer"] and option["offer"]["source"] == "caller"),
    ]
    return sorted(_first_of_each(wanted), key=lambda option: option["rank"])


def _first_of_each(wanted: Iterable[Answer]) -> Sequence[Answer]:
    return list({option["rank"]: option for option in wanted}.values())[:MOST_DETAILED]


def _demand(inputs: Answer, demand: Answer) -> Demand:
    if inputs["plan"] is not None:
        return planned_demand(np.array(inputs["plan"]))
    return fleet_demand(demand["count"], demand["utilisation"], inputs["peak_utilisation"], inputs["growth_per_year"], demand["months"])


def _terms(option: Answer) -> RentTerms | None:
    offer = option["offer"]
    if offer is None:
        return None
    months = max(1, round(offer["term_hours"] / HOURS_PER_MONTH)) if offer["term_hours"] else 0
    return RentTerms(months, offer["upfront_share"], fixed=offer["contract"], count=float(option["count"]))


def _detail(option: Answer, terms: RentTerms | None, shared: tuple[Scenarios, OnDemandPrice | None, int], inputs: Answer) -> DetailedOption:
    scenarios, on_demand, last = shared
    if terms is None:
        phases = next(tuple(map(_phase, fleet["phases"])) for fleet in inputs["fleets"] if fleet["name"] == option["name"])
        return DetailedOption(option, phases, None, 0.0, line_flows(fleet_streams(phases, on_demand, scenarios), last))
    usd = option["offer"]["usd_per_accelerator_hour"] * (inputs["spot_hours_factor"] if option["kind"] == "spot" else 1.0)
    return DetailedOption(option, (), terms, usd, line_flows(rent_streams(terms, usd, on_demand, scenarios), last))


def _phase(phase: Answer) -> FleetPhase:
    cluster = OwnedCluster(
        name="",
        accelerator=phase["accelerator"],
        count=phase["count"],
        years=0.0,
        utilisation=0.0,
        colo_includes_power=phase["colo_includes_power"],
        **phase["costs"],
    )
    return FleetPhase(cluster, phase["ordered_month"], phase["sold_month"], phase["speedup"], tuple(phase["depreciation"]))
