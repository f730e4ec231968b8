"""One training run: what it takes, how long, what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import InvalidOperation
from typing import Annotated, Any

from service.context import AppContext
from service.domain.answer_fields import MERGED, Doc
from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.programs.evaluation import EvaluationPlan
from service.domain.quantities import Assumption
from service.domain.summary import Summary
from service.domain.tracking.feedback import LessonsReference
from service.domain.training.estimate import Estimate, EstimateLever
from service.domain.training.model import Transformer
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.engine.training import estimate as engine
from service.engine.training.phases import EstimatedPhase, bill_phases, combine_phases
from service.engine.training.search.fitting_layouts import filled_share
from service.formats.headline import duration
from service.presets.hardware.capacity import UNCONTRACTED, capacity_band, describe_capacity
from service.presets.training.utilisation import plan_calibration
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.limits import BEYOND_LIMITS_TEXT, MAX_ACCELERATOR_HOURS, MAX_USD
from service.usecases.resolution.phases import merge_phase_notes, phase_problems
from service.usecases.resolution.price import Price
from service.usecases.resolution.resolve import ResolvedRun, resolve
from service.usecases.training.batch_warning import batch_warnings
from service.usecases.training.cost_warnings import overhead_warnings, unused_capacity
from service.usecases.training.data_warnings import data_warnings
from service.usecases.training.evaluation import evaluate_run
from service.usecases.training.summary import summarise_estimate

Request = Mapping[str, Any]

# The search keeps the batch within a tenth; only a stated layout changes it by more.
BATCH_ROUNDING_WARNING = 0.1
HOURS_PER_YEAR = 8760
MIN_PLAUSIBLE_PARAMS = 100_000
# Predicted memory is off published measurements by up to a seventh in the median (tests/accuracy/test_memory.py): less room is none.
TIGHT_MEMORY_SHARE = 0.95
IDLE_GAIN = 0.02
# A start takes as long as a restart, some 4 to 10 minutes (failures.restart_minutes): a tenth of an hour.
SHORT_RUN_HOURS = 1.0

SLOW_TOGETHER = (
    "phases of one run share the speed model's error, the software and the failure rate: they are slow together, and the percentiles of"
    " their hours and costs add"
)


@dataclass(frozen=True, slots=True)
class EstimateAnswer:
    """An estimate with its price, price snapshot, engine version, assumptions and warnings."""

    summary: Annotated[Summary, Doc("The answer in a sentence, and what it rests on")]
    estimate: Annotated[Estimate, MERGED]
    price: Annotated[Price | None, Doc("Price the answer is made with; null where no offer of the accelerator is known")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]
    levers: Annotated[
        tuple[EstimateLever, ...] | None,
        Doc(
            "Where asked for: single changes that save money, time or carbon, the most dollars first; at most three of a kind."
            " Send the request with a change and this price_snapshot to have its whole estimate",
            max_items=100,
            optional=True,
        ),
    ] = None
    evaluation: Annotated[
        EvaluationPlan | None, Doc("How the run is evaluated; left out where it states no suite and no check", optional=True)
    ] = None


def estimate(context: AppContext, request: Request) -> EstimateAnswer:
    """The estimate of a request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes = AssumptionLog()
    return estimate_run(resolve(context, request, notes), notes)


