"""Cost of training and serving a size on a machine, as tables over sizes computed with the step model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, UnknownName, UnpricedAccelerator
from service.domain.quantities import Range
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN
from service.domain.serving.requirements import MeanRequest, ServingMachine, WeightFormat
from service.domain.training.hardware import Accelerator
from service.domain.training.model import Transformer
from service.domain.training.run import Cluster
from service.engine.scaling.cost_fit import PowerSum, fit_power_sum
from service.engine.scaling.laws import Floats
from service.engine.serving.configurations import cheapest_usd_per_request
from service.engine.training.cost import idle_accelerators, overhead_share, total_usd
from service.engine.training.energy import energy_mwh
from service.engine.training.estimate import checkpoint_tb
from service.engine.training.inference.model import ServingSetup, describe_served_model
from service.engine.training.inference.roofline import throughput_spread
from service.engine.training.run_time import predict_run_time_in
from service.engine.training.search.layout_search import choose_layout
from service.engine.training.shape import infer_shape
from service.presets.hardware.accelerators import find_accelerator
from service.presets.scaling.laws import load_mixture_law
from service.presets.scaling.optimum import optimal_default
from service.presets.serving import can_serve, default_shape, find_format, servable_formats, serving_defaults, serving_machine
from service.presets.training.utilisation import plan_calibration
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.machine import resolve_machine_in_book
from service.usecases.resolution.price import Price, find_price
from service.usecases.resolution.run import assemble_run
from service.usecases.resolution.training import resolve_training
from service.usecases.resolution.utilisation import resolve_utilisation

if TYPE_CHECKING:
    from service.domain.scaling.laws import Cost

Request = Mapping[str, Any]

# Tokens that a size is timed with; time and cost are proportional to them, or fixed.
TIMED_TOKENS = 1e12
# Sizes timed, five a decade, the same for every budget: the fit, and so the optimum, does not jump with the budget.
TIMED_SIZES = np.geomspace(1e6, 1e13, 36)
# Halvings of the gap between the largest timed size that fits and the next: 3 % of the size are left.
LARGEST_SIZE_HALVINGS = 4
# Sizes whose serving within a latency is timed, and neighbours on either side whose median is taken.
SERVED_SIZES_PER_DECADE, NEIGHBOURS = 20, 2
# Hours over which cost is measured: long enough that rounding to cents does not matter.
MEASURED_HOURS = 1e4
# A typical run of a machine takes a month at this utilisation, with the tokens a parameter of Hoffmann et al. 2022.
TYPICAL_SECONDS, USUAL_MFU, TOKENS_PER_PARAM = 30 * 86400, 0.4, 20


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """A machine at its price (None: not known), and the request's sections on training."""

    context: AppContext
    request: Request
    cluster: Cluster
    price: Price | None
    of_mixtures: bool

    def model(self, params: float) -> Transformer:
        """The default model of that size (active parameters of a mixture)."""
        return default_model(params, of_mixtures=self.of_mixtures)


@dataclass(frozen=True, slots=True)
class SizeCost:
    """Cost of one size: hours held per token, fixed USD, and USD per token; paid accelerator-hours for USD without a price.

    `capacity_share`: of the wall clock in which the capacity can be had [1].
    """

    params: float
    hours_per_token: float
    usd_fixed: float
    usd_per_token: float
    capacity_share: float = 1.0


@dataclass(frozen=True, slots=True)
class SizeCostTable:
    """Smooth costs over the size, the largest size known to fit, and the number of accelerators.

    Where it is not `priced`, what is named USD is accelerator-hours: sizes are weighed by them, and no dollars are shown.
    """

    count: int
    priced: bool
    largest: float
    hours_per_token: PowerSum
    usd_fixed: PowerSum
    usd_per_token: PowerSum
    capacity_share: float = 1.0

    def usd(self) -> Cost:
        """Cost function of training [USD]."""
        return self._where_it_fits(lambda params, tokens: self.usd_fixed.at(params) + self.usd_per_token.at(params) * tokens)

    def wall_clock_hours(self) -> Cost:
        """Cost function of the wall clock, the wait for capacity included [h]."""
        return self._where_it_fits(lambda params, tokens: self.hours_per_token.at(params) * tokens / self.capacity_share)

    def accelerator_hours(self) -> Cost:
        """Cost function of all accelerators [h]."""
        hours = self.wall_clock_hours()
        return lambda params, tokens: hours(params, tokens) * self.capacity_share * self.count

    def through(self, known: SizeCost) -> SizeCostTable:
        """The table scaled to what a size costs that was timed."""
        return SizeCostTable(
            self.count,
            self.priced,
            max(self.largest, known.params),
            self.hours_per_token.through(known.params, known.hours_per_token),
            self.usd_fixed.through(known.params, known.usd_fixed),
            self.usd_per_token.through(known.params, known.usd_per_token),
            self.capacity_share,
        )

    def _where_it_fits(self, cost: Cost) -> Cost:
        largest_with_rounding = self.largest * (1 + 1e-9)
        return lambda params, tokens: np.where(
            params <= largest_with_rounding, cost(np.minimum(params, largest_with_rounding), tokens), np.inf
        )


