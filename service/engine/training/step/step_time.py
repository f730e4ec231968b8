"""Duration of one optimizer step on a layout: the step's work, at what is achieved of the data sheets' rates.

What is achieved is measured (`Utilisation`): one share of the peak by accelerator family and precision, a few figures shared by all. A
stage takes as long as its device or its host, whichever is slower; a pipeline fills once a step, and its last stage also computes the
output head. Left out: how well a team tunes its software; it is in the spread of the measured share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import Cluster, Training
from service.domain.training.utilisation import AchievedRates, Utilisation
from service.engine.training.layouts import Layouts
from service.engine.training.step.collectives import ExchangeTime
from service.engine.training.step.step_work import StepWork, step_work

Floats = NDArray[np.float64]
Rate = Floats | float
PARTS = ("compute", "memory", "launch", "network", "pipeline")
EXCHANGES = ("tensor", "context", "expert", "stage", "overlapped")


@dataclass(frozen=True, slots=True)
class StepTime:
    """Parts of one step. Every field: (layouts,) float array.

    Attributes
    ----------
    compute, memory, launch, network, pipeline
        Arithmetic, memory traffic, waiting for the host, exchanges, pipeline bubble [s].
    input
        Input pipeline, which runs beside all other parts [s].
    batch
        Sequences (or samples) of the step [1].
    """

    compute: Floats
    memory: Floats
    launch: Floats
    network: Floats
    pipeline: Floats
    input: Floats
    batch: Floats

    @property
    def total(self) -> Floats:
        """Duration of the step: the sum of its parts, or the input pipeline where that is slower [s]."""
        return np.maximum(self.compute + self.memory + self.launch + self.network + self.pipeline, self.input)

    def bound_by(self, index: int) -> str:
        """The part that decides: the input pipeline where it is slower than the machine, else the largest part.

        Parameters
        ----------
        index : int
            Position of the layout.

        Returns
        -------
        str
            Name of a field.
        """
        if self.input[index] >= self.total[index]:
            return "input"
        parts = {name: float(getattr(self, name)[index]) for name in PARTS}
        return max(parts, key=lambda name: parts[name])


def slowed(steps: StepTime, factor: Rate) -> StepTime:
    """Steps whose every part takes that many times as long, but for the input pipeline, which is none of the machine's.

    Parameters
    ----------
    steps : StepTime
        Any number of layouts [s].
    factor : float or (layouts,) float array
        [1].

    Returns
    -------
    StepTime
        Of as many layouts [s].
    """
    return steps if np.all(factor == 1) else replace(steps, **{name: factor * getattr(steps, name) for name in PARTS})


def typical_share(utilisation: Utilisation, cluster: Cluster) -> float:
    """Speed in the layouts that teams run over that in the fastest that the search finds.

    Published jobs on several nodes reach less than the search's fastest layout, by as much on 16 accelerators as on thousands: teams try
    few layouts, and the search takes the one whose errors flatter it most (tools/calibration/typical_layouts.py).

    Parameters
    ----------
    utilisation : Utilisation
        With the loss where the layout is searched.
    cluster : Cluster
        Accelerators and their nodes.

    Returns
    -------
    float
        From 0 to 1 [1]; 1 on one node.
    """
    return math.exp(-utilisation.layout_loss * cluster.off_node_fraction)


def step_time(
    model: Model,
    training: Training,
    cluster: Cluster,
    utilisation: Utilisation,
    layouts: Layouts,
    networks_gbit_per_s: Floats | None = None,
) -> StepTime:
    """Duration of one optimizer step on every layout.

    Parameters
    ----------
    model : Model
        Network.
    training : Training
        Method, batch.
    cluster : Cluster
        Accelerators and links.
    utilisation : Utilisation
        What the accelerator achieves.
    layouts : Layouts
        Columns of length (layouts,).
    networks_gbit_per_s : (networks, 1) float array, optional
        Networks of one accelerator, one direction, in place of the cluster's [Gbit/s].

    Returns
    -------
    StepTime
        (layouts,), or (networks, layouts) with several networks [s].
    """
    if isinstance(model, GenericNetwork) and utilisation.other_share:
        utilisation = replace(utilisation, matmul_share=utilisation.other_share)
    if len(layouts) == 1:
        one = time_step(step_work(model, training, cluster, layouts.only(), networks_gbit_per_s), utilisation)
        return StepTime(*(np.atleast_1d(getattr(one, name)) for name in StepTime.__slots__))
    return time_step(step_work(model, training, cluster, layouts, networks_gbit_per_s), utilisation)


def time_step(work: StepWork, achieved: AchievedRates[Rate]) -> StepTime:
    """Parts of a step at achieved rates.

    Parameters
    ----------
    work : StepWork
        Work at the data sheets' rates.
    achieved : AchievedRates
        What devices, links and host achieve: numbers, or one value for each position of the work.

    Returns
    -------
    StepTime
        [s].
    """
    slower, matmul, attention = _arithmetic(work, achieved)
    compute = slower * (matmul + attention)
    traffic = slower * (achieved.activation_passes * work.traffic + achieved.routed_passes * work.routed_traffic + work.scores)
    tensor, context, expert, stage, overlapped = _exchanges(work, achieved, matmul, attention)
    exchange = slower * (expert + stage + context + overlapped + tensor)
    head = slower * work.head / achieved.matmul_share
    loss = slower * achieved.activation_passes * work.head_traffic
    host = achieved.layer_overhead_s * work.layers + achieved.routing_overhead_s * work.routed_layers
    host = host + achieved.expert_overhead_s * work.held_experts + achieved.call_overhead_s * work.calls
    layers = compute + traffic + exchange
    count = work.micro_batches
    # The last stage has the head and, where layers do not divide, fewer of them: the head takes longer by what these do not make up for.
    beyond = np.maximum(0.0, 1 - work.spared * layers / np.maximum(head + loss, 1e-12))
    head, loss = beyond * head, beyond * loss
    stage = _waiting(layers, host, achieved)
    last = _waiting(layers + head + loss, host, achieved)
    reduction = slower * _seconds(work.gradient, achieved)
    exposed = reduction - achieved.overlap_share * np.minimum(reduction, work.hidden_batches * last)
    return StepTime(
        compute=count * (compute + head),
        memory=count * (traffic + loss) + work.optimizer + work.generation,
        launch=count * (last - (layers + head + loss)),
        network=count * exchange + exposed,
        pipeline=work.bubble_stages * stage,
        input=work.input,
        batch=work.batch,
    )


def exchange_times(work: StepWork, achieved: AchievedRates[Rate]) -> dict[str, Floats]:
    """What of a step's exchanges nothing hides, by whom they are between: the parts of its `network`.

    Parameters
    ----------
    work : StepWork
        Work at the data sheets' rates.
    achieved : AchievedRates
        What devices, links and host achieve.

    Returns
    -------
    dict
        By `EXCHANGES`, as of the work, and gradient (of the data ranks) [s].
    """
    slower, matmul, attention = _arithmetic(work, achieved)
    exposed = _exchanges(work, achieved, matmul, attention)
    found = {name: work.micro_batches * slower * seconds for name, seconds in zip(EXCHANGES, exposed, strict=True)}
    network = time_step(work, achieved).network
    return found | {"gradient": np.maximum(0.0, network - np.sum(list(found.values()), axis=0))}


def _arithmetic(work: StepWork, achieved: AchievedRates[Rate]) -> tuple[Rate, Floats, Floats]:
    """How many times as long slow nodes and immature software take [1], and matrix work and attention of a micro-batch [s]."""
    slower = (1 + achieved.straggler_share * work.doublings) * (1 + achieved.immature_share * work.immaturity)
    matmul = (work.matmul + work.routed / achieved.routed_share) / achieved.matmul_share
    matmul = matmul + achieved.operand_share * work.operands + achieved.tile_s * work.reductions
    return slower, matmul, work.attention / achieved.attention_share


def _exchanges(work: StepWork, achieved: AchievedRates[Rate], matmul: Floats, attention: Floats) -> tuple[Floats, ...]:
    """What of the exchanges of a micro-batch arithmetic does not hide, by `EXCHANGES` [s]."""
    ring, beside = _seconds(work.context, achieved), _seconds(work.overlapped, achieved)
    # A second of arithmetic hides a second of exchanges, whichever they are.
    covered = np.minimum(ring, attention)
    return (
        (1 - achieved.tensor_overlap) * _seconds(work.tensor, achieved),
        ring - achieved.overlap_share * covered,
        _seconds(work.expert, achieved),
        _seconds(work.stage, achieved),
        beside - achieved.overlap_share * np.minimum(beside, matmul + attention - covered),
    )


def _waiting(device: Floats, host: Floats, achieved: AchievedRates[Rate]) -> Floats:
    """Duration of a stage whose device waits for its host at every kernel that ends before the next one is launched."""
    # Kernels differ in length: where host and device need about the same time, some still wait.
    longer, shorter, power = np.maximum(device, host), np.minimum(device, host), achieved.launch_power
    waiting: Floats = longer * (1 + (shorter / longer) ** power) ** (1 / power)
    return waiting


def _seconds(link: ExchangeTime, achieved: AchievedRates[Rate]) -> Floats:
    """Duration of an exchange at the achieved share of the links' rates."""
    return link.intra_s / achieved.link_share + link.inter_s / achieved.network_share + achieved.hop_s * link.hops