def estimate_run(resolved: ResolvedRun, notes: AssumptionLog) -> EstimateAnswer:
    """The estimate of a resolved run. Raises DomainErrors, with pointers into the request."""
    request, run, machine = resolved.request, resolved.run, resolved.machine
    found, slowed = _estimate_phases(resolved, notes) if resolved.phases else _estimate_layout(resolved, run, notes)
    _warn_of_surprises(request, run, machine.price, notes)
    if not slowed:
        _warn_of_years(found, notes)
    notes.warn(*short_run_warnings(found))
    found, evaluation = evaluate_run(request, run, found, notes)
    notes.warn(*data_warnings(run, found.cost.total_usd), *overhead_warnings(request, run, found.cost.total_usd))
    warnings = (*unused_capacity(run, found.cost), *notes.warnings, *found.warnings)
    summary = summarise_estimate(
        run,
        found,
        machine.price,
        evaluation=evaluation,
        cost_by_provider=machine.cost_by_provider,
        cheaper_stale=machine.cheaper_stale,
    )
    return EstimateAnswer(
        summary=summary,
        estimate=found,
        price=machine.price,
        price_snapshot=machine.price_snapshot,
        lessons=resolved.lessons,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=warnings,
        evaluation=evaluation,
    )


def _estimate_layout(resolved: ResolvedRun, run: Run, notes: AssumptionLog) -> tuple[Estimate, bool]:
    """The engine's estimate of a run in one layout, and whether its batch slows it down; what is to be said of the layout is noted."""
    request = resolved.request
    found = _estimate_within_limits(run, resolved.utilisation)
    _note_patches(request["data"], run, notes)
    _note_layout(run, found, notes)
    too_small = tuple(batch_warnings(request.get("training", {}), run, resolved.utilisation, found))
    notes.warn(*too_small)
    _warn_of_tight_memory(found, notes)
    _warn_of_idle_gain(run, resolved.utilisation, found, notes)
    return found, bool(too_small)


def _estimate_phases(resolved: ResolvedRun, notes: AssumptionLog) -> tuple[Estimate, bool]:
    """The estimate of a run in phases, and whether the batch of any slows it down. Raises DomainErrors that name the phase."""
    phases, slowed = [], False
    billed = bill_phases([phase.resolved.run for phase in resolved.phases])
    for index, (phase, run) in enumerate(zip(resolved.phases, billed, strict=True)):
        with phase_problems(resolved.request, index):
            found, small = _estimate_layout(phase.resolved, run, phase.notes)
        slowed = slowed or small
        if len(billed) > 1:
            phase.notes.warn(*found.warnings)
        phases.append(EstimatedPhase(phase.name, phase.resolved.run, found))
    merge_phase_notes([(phase.name, phase.notes) for phase in resolved.phases], notes)
    if len(billed) > 1:
        notes.assume("training.phases", len(billed), SLOW_TOGETHER)
        notes.warn(*_rates_elsewhere(resolved))
    return combine_phases(resolved.run, phases), slowed


def _rates_elsewhere(resolved: ResolvedRun) -> Iterator[str]:
    """The warning that a speed in tokens is taken for phases of other lengths or machines, which it was hardly measured in."""
    stated = resolved.request.get("efficiency", {}).get("tokens_per_s_per_accelerator")
    runs = [phase.resolved.run for phase in resolved.phases if phase.resolved.run.efficiency.tokens_per_s_per_accelerator == stated]
    if stated and len({(run.training.seq_len, run.training.precision, run.cluster) for run in runs}) > 1:
        yield (
            f"efficiency.tokens_per_s_per_accelerator of {stated:g} is used for phases that differ in sequence length, number format"
            " or machine: state an efficiency in each phase, or an mfu"
        )


def _warn_of_surprises(request: Request, run: Run, price: Price | None, notes: AssumptionLog) -> None:
    """Warn of what is unlikely to be meant: small instances, power counted twice, tiny models."""
    if price is not None and price.provider is not None:
        _warn_of_offer(run, price.provider, price, notes)
    params = request["model"].get("params")
    if params is not None and params < MIN_PLAUSIBLE_PARAMS:
        notes.warn(f'the model has {params:,} parameters: counts take a suffix, "{params}B" is {params} billion')


def short_run_warnings(found: Estimate) -> Iterator[str]:
    """A warning of a run so short that its start, which the estimate leaves out, is a large part of it."""
    hours = found.time.wall_clock_hours.p50
    if hours < SHORT_RUN_HOURS:
        yield (
            f"training takes {duration(hours)}: starting the job and loading model and data take minutes more. These are"
            " billed too, but are not included here"
        )