@dataclass(frozen=True, slots=True)
class LifetimeServing:
    """Machine, weight format, mean request and price of serving the lifetime's tokens.

    Without a price, that of training on the same accelerator, costs are in accelerator-hours. `largest_params`: the largest size
    that is served within the latencies.
    """

    machine: ServingMachine
    weight_format: WeightFormat
    request: MeanRequest
    price: Price | None
    load_factor: float
    tokens: float
    largest_params: float = float("inf")

    @property
    def requests_total(self) -> float:
        """Requests over the lifetime."""
        return self.tokens / (self.request.prompt_tokens + self.request.output_tokens)

    def usd_per_request(self, model: Transformer, request: MeanRequest | None = None) -> Range:
        """Cost of a request [USD], infinite where no replica holds the model. Raises InvalidRequest for other networks."""
        setup = ServingSetup(describe_served_model(model), self.weight_format, self.machine, request or self.request)
        hourly = 1.0 if self.price is None else self.price.usd_per_accelerator_hour
        usd = cheapest_usd_per_request(setup, hourly, self.load_factor)
        speed = throughput_spread(setup)
        return Range(usd / speed.p90, usd / speed.p50, usd / speed.p10)

    def usd(self, model: Transformer) -> float:
        """Cost of all tokens of the lifetime at the median [USD]."""
        return self.requests_total * self.usd_per_request(model).p50


def default_model(params: float, *, of_mixtures: bool, **stated: int) -> Transformer:
    """A model by its parameters and stated fields of its shape; of a mixture the active ones, the total in the law's proportion."""
    if of_mixtures:
        total = params * load_mixture_law().total_per_active
        return infer_shape({"params": total, "active_params": params, **default_shape(), **stated}).model
    return infer_shape({"params": params, **default_shape(), **stated}).model


def resolve_setup(
    context: AppContext, request: Request, book: PriceBook, notes: AssumptionLog, *, of_mixtures: bool
) -> TrainingSetup | None:
    """The machine and its price; None where no hardware is stated. Warns without a price; the estimate reports their assumptions.

    Raises UnknownName, NoOffer with pointers.
    """
    if "hardware" not in request:
        return None
    own_notes = AssumptionLog()
    machine = resolve_machine_in_book(context, {**request, **_typical_run(request["hardware"])}, book, own_notes)
    if machine.price is None:
        notes.warn(*own_notes.warnings)
    return TrainingSetup(context, request, machine.cluster, machine.price, of_mixtures)


def _typical_run(hardware: Request) -> Request:
    """Model and data of a run that the machine is made for, to choose its offer by: the compute-optimal one of a month on it."""
    peak = max(find_accelerator(hardware["accelerator"]).accelerator.peak_tflops.values()) * 1e12
    flops = hardware["count"] * peak * USUAL_MFU * TYPICAL_SECONDS
    params = (flops / (FLOPS_PER_PARAM_AND_TOKEN * TOKENS_PER_PARAM)) ** 0.5
    return {"model": {"params": int(params)}, "data": {"tokens": int(TOKENS_PER_PARAM * params)}}


