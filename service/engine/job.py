"""What every part of a step's work is computed from: the job on its machine, and how often its weights are passed over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.hardware import Accelerator
from service.domain.model import Model, OtherNetwork
from service.domain.run import RECOMPUTES, Cluster, Training
from service.engine.flops import ForwardFlops, TrainingFlops, forward_flops, recomputed_flops, training_flops
from service.engine.layouts import Layouts, stack_depth
from service.engine.parameters import count_parameters
from service.engine.widths import FULL_WIDTH

Floats = NDArray[np.float64]

SIXTEEN_BIT = ("bf16", "fp16")
FULL = RECOMPUTES.index("full")
SELECTIVE = RECOMPUTES.index("selective")


def peak_flops(accelerator: Accelerator, precision: str) -> float:
    """Dense peak in FLOP/s for the precision. KeyError where the accelerator has none (checked before the engine is called)."""
    return accelerator.peak_tflops[precision] * 1e12


def sixteen_bit_peak(accelerator: Accelerator, precision: str) -> float:
    """Dense peak in FLOP/s of work that stays at 16 bit when weights are multiplied in fewer: attention's core and the output head."""
    if precision in (*FULL_WIDTH, *SIXTEEN_BIT):
        return peak_flops(accelerator, precision)
    peaks = accelerator.peak_tflops
    return 1e12 * next((peaks[name] for name in SIXTEEN_BIT if name in peaks), peaks[precision])


@dataclass(frozen=True, slots=True)
class Job:
    """What every part of a step is computed from.

    `tokens` (or samples) of one micro-batch on one context rank; `layers` of the fullest pipeline stage.
    """

    model: Model
    training: Training
    cluster: Cluster
    layouts: Layouts
    total: TrainingFlops
    forward: ForwardFlops
    tokens: Floats
    layers: Floats

    @property
    def bandwidth(self) -> float:
        """Bytes a second of the accelerator's memory."""
        return self.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9

    @property
    def peak(self) -> float:
        return peak_flops(self.cluster.accelerator, self.training.precision)

    @property
    def nothing(self) -> Floats:
        return np.zeros(len(self.layouts))

    def stage_flops(self, per_token: Floats | float) -> Floats:
        """FLOPs of one micro-batch on one device of the fullest stage, of the layers' work that costs `per_token`."""
        flops: Floats = per_token * self.tokens * self.layers / (stack_depth(self.model) * self.layouts.tensor)
        return flops


def job_of(model: Model, training: Training, cluster: Cluster, layouts: Layouts) -> Job:
    chunks = layouts.virtual_pipeline
    return Job(
        model=model,
        training=training,
        cluster=cluster,
        layouts=layouts,
        total=training_flops(model, training),
        forward=forward_flops(model, training),
        tokens=layouts.micro_batch * training.seq_len / layouts.context,
        # In whole chunks of its virtual stages.
        layers=np.ceil(stack_depth(model) / (layouts.pipeline * chunks)) * chunks,
    )


def head_flops(job: Job) -> float:
    """FLOPs a token of the output head in a step: it is behind the last checkpoint and never runs again."""
    if isinstance(job.model, OtherNetwork):
        return 0.0
    ratio = job.training.decoder_seq_len / job.training.seq_len if job.model.decoder_layers else 1.0
    forward = 2 * ratio * count_parameters(job.model).head_multiplied
    return forward * trained_passes(job)


def trained_passes(job: Job) -> float:
    """Passes over the weights in forward units, recomputation apart: 3 in pre-training, 2 where the base is frozen."""
    return (job.total.total - job.total.attention - job.total.generation) / job.forward.weights


def passes(job: Job) -> Floats:
    """Passes over the layers' weights in forward units, recomputation included."""
    again = np.array([0.0, 0.0, updates(job.training)])
    passes: Floats = trained_passes(job) + again[job.layouts.recompute]
    return passes


def attention_again(job: Job) -> Floats:
    """FLOPs a token of attention's core that is recomputed."""
    again = updates(job.training) * job.forward.attention
    _, selective, _ = recomputed_flops(job.model, job.training)
    return np.array([0.0, selective, again])[job.layouts.recompute]


def updates(training: Training) -> float:
    """Backward passes a trained token is part of."""
    return training.update_epochs if training.method == "rl" else 1.0