def _warn_of_years(found: Estimate, notes: AssumptionLog) -> None:
    """Warn of a run of years; of one that its batch slows down, the batch is named instead."""
    years = found.time.wall_clock_hours.p50 / HOURS_PER_YEAR
    if years > 1:
        notes.warn(f"the run takes {years:.1f} years: check the number of accelerators and of tokens")


def _warn_of_offer(run: Run, provider: str, price: Price, notes: AssumptionLog) -> None:
    """Warn of instances smaller than a node, of power counted twice, and of more accelerators than are let at the list price."""
    node, instance = run.cluster.accelerators_per_node, price.accelerators_per_instance
    if instance < min(node, run.cluster.count):
        notes.warn(
            f"the price is for instances of {instance}, but nodes of {node} with a fast link are modelled: check the provider's network"
        )
    if run.energy.usd_per_kwh:
        notes.warn(
            "a cloud's price includes power, so usd_per_kwh counts it twice: leave it out, or state price.usd_per_accelerator_hour"
            " for owned hardware"
        )
    if price.pricing not in UNCONTRACTED:
        return
    band = capacity_band(provider, run.cluster.accelerator)
    if run.cluster.count > band.most:
        notes.warn(
            f"{describe_capacity(provider, band)}, and the list price used here is for smaller orders: ask for a quote and state its price"
            f" in price.usd_per_accelerator_hour. Source: {band.source}"
        )


def _warn_of_tight_memory(found: Estimate, notes: AssumptionLog) -> None:
    """Warn where less memory is free than the memory model is wrong by."""
    memory = found.memory
    share = memory.per_accelerator_gb / memory.capacity_gb
    if memory.fits and share > TIGHT_MEMORY_SHARE:
        notes.warn(
            f"the layout fills {share:.1%} of the memory. The prediction may be off by more than what is left, so the run may not fit: use"
            " a smaller training.micro_batch, more training.activation_recompute or more accelerators"
        )


def _warn_of_idle_gain(run: Run, utilisation: Utilisation, found: Estimate, notes: AssumptionLog) -> None:
    """Warn where fewer nodes, in a number that divides into more layouts, train faster than all of them."""
    cluster = run.cluster
    if run.training.axes.mesh_stated or run.efficiency.stated or not found.memory.fits or run.training.rl is not None:
        return
    tokens_per_s = {count: _tokens_per_s_on(run, utilisation, count) for count in _rounder_counts(run)}
    fewer = max(tokens_per_s, key=lambda count: tokens_per_s[count], default=cluster.count)
    gain = tokens_per_s.get(fewer, 0.0) / found.throughput.tokens_per_s - 1
    if gain > IDLE_GAIN:
        notes.warn(
            f"{fewer:,} of the {cluster.count:,} accelerators train {gain:.0%} faster than all of them, because their number allows more"
            f" layouts: use {fewer:,} and leave {cluster.count - fewer:,} idle"
        )


def _tokens_per_s_on(run: Run, utilisation: Utilisation, count: int) -> float:
    """Speed of the run on that many accelerators [tokens/s]; 0 where it does not fit."""
    try:
        part = engine.estimate(replace(run, cluster=replace(run.cluster, count=count)), utilisation, plan_calibration())
    except DoesNotFit:
        return 0.0
    return part.throughput.tokens_per_s if part.memory.fits else 0.0


def _rounder_counts(run: Run) -> set[int]:
    """Fewer accelerators, whose nodes divide into more layouts.

    Where a step has fewer sequences than there are accelerators, each layout must split sequences or layers, and round numbers may do
    badly too: then the next smaller round number and the power of two are tried besides.
    """
    count, per_node = run.cluster.count, run.cluster.accelerators_per_node
    nodes = count // per_node
    tried = {_rounder_nodes(nodes)}
    if run.training.global_batch < count:
        tried |= {_rounder_nodes(max(0, nodes - 1)), 1 << nodes.bit_length() - 1 if nodes else 0}
    return {number * per_node for number in tried} - {0, count}


