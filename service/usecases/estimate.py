"""One training run: what it takes, how long, what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import InvalidOperation
from typing import Any

from service.desk import Desk
from service.domain.errors import InvalidRequest
from service.domain.estimate import Estimate
from service.domain.hardware import Accelerator
from service.domain.model import Transformer
from service.domain.quantity import Assumption, Range
from service.domain.run import Energy, Run
from service.domain.utilisation import Utilisation
from service.engine import estimate as engine
from service.presets.energy import find_power
from service.presets.regions import Region, find_region, region_of_offer
from service.presets.utilisation import Known, find_utilisation, planning_spread
from service.presets.version import engine_version
from service.usecases import resolve
from service.usecases.calibrate import as_measured
from service.usecases.models import resolve_model
from service.usecases.notes import Notes
from service.usecases.pricing import Price, find_price

Given = Mapping[str, Any]

# Methods whose arithmetic is that of the measured pre-training runs; the others' ranges are raised to a power, as borrowed ones are.
MEASURED_METHODS = ("pretrain", "continued_pretrain", "full_finetune")
UNMEASURED_POWER = 1.5
# The search itself keeps the batch within a tenth: only a stated layout changes it by more.
ROUNDING_TO_WARN_OF = 0.1
HOURS_PER_YEAR = 8760
LEAST_PARAMS = 100_000

# Several times a year of the world's economy (about 1.1e14 USD, World Bank 2024), and of every accelerator made (some 1e7) in a century.
MOST_USD = 1e15
MOST_ACCELERATOR_HOURS = 1e14
BEYOND_REASON = (
    f"the run would take more than {MOST_ACCELERATOR_HOURS:g} accelerator-hours or {MOST_USD:g} USD: check its size, rates and prices"
)


@dataclass(frozen=True, slots=True)
class EstimateAnswer:
    """An estimate with the price it was made with and all it assumed."""

    estimate: Estimate
    price: Price
    price_snapshot: str
    engine_version: str
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]


def estimate(desk: Desk, request: Given) -> EstimateAnswer:
    """The estimate of a request as the schema gives it. Raises the domain's Problems, with pointers into the request."""
    notes = Notes()
    book = desk.catalog.book(request.get("price", {}).get("snapshot"))
    cluster = resolve.resolve_cluster(request["hardware"], notes)
    price = find_price(request.get("price", {}), cluster.accelerator.name, cluster.count, book, desk.clock(), notes)
    run = _run(request, cluster, price, notes)
    known: Known = "layout" if run.training.axes.mesh_known(cluster.count) else "goal"
    utilisation = find_utilisation(cluster.accelerator, run.training.precision, known, cluster.count)
    if not run.efficiency.stated:
        utilisation = as_measured(desk, run, utilisation, notes)
        utilisation = _with_doubt(run, utilisation, notes)
        _note_planning(run, notes)
    found = _imaginable(run, utilisation)
    _note_layout(run, found, notes)
    _note_surprises(request, run, found, price, notes)
    return EstimateAnswer(found, price, book.name, engine_version(), notes.assumptions, (*notes.warnings, *found.warnings))


def _with_doubt(run: Run, utilisation: Utilisation, notes: Notes) -> Utilisation:
    """The utilisation with what is not known of it said, and its range widened for methods without published rates."""
    accelerator, training = run.cluster.accelerator, run.training
    if utilisation.borrowed:
        relative = utilisation.source.partition(":")[0]
        notes.warn(f"no published throughput of {accelerator.name} at {training.precision}: {relative}, with a wider range")
    if training.method in MEASURED_METHODS:
        return utilisation
    notes.warn(f"no published rates of method {training.method} stand behind this throughput: its range is widened")
    spread = utilisation.spread
    return replace(utilisation, spread=Range(spread.p10**UNMEASURED_POWER, spread.p50, spread.p90**UNMEASURED_POWER))


def _note_planning(run: Run, notes: Notes) -> None:
    """What the ranges of hours and cost hold beside the speed's own error."""
    if run.training.axes.mesh_known(run.cluster.count):
        return
    spread = planning_spread()
    source = (
        "published runs' actual over planned hours: the ranges of time and cost hold it; state the layout or an efficiency to leave it out"
    )
    notes.assume("time.actual_over_planned", {"p10": spread.p10, "p50": spread.p50, "p90": spread.p90}, source)


def _note_surprises(request: Given, run: Run, found: Estimate, price: Price, notes: Notes) -> None:
    """What a careful reader would ask about."""
    node, instance = run.cluster.accelerators_per_node, price.accelerators_per_instance
    if price.provider is not None and instance < min(node, run.cluster.count):
        notes.warn(f"the price is of instances of {instance}; the links of nodes of {node} are modelled: check the provider's network")
    if price.provider is not None and run.energy.usd_per_kwh:
        notes.warn("a cloud's price contains its power, usd_per_kwh adds it again: state price.usd_per_accelerator_hour for owned hardware")
    years = found.time.wall_clock_hours.p50 / HOURS_PER_YEAR
    if years > 1:
        notes.warn(f"the run takes {years:.1f} years: more accelerators or fewer tokens are meant?")
    params = request["model"].get("params")
    if params is not None and params < LEAST_PARAMS:
        notes.warn(f'the model has {params:,} parameters: counts take a suffix, "{params}B" is {params} billion')


