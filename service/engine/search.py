"""Which layout a run takes: the fastest that fits, and what would fit where none does."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.model import Model, Transformer
from service.domain.run import RECOMPUTES, Axes, Cluster, Training
from service.domain.utilisation import Utilisation
from service.engine.layouts import Layouts, candidate_layouts
from service.engine.memory import memory
from service.engine.throughput import Step, step

LARGEST_MACHINE = 2**17


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout taken: its columns (one position), its step and its memory in bytes by part."""

    layouts: Layouts
    steps: Step
    memory_bytes: dict[str, float]
    fits: bool

    @property
    def total_bytes(self) -> float:
        return sum(self.memory_bytes.values())


@lru_cache(maxsize=512)
def choose_layout(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation) -> Choice:
    """The fastest layout that fits; where none fits the leanest one, with `fits` false.

    Raises InvalidRequest where the axes the caller fixed cannot make up the machine or cut the model.
    """
    _check_axes(model, training)
    layouts = candidate_layouts(model, training, cluster)
    used = memory(model, training, layouts)
    steps = step(model, training, cluster, utilisation, layouts)
    fits = used.total <= cluster.accelerator.usable_memory_bytes
    rate = steps.batch / steps.total
    best = int(np.argmax(np.where(fits, rate, 0.0))) if fits.any() else int(np.argmin(used.total))
    only = np.array([best])
    return Choice(
        layouts=layouts.take(only),
        steps=Step(*(getattr(steps, name)[only] for name in Step.__slots__)),
        memory_bytes={name: float(values[best]) for name, values in used.parts.items()},
        fits=bool(fits[best]),
    )


def _check_axes(model: Model, training: Training) -> None:
    """Raises InvalidRequest where a fixed axis cannot cut this model."""
    axes = training.axes
    if axes.context and training.seq_len % axes.context:
        raise InvalidRequest(
            f"a sequence of {training.seq_len} does not divide by context {axes.context}; take a divisor", "/training/parallelism/context"
        )
    if not isinstance(model, Transformer):
        return
    depth = model.layers + model.decoder_layers
    if axes.tensor and model.attention_heads % axes.tensor:
        raise InvalidRequest(
            f"{model.attention_heads} attention heads do not divide by tensor {axes.tensor}; take a divisor", "/training/parallelism/tensor"
        )
    if axes.pipeline and axes.pipeline > depth:
        raise InvalidRequest(f"pipeline {axes.pipeline} has more stages than the model's {depth} layers", "/training/parallelism/pipeline")
    if axes.virtual_pipeline and axes.virtual_pipeline * (axes.pipeline or 1) > depth:
        raise InvalidRequest(
            f"virtual_pipeline {axes.virtual_pipeline} on pipeline {axes.pipeline or 1} makes more chunks than the model's {depth} layers",
            "/training/parallelism/virtual_pipeline",
        )
    if axes.expert and axes.expert > 1 and model.experts is None:
        raise InvalidRequest("expert parallelism needs a mixture of experts; leave it out or set it to 1", "/training/parallelism/expert")
    if axes.expert and model.experts and model.experts.experts % axes.expert:
        raise InvalidRequest(
            f"{model.experts.experts} experts do not divide by expert {axes.expert}; take a divisor", "/training/parallelism/expert"
        )


def parallelism(choice: Choice) -> dict[str, int | str]:
    """The layout taken in the contract's names."""
    row = choice.layouts.row(0)
    named: dict[str, int | str] = dict(row)
    named["activation_recompute"] = RECOMPUTES[row["recompute"]]
    del named["recompute"]
    return named


def what_would_fit(model: Model, training: Training, cluster: Cluster) -> tuple[str, ...]:
    """What would make the model fit, in sentences: a leaner layout, a bigger machine, more memory.

    Each is found by the search itself, so that asking for what it says is answered with a layout that fits.
    """
    capacity = cluster.accelerator.usable_memory_bytes
    free = replace(training, axes=Axes())
    leaner = _leanest_bytes(model, free, cluster)
    if leaner <= capacity:
        found = ["on this machine a layout that is searched for: leave parallelism, micro_batch, zero_stage and activation_recompute open"]
    else:
        found = [
            _larger_machine(model, free, cluster)
            or "no number of these accelerators holds it at this sequence length: take accelerators with more memory",
            f"{cluster.count} accelerators with at least {math.ceil(leaner / 1e9)} GB each hold it",
        ]
    if training.method == "full_finetune":
        found.append('method "lora" or "qlora" trains with a fraction of this memory')
    return tuple(found)


def _larger_machine(model: Model, training: Training, cluster: Cluster) -> str | None:
    """The smallest doubling of the machine that holds the model, with a larger batch where its ranks need one."""
    count = cluster.count
    while count < LARGEST_MACHINE:
        count *= 2
        grown = replace(cluster, count=count)
        for batch in sorted({training.global_batch, max(training.global_batch, count)}):
            if _leanest_bytes(model, replace(training, global_batch=batch), grown) <= cluster.accelerator.usable_memory_bytes:
                larger_batch = f" with a batch of {batch} sequences" if batch > training.global_batch else ""
                return f"{count} of these accelerators hold it{larger_batch}"
    return None


def _leanest_bytes(model: Model, training: Training, cluster: Cluster) -> float:
    try:
        layouts = candidate_layouts(model, training, cluster)
    except InvalidRequest:
        return float("inf")
    return float(np.min(memory(model, training, layouts).total))


def does_not_fit(model: Model, training: Training, cluster: Cluster, choice: Choice) -> DoesNotFit:
    """The error for a search in which nothing fits."""
    needed, held = choice.total_bytes / 1e9, cluster.accelerator.usable_memory_bytes / 1e9
    advice = "; ".join(what_would_fit(model, training, cluster))
    return DoesNotFit(
        f"no layout fits {cluster.count} x {cluster.accelerator.name}: the leanest needs {needed:,.1f} GB on an accelerator of "
        f"{held:,.1f} GB usable. What would fit: {advice}",
        "/hardware",
    )
