"""What a size costs to train and to serve on a machine, for the search of the optimum: tables over sizes, through the step model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, UnknownName
from service.domain.quantities import Range
from service.domain.serving.requirements import MeanRequest, ServingMachine, WeightFormat
from service.domain.training.hardware import Accelerator
from service.domain.training.model import Transformer
from service.domain.training.run import Cluster
from service.engine.scaling.laws import Floats
from service.engine.scaling.optimum import interpolate_cost
from service.engine.serving.configurations import cheapest_usd_per_request
from service.engine.serving.model import ServingSetup, describe_served_model
from service.engine.serving.roofline import throughput_spread
from service.engine.training.cost import total_usd
from service.engine.training.energy import energy_mwh
from service.engine.training.estimate import checkpoint_tb
from service.engine.training.run_time import predict_run_time_in
from service.engine.training.search.layout_search import choose_layout
from service.engine.training.shape import infer_shape
from service.presets.hardware.accelerators import find_accelerator
from service.presets.scaling.laws import load_mixture_law
from service.presets.scaling.optimum import optimal_default
from service.presets.serving import default_shape, find_format, serving_defaults, serving_machine
from service.presets.training.utilisation import plan_calibration
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.machine import resolve_machine
from service.usecases.resolution.price import Price, find_price
from service.usecases.resolution.resolve import assemble_run
from service.usecases.resolution.training import resolve_training
from service.usecases.resolution.utilisation import resolve_utilisation

if TYPE_CHECKING:
    from service.domain.scaling.laws import Cost

Given = Mapping[str, Any]

# The tokens a size is timed with; time and money are proportional to them, or fixed.
TIMED_TOKENS = 1e12
# Sizes timed: some over all decades, then some around what they lead to.
COARSE_SIZES = np.geomspace(1e6, 1e13, 15)
FINE_SIZES, FINE_FACTOR = 13, 3.0
SERVED_SIZES = 29
# Hours that dollars are measured over: long enough that whole cents do not show.
MEASURED_HOURS = 1e4
LEAST_USD = 1e-6


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """A machine at a price, and the request's sections that say how it is trained on."""

    context: AppContext
    request: Given
    cluster: Cluster
    price: Price
    of_mixtures: bool

    def model(self, params: float) -> Transformer:
        """The usual model of so many parameters (active ones of a mixture)."""
        return default_model(params, of_mixtures=self.of_mixtures)


@dataclass(frozen=True, slots=True)
class SizeCost:
    """What one size takes: wall-clock hours a token; dollars whatever the tokens, and a token."""

    params: float
    hours_per_token: float
    usd_fixed: float
    usd_per_token: float


@dataclass(frozen=True, slots=True)
class SizeCostTable:
    """Rows by rising size, and the accelerators they are of. What is larger than the largest does not fit."""

    rows: tuple[SizeCost, ...]
    count: int

    @property
    def largest(self) -> float:
        """The largest size known to fit; sizes up to a step beyond are taken to fit too."""
        return self.rows[-1].params

    def usd(self) -> Cost:
        """Dollars of training."""
        return self._cost([row.usd_fixed for row in self.rows], [row.usd_per_token for row in self.rows])

    def wall_clock_hours(self) -> Cost:
        """Hours on the wall clock."""
        return self._cost([0.0] * len(self.rows), [row.hours_per_token for row in self.rows])

    def accelerator_hours(self) -> Cost:
        """Hours of all accelerators."""
        hours = self.wall_clock_hours()
        return lambda params, tokens: hours(params, tokens) * self.count

    def _cost(self, fixed: Sequence[float], per_token: Sequence[float]) -> Cost:
        # Cents round a tiny model's fixed costs to nothing, which has no logarithm.
        least = LEAST_USD if any(fixed) else 0.0
        known = interpolate_cost(np.array([row.params for row in self.rows]), np.maximum(fixed, least), np.array(per_token))
        beyond = self.largest * (1 + 1e-9)
        return lambda params, tokens: np.where(params <= beyond, known(params, tokens), np.inf)


