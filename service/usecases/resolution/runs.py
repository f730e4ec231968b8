"""From a request to a run on a machine, and what such a machine achieves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from providers.offer import TERM_HOURS
from service.context import AppContext
from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator
from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import Cluster, Energy, Run, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.run_time import peers_elsewhere, scatter, sustained_share
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.energy import find_power
from service.presets.hardware.regions import Region, find_region, region_of_offer
from service.presets.training.models import find_model
from service.presets.training.utilisation import Known, find_utilisation, load_parameters, nearest, planning, raised, scale_power, spread_of
from service.prices.book import PriceBook
from service.usecases.resolution import resolve
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import as_learned
from service.usecases.resolution.models import resolve_model
from service.usecases.resolution.pricing import Price, find_price
from service.usecases.resolution.user_measurements import as_measured

Given = Mapping[str, Any]

# Methods whose arithmetic is that of the measured pre-training runs; the others' ranges are raised to a power, as borrowed ones are.
MEASURED_METHODS = ("pretrain", "continued_pretrain", "full_finetune")
UNMEASURED_POWER = 1.5
# The only network counted by samples that has published rates: its share of the peak stands for all of them.
MEASURED_NETWORK = "resnet-50"
MEASURED_NETWORK_SOURCE = "github NVIDIA/DeepLearningExamples PyTorch/Classification/ConvNets/resnet50v1.5/README.md"


def resolve_machine(context: AppContext, request: Given, book: PriceBook, notes: AssumptionLog) -> tuple[Cluster, Price]:
    """The machine of a request at its price, with the network of what is rented. Raises UnknownName, InvalidRequest, NoOffer."""
    hardware = request["hardware"]
    accelerator = find_accelerator(hardware["accelerator"]).accelerator
    price = find_price(request.get("price", {}), accelerator.name, hardware["count"], book, context.clock(), notes)
    return resolve.resolve_cluster(hardware, notes, price), price


def resolve_run(request: Given, cluster: Cluster, price: Price, notes: AssumptionLog) -> Run:
    """The run of a request on a machine at a price. Raises the domain's Problems, with pointers into the request."""
    return run_trained(request, *resolve_trained(request, cluster, notes), cluster, price, notes)


def resolve_trained(request: Given, cluster: Cluster, notes: AssumptionLog) -> tuple[Model, Training]:
    """What is trained, and how: of a request `model` and `training`. Raises the domain's Problems, with pointers into the request."""
    model, published_seq_len = resolve_model(request["model"], notes)
    return model, resolve.resolve_training(request.get("training", {}), model, published_seq_len, cluster, notes)


def run_of(request: Given, described: tuple[Model, int | None], cluster: Cluster, price: Price, notes: AssumptionLog) -> Run:
    """`resolve_run` where the model is known already, with the sequence length it is published with."""
    model, published_seq_len = described
    training = resolve.resolve_training(request.get("training", {}), model, published_seq_len, cluster, notes)
    return run_trained(request, model, training, cluster, price, notes)


def run_trained(request: Given, model: Model, training: Training, cluster: Cluster, price: Price, notes: AssumptionLog) -> Run:
    """`run_of` where it is known how the model is trained: of the cluster only the accelerator says anything more."""
    data = resolve.resolve_data(request["data"], model, training.seq_len, notes)
    return Run(model=model, data=data, training=training, cluster=cluster, **resolve_around(request, cluster.accelerator, price, notes))


def resolve_around(request: Given, accelerator: Accelerator, price: Price, notes: AssumptionLog) -> dict[str, Any]:
    """The rest of a run, by the names of its fields: all that neither model, data nor training say."""
    return {
        "efficiency": resolve.resolve_efficiency(request.get("efficiency", {})),
        "failures": resolve.resolve_failures(request.get("failures", {}), accelerator, price.pricing, notes),
        "storage": resolve.resolve_storage(request.get("storage", {}), notes),
        "network": resolve.resolve_network(request.get("network", {}), notes),
        "personnel": resolve.resolve_personnel(request.get("personnel", {}), notes),
        "overhead": resolve.resolve_overhead(request.get("overhead", {}), notes),
        "energy": resolve_energy(request.get("energy", {}), accelerator, price, notes),
        "schedule": resolve.resolve_schedule(request.get("schedule", {}), notes),
        "usd_per_accelerator_hour": price.usd_per_accelerator_hour,
        "billed_in": price.accelerators_per_instance,
        "term_hours": TERM_HOURS[price.pricing] if price.pricing else 0.0,
    }