def cost_size(setup: TrainingSetup, params: float, model: Transformer) -> SizeCost:
    """Cost of one size by the step model. Raises DoesNotFit, InvalidRequest."""
    notes = AssumptionLog()
    stated = {**setup.request, "data": {"tokens": TIMED_TOKENS}}
    training = resolve_training(stated.get("training", {}), model, None, setup.cluster, setup.context.clock().year, notes)
    run = assemble_run(setup.context, stated, model, training, setup.cluster, setup.price, notes)
    # Whole terms of a reservation are no price per token; the estimate holds the unused rest of the last term.
    run = replace(run, billing=replace(run.billing, term_hours=0.0))
    utilisation = resolve_utilisation(setup.context, run, notes)
    choice = choose_layout(run.model, run.training, run.cluster, utilisation)
    if not choice.fits:
        raise DoesNotFit(f"{params:.3g} parameters do not fit on {setup.cluster.count:,} x {setup.cluster.accelerator.name}", "/hardware")
    timed = predict_run_time_in(run, choice, utilisation, plan_calibration())
    hours, checkpoint, interval_hours = timed.held_hours.p50, checkpoint_tb(run), timed.reliable.checkpoint_interval_minutes / 60

    if setup.price is None:
        paid = setup.cluster.count * (1 + overhead_share(run)) + idle_accelerators(run)
        return SizeCost(params, hours / TIMED_TOKENS, 0.0, hours / TIMED_TOKENS * paid, timed.capacity_share)

    def total_cost_usd(held_hours: float) -> float:
        mwh = energy_mwh(held_hours * setup.cluster.count, run.energy)
        return total_usd(run, Range.exactly(held_hours), mwh, checkpoint, interval_hours).p50

    # Both are long, since a short run writes fewer checkpoints than it keeps.
    usd_short, usd_long = total_cost_usd(MEASURED_HOURS), total_cost_usd(2 * MEASURED_HOURS)
    usd_per_hour = (usd_long - usd_short) / MEASURED_HOURS
    return SizeCost(params, hours / TIMED_TOKENS, 2 * usd_short - usd_long, usd_per_hour * hours / TIMED_TOKENS, timed.capacity_share)


def size_cost_table(setup: TrainingSetup) -> SizeCostTable:
    """Costs over all sizes, fitted to timed ones. Raises DoesNotFit, InvalidRequest where none can be trained."""
    rows, problems = [], []
    for params in TIMED_SIZES:
        try:
            rows.append(cost_size(setup, float(params), setup.model(float(params))))
        except (DoesNotFit, InvalidRequest) as problem:
            problems.append(problem)
    if not rows:
        raise problems[0]
    params, hours, fixed, per_token = np.array([[row.params, row.hours_per_token, row.usd_fixed, row.usd_per_token] for row in rows]).T
    return SizeCostTable(
        setup.cluster.count,
        setup.price is not None,
        _largest_size(setup, rows[-1].params),
        fit_power_sum(params, hours),
        fit_power_sum(params, fixed),
        fit_power_sum(params, per_token),
        rows[0].capacity_share,
    )


def _largest_size(setup: TrainingSetup, fits: float) -> float:
    """Largest size known to fit, between the largest timed one that does and the next."""
    does_not = fits * float(TIMED_SIZES[1] / TIMED_SIZES[0])
    if does_not > TIMED_SIZES[-1]:
        return fits
    for _ in range(LARGEST_SIZE_HALVINGS):
        middle = (fits * does_not) ** 0.5
        try:
            cost_size(setup, middle, setup.model(middle))
            fits = middle
        except (DoesNotFit, InvalidRequest):
            does_not = middle
    return fits


def resolve_lifetime_serving(
    setup: TrainingSetup, section: Request, tokens: float, book: PriceBook, notes: AssumptionLog
) -> LifetimeServing:
    """Serving with the stated accelerator and price, else those of training. Raises DomainErrors with pointers below /serving."""
    if setup.price is None and ("accelerator" in section or "price" in section):
        text = "training and serving at prices of their own are weighed in dollars: state price.usd_per_accelerator_hour of training"
        raise UnpricedAccelerator(text, "/price")
    try:
        return _resolve_serving(setup, section, tokens, book, notes)
    except DomainError as problem:
        raise problem.below("" if problem.pointer.startswith("/serving") else "/serving") from problem


def _resolve_serving(setup: TrainingSetup, section: Request, tokens: float, book: PriceBook, notes: AssumptionLog) -> LifetimeServing:
    price = _serving_price(setup, section, book, notes)
    accelerator = find_accelerator(price.accelerator).accelerator if price and price.accelerator else setup.cluster.accelerator
    default = serving_defaults()["load_factor"]
    load = notes.take(section, "serving.load_factor", default.value, default.source)
    weight_format = find_format(_take_default(section, "format", notes))
    if not can_serve(accelerator, weight_format):
        raise InvalidRequest(f"{accelerator.name} serves {', '.join(servable_formats(accelerator)) or 'no format'}", "/serving/format")
    latency = section.get("latency", {})
    tpot_ms = latency.get("time_per_output_token_ms")
    request = MeanRequest(
        float(_take_default(section, "prompt_tokens", notes)),
        float(_take_default(section, "output_tokens", notes)),
        ttft_s=latency.get("time_to_first_token_s"),
        tpot_s=None if tpot_ms is None else tpot_ms / 1000,
    )
    machine = serving_machine(accelerator)
    notes.assume("serving.achieved", machine.achieved.family, machine.achieved.source)
    serving = LifetimeServing(machine, weight_format, request, price, load, tokens)
    return replace(serving, largest_params=_largest_served(serving, of_mixtures=setup.of_mixtures)) if latency else serving