@dataclass(frozen=True, slots=True)
class LifetimeServing:
    """Who serves the lifetime's tokens, to which mean request, at which price."""

    machine: ServingMachine
    stored: WeightFormat
    requests: MeanRequest
    price: Price
    load_factor: float
    tokens: float

    @property
    def number(self) -> float:
        """Requests of the lifetime."""
        return self.tokens / (self.requests.prompt_tokens + self.requests.output_tokens)

    def usd_per_request(self, model: Transformer, requests: MeanRequest | None = None) -> Range:
        """Dollars of a request, infinite where no replica that is searched holds the model. InvalidRequest for other networks."""
        setup = ServingSetup(describe_served_model(model), self.stored, self.machine, requests or self.requests)
        usd = cheapest_usd_per_request(setup, self.price.usd_per_accelerator_hour, self.load_factor)
        speed = throughput_spread(setup)
        return Range(usd / speed.p90, usd / speed.p50, usd / speed.p10)

    def usd(self, model: Transformer) -> float:
        """Dollars of all tokens of the lifetime at the median."""
        return self.number * self.usd_per_request(model).p50


def default_model(params: float, *, of_mixtures: bool) -> Transformer:
    """A model by its parameters alone; of a mixture the active ones, the others in the proportion of the law."""
    if of_mixtures:
        total = params * load_mixture_law().total_per_active
        return infer_shape({"params": total, "active_params": params, **default_shape()}).model
    return infer_shape({"params": params, **default_shape()}).model


def resolve_setup(context: AppContext, request: Given, *, of_mixtures: bool) -> TrainingSetup | None:
    """The machine and its price; None where no hardware is stated. What is assumed of them is noted by the estimate.

    Raises UnknownName, NoOffer with pointers.
    """
    if "hardware" not in request:
        return None
    notes = AssumptionLog()
    machine = resolve_machine(context, request, notes)
    return TrainingSetup(context, request, machine.cluster, machine.price, of_mixtures)


def cost_size(rig: TrainingSetup, params: float, model: Transformer) -> SizeCost:
    """One size through the step model. Raises DoesNotFit, InvalidRequest."""
    notes = AssumptionLog()
    sections = {**rig.request, "data": {"tokens": TIMED_TOKENS}}
    training = resolve_training(sections.get("training", {}), model, None, rig.cluster, notes)
    run = assemble_run(sections, model, training, rig.cluster, rig.price, notes)
    # Whole terms of a reservation are no price of tokens: what is left of the last stands in the estimate.
    run = replace(run, term_hours=0.0)
    utilisation = resolve_utilisation(rig.context, run, notes)
    choice = choose_layout(run.model, run.training, run.cluster, utilisation)
    if not choice.fits:
        raise DoesNotFit(f"{params:.3g} parameters do not fit on {rig.cluster.count:,} x {rig.cluster.accelerator.name}", "/hardware")
    timed = predict_run_time_in(run, choice, utilisation, plan_calibration())
    hours, checkpoint, interval_hours = timed.wall_clock_hours.p50, checkpoint_tb(run), timed.reliable.checkpoint_interval_minutes / 60

    def bill(wall_clock_hours: float) -> float:
        mwh = energy_mwh(wall_clock_hours * rig.cluster.count, run.energy)
        return total_usd(run, Range.exactly(wall_clock_hours), mwh, checkpoint, interval_hours).p50

    # Both long: a short run writes fewer checkpoints than it would keep.
    once, twice = bill(MEASURED_HOURS), bill(2 * MEASURED_HOURS)
    usd_per_hour = (twice - once) / MEASURED_HOURS
    return SizeCost(params, hours / TIMED_TOKENS, 2 * once - twice, usd_per_hour * hours / TIMED_TOKENS)


def coarse_cost_table(rig: TrainingSetup) -> SizeCostTable:
    """Sizes over all decades. Raises DoesNotFit, InvalidRequest where none can be trained."""
    return _table(rig, (), COARSE_SIZES)


