"""Settings of a run other than model, data, training and machine: efficiency, failures, costs, energy, schedule."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator
from service.domain.training.run import AS_STATED, Billing, Efficiency, Energy, Failures, Network, Overhead, Personnel, Schedule, Storage
from service.engine.training.power_limit import watts_at_limit
from service.presets.defaults import default
from service.presets.hardware.energy import find_power, usual_load_factor
from service.presets.hardware.power_limits import find_power_limit
from service.presets.hardware.regions import Region, find_region, region_of_offer
from service.presets.training.reliability import RecoveryDefault, find_failure_rate, recovery_defaults
from service.presets.training.spot import spot_capacity, spot_preemptions
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import power_share
from service.usecases.resolution.feedback import apply_request_feedback
from service.usecases.resolution.measured_step import resolve_measured_on
from service.usecases.resolution.price import Price

Section = Mapping[str, Any]


def resolve_settings(
    context: AppContext, request: Section, accelerator: Accelerator, price: Price | None, software_year: int, notes: AssumptionLog
) -> dict[str, Any]:
    """The settings of a run by the names of the fields of Run; what the team's finished runs taught stands in for what is not stated.

    `price` is None where none is known. Raises DomainErrors, with pointers into the request.
    """
    request = apply_request_feedback(context, request, accelerator, notes)
    pricing = None if price is None else price.pricing
    return {
        "efficiency": resolve_efficiency(request.get("efficiency", {})),
        "failures": resolve_failures(request.get("failures", {}), accelerator, pricing, software_year, notes),
        "storage": resolve_storage(request.get("storage", {}), notes),
        "network": resolve_network(request.get("network", {}), notes),
        "personnel": resolve_personnel(request.get("personnel", {}), notes),
        "overhead": resolve_overhead(request.get("overhead", {}), notes),
        "energy": resolve_energy(
            request.get("energy", {}), accelerator, price, notes, power_share(accelerator, request.get("hardware", {}))
        ),
        "schedule": resolve_schedule(request.get("schedule", {}), context.clock().date(), notes),
        "billing": _billing(price),
    }


def _billing(price: Price | None) -> Billing:
    if price is None:
        return Billing(None)
    return Billing(price.usd_per_accelerator_hour, price.accelerators_per_instance, price.term_hours)


def resolve_efficiency(given: Section) -> Efficiency:
    """The efficiency the caller measured. Raises InvalidRequest for more than one figure, and for none that was measured elsewhere."""
    figures = {name: value for name, value in given.items() if name != "measured_on" and value is not None}
    if len(figures) > 1:
        raise InvalidRequest(f"state one efficiency: {' and '.join(sorted(figures))} are given", "/efficiency")
    if "measured_on" not in given:
        return Efficiency(**figures)
    if not figures:
        raise InvalidRequest(
            "state what was measured there: mfu, tokens_per_s_per_accelerator or tflops_per_accelerator", "/efficiency/measured_on"
        )
    return Efficiency(**figures, measured_on=resolve_measured_on(given["measured_on"]))


def resolve_failures(given: Section, accelerator: Accelerator, pricing: str | None, software_year: int, notes: AssumptionLog) -> Failures:
    """Failure rates and recovery: the caller's, else the family's published ones and the software's; spot capacity is also preempted."""
    usual = find_failure_rate(accelerator)
    mttf = usual.mttf_hours
    if given.get("mttf_hours_per_accelerator") is not None:
        mttf = Range.exactly(given["mttf_hours_per_accelerator"])
    else:
        notes.assume("failures.mttf_hours_per_accelerator", mttf.p50, usual.source)
    recovery = {name: _recovery(given, name, software_year, notes) for name in recovery_defaults(software_year)}
    interval = given.get("checkpoint_interval_minutes", "auto")
    if interval == "auto":
        notes.assume("failures.checkpoint_interval_minutes", "auto", "Daly 2006, equation 37")
    preemptions, spread = _preemptions(given, pricing, notes)
    return Failures(
        mttf_hours_per_accelerator=mttf,
        checkpoint_interval_minutes=None if interval == "auto" else interval,
        preemptions_per_node_hour=preemptions,
        preemption_spread=spread,
        capacity_share=_capacity_share(given, pricing, notes),
        **recovery,
    )


def _preemptions(given: Section, pricing: str | None, notes: AssumptionLog) -> tuple[float, Range]:
    """Preemptions of a node [1/h], and that rate over its median [1]: the caller's; else none, or the published range of spot capacity."""
    if pricing != "spot" or given.get("preemptions_per_node_hour") is not None:
        return float(notes.choose(given, "failures.preemptions_per_node_hour")), AS_STATED
    usual = spot_preemptions()
    notes.warn("the provider can take spot capacity back at any time: if you know how often, state failures.preemptions_per_node_hour")
    rate = usual.per_node_hour
    notes.assume("failures.preemptions_per_node_hour", rate.p50, f"{rate.p10:g} to {rate.p90:g}: {usual.source}")
    return rate.p50, rate.scaled(1 / rate.p50)