def _serving_price(setup: TrainingSetup, section: Request, book: PriceBook, notes: AssumptionLog) -> Price | None:
    if "accelerator" not in section and "price" not in section:
        notes.assume("serving.accelerator", setup.cluster.accelerator.name, "as trained on, at the same price")
        return setup.price
    accelerator = _serving_accelerator(section["accelerator"]) if "accelerator" in section else setup.cluster.accelerator
    own_notes = AssumptionLog()
    price = find_price(
        section.get("price", {}), accelerator.name, accelerator.accelerators_per_node, book, setup.context.clock(), own_notes
    )
    for assumption in own_notes.assumptions:
        notes.assume(f"serving.{assumption.field}", assumption.value, assumption.source)
    notes.warn(*own_notes.warnings)
    return price


def _serving_accelerator(name: str) -> Accelerator:
    try:
        return find_accelerator(name).accelerator
    except UnknownName as problem:
        problem.pointer = "/accelerator"
        raise


def _take_default(section: Request, name: str, notes: AssumptionLog) -> Any:
    default = optimal_default(name)
    return notes.take(section, f"serving.{name}", default.value, default.source)


def serving_cost(serving: LifetimeServing, *, of_mixtures: bool) -> Callable[[Floats], Floats]:
    """Serving cost [USD] as a smooth function of the size; infinite where none can be served."""
    limited = bool(np.isfinite(serving.largest_params))
    sizes = _sizes_up_to(serving.largest_params) if limited else TIMED_SIZES
    usd = np.array([serving.usd(default_model(float(size), of_mixtures=of_mixtures)) for size in sizes])
    feasible = np.isfinite(usd)
    if not feasible.any():
        raise DoesNotFit("no model of these sizes can be served on that accelerator; state another", "/serving")
    served = sizes[feasible]
    at = _between(served, usd[feasible]) if limited else fit_power_sum(served, usd[feasible]).at
    largest = served[-1] * (1 + 1e-9)
    return lambda params: np.where(params <= largest, at(np.minimum(params, largest)), np.inf)


def _sizes_up_to(largest: float) -> Floats:
    return np.geomspace(TIMED_SIZES[0], largest, 1 + int(SERVED_SIZES_PER_DECADE * np.log10(largest / TIMED_SIZES[0])))


def _between(sizes: Floats, usd: Floats) -> Callable[[Floats], Floats]:
    """Cost between sizes [USD]: medians of neighbours, as heads divide well in one and badly in the next.

    It is linear in logarithms and never falls. Near the largest size that keeps to a latency batches shrink to one sequence: the cost rises
    as no sum of powers does.
    """
    padded = np.pad(usd / sizes, NEIGHBOURS, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1), axis=1) * sizes
    logs = np.log(sizes), np.log(np.maximum.accumulate(middle))
    return lambda params: np.exp(np.interp(np.log(params), *logs))


def _largest_served(serving: LifetimeServing, *, of_mixtures: bool) -> float:
    """Largest size that is served within the stated latencies, between timed sizes to 3 %; infinite where every timed size is.

    Raises DoesNotFit where none is.
    """

    def kept(params: float) -> bool:
        return bool(np.isfinite(serving.usd(default_model(params, of_mixtures=of_mixtures))))

    fits = [float(size) for size in TIMED_SIZES if kept(float(size))]
    if not fits:
        raise DoesNotFit(
            "no model of any size meets these latencies on that accelerator: state longer ones or another accelerator", "/serving/latency"
        )
    if fits[-1] == TIMED_SIZES[-1]:
        return float("inf")
    least, most = fits[-1], fits[-1] * float(TIMED_SIZES[1] / TIMED_SIZES[0])
    for _ in range(LARGEST_SIZE_HALVINGS):
        middle = (least * most) ** 0.5
        least, most = (middle, most) if kept(middle) else (least, middle)
    return least