def refine_cost_table(rig: TrainingSetup, table: SizeCostTable, around: Sequence[float]) -> SizeCostTable:
    """The table with sizes from a factor below the least of some to as much above the largest."""
    sizes = np.geomspace(min(around) / FINE_FACTOR, max(around) * FINE_FACTOR, FINE_SIZES)
    return _table(rig, table.rows, sizes)


def _table(rig: TrainingSetup, known: Sequence[SizeCost], sizes: Floats) -> SizeCostTable:
    rows, problems = list(known), []
    for params in sizes:
        try:
            rows.append(cost_size(rig, float(params), rig.model(float(params))))
        except (DoesNotFit, InvalidRequest) as problem:
            problems.append(problem)
    if not rows:
        raise problems[0]
    by_size = {row.params: row for row in rows}
    return SizeCostTable(tuple(by_size[params] for params in sorted(by_size)), rig.cluster.count)


def resolve_lifetime_serving(rig: TrainingSetup, given: Given, tokens: float, book: PriceBook, notes: AssumptionLog) -> LifetimeServing:
    """Who serves: the accelerator and price stated in `given`, else those of training. Raises DomainErrors with pointers below /serving."""
    try:
        return _serving(rig, given, tokens, book, notes)
    except DomainError as problem:
        raise problem.below("" if problem.pointer.startswith("/serving") else "/serving") from problem


def _serving(rig: TrainingSetup, given: Given, tokens: float, book: PriceBook, notes: AssumptionLog) -> LifetimeServing:
    price = _serving_price(rig, given, book, notes)
    accelerator = find_accelerator(price.accelerator).accelerator if price.accelerator else rig.cluster.accelerator
    usual = serving_defaults()["load_factor"]
    load = notes.take(given, "serving.load_factor", usual.value, usual.source)
    stored = find_format(_chosen(given, "format", notes))
    requests = MeanRequest(float(_chosen(given, "prompt_tokens", notes)), float(_chosen(given, "output_tokens", notes)))
    machine = serving_machine(accelerator)
    notes.assume("serving.achieved", machine.achieved.family, machine.achieved.source)
    return LifetimeServing(machine, stored, requests, price, load, tokens)


def _serving_price(rig: TrainingSetup, given: Given, book: PriceBook, notes: AssumptionLog) -> Price:
    if "accelerator" not in given and "price" not in given:
        notes.assume("serving.accelerator", rig.cluster.accelerator.name, "as trained on, at the same price")
        return rig.price
    accelerator = _serving_accelerator(given["accelerator"]) if "accelerator" in given else rig.cluster.accelerator
    own = AssumptionLog()
    found = find_price(given.get("price", {}), accelerator.name, accelerator.accelerators_per_node, book, rig.context.clock(), own)
    for assumption in own.assumptions:
        notes.assume(f"serving.{assumption.field}", assumption.value, assumption.source)
    notes.warn(*own.warnings)
    return found


def _serving_accelerator(name: str) -> Accelerator:
    try:
        return find_accelerator(name).accelerator
    except UnknownName as problem:
        problem.pointer = "/accelerator"
        raise


def _chosen(given: Given, name: str, notes: AssumptionLog) -> Any:
    usual = optimal_default(name)
    return notes.take(given, f"serving.{name}", usual.value, usual.source)


def serving_cost(serving: LifetimeServing, around: float, *, of_mixtures: bool) -> Callable[[Floats], Floats]:
    """Dollars of serving as a function of the size, known at sizes three decades to either side of one; infinite where none serves."""
    sizes = np.geomspace(max(around / 1e3, 1e5), around * 1e3, SERVED_SIZES)
    usd = np.array([serving.usd(default_model(float(size), of_mixtures=of_mixtures)) for size in sizes])
    known = np.isfinite(usd)
    if not known.any():
        raise DoesNotFit("no model of these sizes can be served on that accelerator; state another", "/serving")
    table = interpolate_cost(sizes[known], np.zeros(known.sum()), usd[known])
    largest = sizes[known][-1] * (1 + 1e-9)
    return lambda params: np.where(params <= largest, table(params, np.ones_like(params)), np.inf)