def _rounder_nodes(nodes: int) -> int:
    """The largest number up to `nodes` of at most three significant binary digits: 8, 10, 12, 14, 16, 20, …"""
    step: int = 1 << max(0, nodes.bit_length() - 3)
    return nodes // step * step


def _estimate_within_limits(run: Run, utilisation: Utilisation) -> Estimate:
    """The engine's estimate. Raises InvalidRequest above MAX_USD or MAX_ACCELERATOR_HOURS."""
    try:
        found = engine.estimate(run, utilisation, plan_calibration())
    except InvalidOperation as error:  # more digits than Decimal holds
        raise InvalidRequest(BEYOND_LIMITS_TEXT) from error
    usd = 0.0 if found.cost.total_usd is None else found.cost.total_usd.p90
    if usd > MAX_USD or found.time.accelerator_hours.p90 > MAX_ACCELERATOR_HOURS:
        raise InvalidRequest(BEYOND_LIMITS_TEXT)
    return found


def _note_patches(data: Request, run: Run, notes: AssumptionLog) -> None:
    """Say how many images the tokens (patches) of a vision transformer are."""
    if not isinstance(run.model, Transformer) or run.model.kind != "vit":
        return
    patches, images = run.training.seq_len, run.training.global_batch
    notes.assume("training.global_batch_tokens", images * patches, f"a ViT's tokens are patches: {images:,} images of {patches:,} a step")
    if "samples" not in data:
        tokens = run.data.effective_tokens
        notes.assume("data.tokens", tokens, f"a ViT's tokens are patches: {tokens / patches:,.0f} images of {patches:,} an epoch")


def _note_layout(run: Run, found: Estimate, notes: AssumptionLog) -> None:
    """Record the searched layout, and a batch rounded to whole data ranks."""
    if found.batch_sequences != run.training.global_batch:
        tokens, asked = (batch * run.training.seq_len for batch in (found.batch_sequences, run.training.global_batch))
        notes.assume("training.global_batch_tokens", tokens, "rounded to whole micro-batches on every data rank")
        if abs(tokens / asked - 1) > BATCH_ROUNDING_WARNING:
            notes.warn(
                f"a step has {tokens:,} tokens instead of the requested {asked:,}: the layout's data ranks times micro_batch allow no"
                " smaller batch; use fewer data ranks or a smaller micro_batch"
            )
    axes = run.training.axes
    chunks = axes.virtual_pipeline or (1 if axes.pipeline == 1 else None)
    experts = (axes.expert, axes.expert_tensor) if isinstance(run.model, Transformer) and run.model.experts else ()
    if None in (axes.tensor, axes.pipeline, axes.context, axes.micro_batch, axes.zero_stage, axes.recompute, chunks, *experts):
        notes.assume("training.parallelism", found.throughput.parallelism, _why_this_layout(run, found))


def _why_this_layout(run: Run, found: Estimate) -> str:
    """What the search was held to: room in the memory, and matrices cut within the fast link, where any layout has both."""
    if not found.memory.fits:
        return "the leanest layout, as none fits"
    share, linked = filled_share(run.training), run.cluster.link_domain
    fills = found.memory.per_accelerator_gb / found.memory.capacity_gb
    room = "that fits" if fills > share or share == 1 else f"within {share:.0%} of the memory, which leaves its allocator room,"
    if run.cluster.nodes == 1 or run.training.axes.tensor:
        return f"the fastest layout {room} by the step model"
    reach = "within" if int(found.throughput.parallelism["tensor"]) <= linked else "beyond"
    return f"the fastest layout {room} by the step model, with tensor ranks {reach} the fast link of {linked}"