def _imaginable(run: Run, utilisation: Utilisation) -> Estimate:
    """The engine's estimate. Raises InvalidRequest where it is beyond anything that could be run or paid."""
    try:
        found = engine.estimate(run, utilisation, planning_spread())
    except InvalidOperation as error:  # an amount with more digits than money has
        raise InvalidRequest(BEYOND_REASON) from error
    if found.cost.total_usd.p90 > MOST_USD or found.time.accelerator_hours.p90 > MOST_ACCELERATOR_HOURS:
        raise InvalidRequest(BEYOND_REASON)
    return found


def _run(request: Given, cluster: Any, price: Price, notes: Notes) -> Run:
    model, model_seq_len = resolve_model(request["model"], notes)
    training = resolve.resolve_training(request.get("training", {}), model, model_seq_len, cluster, notes)
    return Run(
        model=model,
        data=resolve.resolve_data(request["data"], model, training.seq_len, notes),
        training=training,
        cluster=cluster,
        efficiency=resolve.resolve_efficiency(request.get("efficiency", {})),
        failures=resolve.resolve_failures(request.get("failures", {}), cluster.accelerator, price.pricing, notes),
        storage=resolve.resolve_storage(request.get("storage", {}), notes),
        network=resolve.resolve_network(request.get("network", {}), notes),
        personnel=resolve.resolve_personnel(request.get("personnel", {}), notes),
        overhead=resolve.resolve_overhead(request.get("overhead", {}), notes),
        energy=resolve_energy(request.get("energy", {}), cluster.accelerator, price, notes),
        schedule=resolve.resolve_schedule(request.get("schedule", {}), notes),
        usd_per_accelerator_hour=price.usd_per_accelerator_hour,
        billed_in=price.accelerators_per_instance,
    )


def resolve_energy(given: Given, accelerator: Accelerator, price: Price, notes: Notes) -> Energy:
    """Power, PUE and grid: the caller's, else the data sheet's and the region's, which is the caller's or the offer's."""
    region = _region(given, price, notes)
    power = find_power(accelerator)
    watts = notes.take(given, "energy.watts_per_accelerator", round(power.watts.p50, 1), power.source)
    return Energy(
        region=region.key,
        grid_gco2_per_kwh=notes.take(given, "energy.grid_gco2_per_kwh", region.grid_gco2_per_kwh, region.source),
        pue=notes.take(given, "energy.pue", region.pue, region.pue_source),
        watts_per_accelerator=watts,
        embodied_gco2e_per_accelerator_hour=notes.choose(given, "energy.embodied_gco2e_per_accelerator_hour"),
        usd_per_kwh=given.get("usd_per_kwh"),
    )


def _region(given: Given, price: Price, notes: Notes) -> Region:
    if given.get("region") is not None:
        return find_region(given["region"])
    if price.provider is not None and price.region is not None:
        region = region_of_offer(price.provider, price.region)
        notes.assume("energy.region", region.key, "the region of the price")
        return region
    region = find_region("world")
    notes.assume("energy.region", region.key, "no region is stated: world average")
    return region


def _note_layout(run: Run, found: Estimate, notes: Notes) -> None:
    """What the layout decided for the caller: itself, where searched, and a batch rounded to whole data ranks."""
    if found.batch_sequences != run.training.global_batch:
        tokens, asked = (batch * run.training.seq_len for batch in (found.batch_sequences, run.training.global_batch))
        notes.assume("training.global_batch_tokens", tokens, "rounded to whole micro-batches on every data rank")
        if abs(tokens / asked - 1) > ROUNDING_TO_WARN_OF:
            notes.warn(
                f"the layout trains on {tokens:,} tokens a step where {asked:,} were asked for: its data ranks times micro_batch make no"
                " smaller batch; take fewer data ranks or a smaller micro_batch"
            )
    axes = run.training.axes
    chunks = axes.virtual_pipeline or (1 if axes.pipeline == 1 else None)
    experts = axes.expert or (None if isinstance(run.model, Transformer) and run.model.experts else 1)
    if None in (axes.tensor, axes.pipeline, axes.context, axes.micro_batch, axes.zero_stage, axes.recompute, chunks, experts):
        why = "the fastest layout that fits, by the step model" if found.memory.fits else "the leanest layout, as none fits"
        notes.assume("training.parallelism", found.throughput.parallelism, why)