def resolve_energy(given: Given, accelerator: Accelerator, price: Price, notes: AssumptionLog) -> Energy:
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


def _region(given: Given, price: Price, notes: AssumptionLog) -> Region:
    if given.get("region") is not None:
        return find_region(given["region"])
    if price.provider is not None and price.region is not None:
        region = region_of_offer(price.provider, price.region)
        notes.assume("energy.region", region.key, "the region of the price")
        return region
    region = find_region("world")
    notes.assume("energy.region", region.key, "no region is stated: world average")
    return region


def achieved(context: AppContext, run: Run, notes: AssumptionLog) -> Utilisation:
    """What the run's machine achieves: published or the user's own figures, with what is not known of them said."""
    cluster = run.cluster
    known: Known = "layout" if run.training.axes.mesh_known(cluster.count) else "goal"
    utilisation = find_utilisation(cluster.accelerator, run.training.precision, known, cluster.count)
    if run.efficiency.stated:
        return utilisation
    measured = as_measured(context, run, utilisation, notes)
    utilisation = _with_doubt(run, as_learned(context, run, measured, notes), known, notes)
    _note_planning(run, notes)
    return utilisation


def _with_doubt(run: Run, utilisation: Utilisation, known: Known, notes: AssumptionLog) -> Utilisation:
    """The utilisation with what is not known of it said, and its range widened for methods without published rates."""
    accelerator, training = run.cluster.accelerator, run.training
    if isinstance(run.model, GenericNetwork):
        utilisation = _of_other_network(run, utilisation, known, notes)
    elif utilisation.borrowed:
        relative = utilisation.source.partition(":")[0]
        notes.warn(f"no published throughput of {accelerator.name} at {training.precision}: {relative}, with a wider range")
    if training.method in MEASURED_METHODS:
        return utilisation
    notes.warn(f"no published rates of method {training.method} stand behind this throughput: its range is widened")
    return replace(utilisation, spread=raised(utilisation.spread, UNMEASURED_POWER))


def _of_other_network(run: Run, utilisation: Utilisation, known: Known, notes: AssumptionLog) -> Utilisation:
    """The utilisation of a network counted by samples: one network's published share stands for all, on the nearest family it ran on.

    So does that family's range, wider where the share is borrowed.
    """
    accelerator, parameters = run.cluster.accelerator, load_parameters()
    wanted = (accelerator.family, parameters.classes[run.training.precision])
    taken = nearest(parameters, parameters.other, wanted)
    ran = f"{MEASURED_NETWORK} on {taken[0]} at {taken[1]}"
    notes.assume("throughput.peak_share", utilisation.other_share, f"{ran} ({MEASURED_NETWORK_SOURCE})")
    power = scale_power(parameters.scales, known, run.cluster.count)
    if taken != wanted or run.model != find_model(MEASURED_NETWORK).model:
        power *= parameters.borrowed_power
        asked = f"this network on {accelerator.name} at {run.training.precision}"
        notes.warn(f"no published throughput of {asked}: borrowed from {ran}, with a wider range")
    return replace(utilisation, spread=raised(spread_of(parameters.spreads, taken, known), power))


def _note_planning(run: Run, notes: AssumptionLog) -> None:
    """What hours and cost hold beside the speed, and their ranges beside the speed's own error."""
    found = planning()
    if peers_elsewhere(run.cluster) > 0:
        source = (
            f"whole published runs on many nodes took 1 + {found.lost_between_nodes:g} times the hours of their steps in the middle, on one"
            " node no more; the loss goes with the share of peers on other nodes; state a whole run's efficiency to leave it out"
        )
        notes.assume("throughput.sustained_share", sustained_share(run, found), source)
    spread = scatter(run, found)
    if spread == Range.exactly(1.0):
        return
    source = (
        "published runs' actual over planned hours, beyond what the speed's own range holds: the ranges of time and cost hold it; state an"
        " efficiency, or on one node the layout, to leave it out"
    )
    notes.assume("time.actual_over_planned", {"p10": spread.p10, "p50": spread.p50, "p90": spread.p90}, source)