def _capacity_share(given: Section, pricing: str | None, notes: AssumptionLog) -> float:
    """Share of the time in which the capacity can be had [1]: the caller's; else all of it, or what traces of spot capacity show."""
    if pricing != "spot" or given.get("capacity_share") is not None:
        return float(given.get("capacity_share") or default("failures.capacity_share").value)
    usual = spot_capacity()
    share = usual.share_of_time
    notes.warn(
        f"spot capacity is not always available: it is assumed for {share.p50:.0%} of the time, and the wall-clock time includes the"
        " waiting, which costs nothing; if you know the share, state failures.capacity_share"
    )
    notes.assume("failures.capacity_share", share.p50, f"{share.p10:g} to {share.p90:g}: {usual.source}")
    return share.p50


def _recovery(given: Section, name: str, software_year: int, notes: AssumptionLog) -> float:
    usual = recovery_defaults(software_year)[name]
    if name == "checkpoint_blocking_share" and given.get("checkpoint_write_minutes") is not None:
        usual = RecoveryDefault(1, "training waits for the whole stated write; if it waits for a part, state that share")
    return float(notes.take(given, f"failures.{name}", usual.value, usual.source))


def resolve_storage(given: Section, notes: AssumptionLog) -> Storage:
    fields = ("dataset_tb", "checkpoints_kept", "retention_months", "logs_tb", "usd_per_tb_month")
    return Storage(**{name: notes.choose(given, f"storage.{name}") for name in fields})


def resolve_network(given: Section, notes: AssumptionLog) -> Network:
    return Network(**_section(given, "network", ("egress_tb", "usd_per_tb"), notes))


def resolve_personnel(given: Section, notes: AssumptionLog) -> Personnel:
    return Personnel(**_section(given, "personnel", ("evaluation_hours", "analysis_hours", "oncall_hours", "usd_per_hour"), notes))


def resolve_overhead(given: Section, notes: AssumptionLog) -> Overhead:
    return Overhead(**_section(given, "overhead", ("evaluation", "debugging", "reruns"), notes))


def resolve_energy(
    given: Section, accelerator: Accelerator, price: Price | None, notes: AssumptionLog, limited_share: float = 1.0
) -> Energy:
    """Power, PUE and grid: the caller's, else those of the data sheet and of the region (the caller's or the offer's).

    `limited_share`: the accelerators' power limit over their TDP [1]; a stated power is one at the limit.
    """
    region = _region(given, price, notes)
    watts, source = _usual_watts(accelerator, limited_share)
    return Energy(
        region=region.key,
        grid_gco2_per_kwh=notes.take(given, "energy.grid_gco2_per_kwh", region.grid_gco2_per_kwh, region.source),
        pue=notes.take(given, "energy.pue", region.pue, region.pue_source),
        watts_per_accelerator=notes.take(given, "energy.watts_per_accelerator", round(watts, 1), source),
        embodied_gco2e_per_accelerator_hour=notes.choose(given, "energy.embodied_gco2e_per_accelerator_hour"),
        usd_per_kwh=given.get("usd_per_kwh"),
    )


def _usual_watts(accelerator: Accelerator, limited_share: float) -> tuple[float, str]:
    """Mean power of an accelerator with its share of the node at a power limit [W], and its source."""
    power = find_power(accelerator)
    if limited_share == 1 or accelerator.tdp_w is None:
        return power.watts.p50, power.source
    limit = find_power_limit(limited_share)
    own = accelerator.tdp_w * (power.load_factor or usual_load_factor()).p50
    source = f"{power.source}; the accelerator draws {limit.relative_power:.0%} of that at {limited_share:.0%} of its TDP"
    return watts_at_limit(power.watts.p50, own, limit.relative_power), source


def _region(given: Section, price: Price | None, notes: AssumptionLog) -> Region:
    if given.get("region") is not None:
        return find_region(given["region"])
    if price is not None and price.provider is not None and price.region is not None:
        region = region_of_offer(price.provider, price.region)
        notes.assume("energy.region", region.key, "the region of the price")
        return region
    region = find_region("world")
    notes.assume("energy.region", region.key, "no region is stated: world average")
    return region


def resolve_schedule(given: Section, today: date, notes: AssumptionLog) -> Schedule:
    """Start, deadline, queue and maintenance; a deadline alone counts from today. Raises InvalidRequest for one before the start."""
    start, deadline = given.get("start"), given.get("deadline")
    if deadline is not None and start is None:
        start = today
        notes.assume("schedule.start", start.isoformat(), "today, because a deadline is stated without a start")
    if start is not None and deadline is not None and deadline < start:
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}", "/schedule/deadline")
    return Schedule(start, deadline, **_section(given, "schedule", ("queue_hours", "maintenance_hours_per_week"), notes))


def _section(given: Section, section: str, names: tuple[str, ...], notes: AssumptionLog) -> dict[str, Any]:
    """The fields of a section that costs nothing when left out; then one assumption stands for the section."""
    if given:
        return {name: notes.choose(given, f"{section}.{name}") for name in names}
    notes.assume(section, None, "not stated: taken as zero")
    return {name: default(f"{section}.{name}").value for name in names}
