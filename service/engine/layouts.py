"""Parallel layouts as arrays: one position is one way to spread a model over a machine.

tensor * pipeline * data * context = count; `expert` divides the tensor * data * context ranks of one pipeline stage.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.model import Model, OtherNetwork, Transformer
from service.domain.run import RECOMPUTES, Axes, Cluster, Training

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mesh = tuple[int, int, int, int, int]

LARGEST_MICRO_BATCH = 64
DEEPEST_PIPELINE = 64
WIDEST_TENSOR = 16
MOST_EXPERT_RANKS = 256
# A sequence is cut over context ranks only above this length: below it one device's attention is a small part of the step.
CONTEXT_SLICE_TOKENS = 4096
# The search leaves out layouts that would change the asked batch by more than this.
BATCH_ROUNDING_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Layouts:
    """Columns of equal length. `recompute` indexes `RECOMPUTES`; `micro_batch` counts sequences (or samples)."""

    tensor: Ints
    pipeline: Ints
    data: Ints
    context: Ints
    expert: Ints
    virtual_pipeline: Ints
    micro_batch: Ints
    zero_stage: Ints
    recompute: Ints

    def __len__(self) -> int:
        return len(self.tensor)

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Layouts:
        return Layouts(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def row(self, index: int) -> dict[str, int]:
        """One layout as plain numbers, by column name."""
        return {field.name: int(getattr(self, field.name)[index]) for field in fields(self)}

    @classmethod
    def single(cls, **columns: int) -> Layouts:
        """One layout from plain numbers; axes not given are 1, stage and recompute 0."""
        default = {field.name: 0 if field.name in ("zero_stage", "recompute") else 1 for field in fields(cls)}
        return cls(*(np.array([value], dtype=np.int64) for value in {**default, **columns}.values()))


def micro_batches(training: Training, layouts: Layouts) -> Floats:
    """Micro-batches a step on each data rank: the asked batch rounded to whole ones, at least one."""
    return np.maximum(1.0, np.round(training.global_batch / (layouts.data * layouts.micro_batch)))


def rounded_batch(training: Training, layouts: Layouts) -> Floats:
    """Sequences a step that the layout really trains on."""
    return micro_batches(training, layouts) * layouts.data * layouts.micro_batch


def stack_depth(model: Model) -> int:
    """Layers that a pipeline can be cut between."""
    return model.layers + model.decoder_layers if isinstance(model, Transformer) else 1


def candidate_layouts(model: Model, training: Training, cluster: Cluster) -> Layouts:
    """Every layout worth trying: the axes the caller fixed, and for the others the sizes that divide evenly.

    Raises InvalidRequest where the fixed axes cannot make up the machine.
    """
    blocks = [_block(mesh, model, training) for mesh in _meshes(model, training, cluster)]
    if not blocks:
        raise InvalidRequest(_no_layout(training, cluster), "/training/parallelism")
    layouts = Layouts(*np.concatenate(blocks, axis=1))
    near = np.abs(rounded_batch(training, layouts) / training.global_batch - 1) <= BATCH_ROUNDING_SHARE
    return layouts.take(near) if near.any() else layouts


def _no_layout(training: Training, cluster: Cluster) -> str:
    named = {name: value for name in ("tensor", "pipeline", "data", "context") if (value := getattr(training.axes, name))}
    fixed = ", ".join(f"{name} {value}" for name, value in named.items()) or "none fixed"
    return (
        f"tensor x pipeline x data x context must be the {cluster.count} accelerators ({fixed}), with no more data ranks than "
        f"the {training.global_batch} sequences of a step; change the axes, the count or global_batch_tokens"
    )


def _block(mesh: Mesh, model: Model, training: Training) -> Ints:
    """All schedules of one mesh as columns, in the order of the fields of `Layouts`."""
    _, pipeline, data, _, _ = mesh
    share = -(-training.global_batch // data)
    schedules = _schedules(training.axes, stack_depth(model), pipeline, min(share, LARGEST_MICRO_BATCH))
    columns = np.broadcast_to(np.array(mesh, dtype=np.int64)[:, None], (len(mesh), schedules.shape[1]))
    return np.concatenate([columns, schedules])


@lru_cache(maxsize=1024)
def _schedules(axes: Axes, depth: int, pipeline: int, largest_micro_batch: int) -> Ints:
    """Columns of (virtual pipeline, micro-batch, ZeRO stage, recompute) worth trying."""
    micros = [axes.micro_batch] if axes.micro_batch else _powers_of_two(largest_micro_batch)
    virtuals = [axes.virtual_pipeline] if axes.virtual_pipeline else _virtual_sizes(depth, pipeline)
    stages = [axes.zero_stage] if axes.zero_stage is not None else ([1, 3] if pipeline == 1 else [1])
    recomputes = [RECOMPUTES.index(axes.recompute)] if axes.recompute else list(range(len(RECOMPUTES)))
    return np.array(list(itertools.product(virtuals, micros, stages, recomputes)), dtype=np.int64).T


def _virtual_sizes(depth: int, pipeline: int) -> list[int]:
    """Chunks a stage that leave the fullest stage at most a tenth above an even cut (Llama 3.1 405B: 126 layers in 16 stages of 8)."""
    if pipeline == 1:
        return [1]
    cuts = {chunks: pipeline * chunks for chunks in (2, 4, 8)}
    return [1] + [chunks for chunks, cut in cuts.items() if cut <= depth and -(-depth // cut) * cut <= depth * 1.1]


def _meshes(model: Model, training: Training, cluster: Cluster) -> list[Mesh]:
    """(tensor, pipeline, data, context, expert) whose product is the machine and that the model and the batch allow."""
    axes = training.axes
    if isinstance(model, OtherNetwork):
        axes = replace(axes, tensor=axes.tensor or 1, pipeline=axes.pipeline or 1, context=axes.context or 1)
    tensors = [axes.tensor] if axes.tensor else _tensor_sizes(model, cluster)
    pipelines = [axes.pipeline] if axes.pipeline else _pipeline_sizes(stack_depth(model), cluster.count)
    contexts = [axes.context] if axes.context else _context_sizes(training.seq_len, cluster.count)
    meshes: list[Mesh] = []
    deepest = stack_depth(model) // (axes.virtual_pipeline or 1) if isinstance(model, Transformer) else cluster.count
    for tensor, pipeline, context in itertools.product(tensors, pipelines, contexts):
        data, rest = divmod(cluster.count, tensor * pipeline * context)
        if rest or not data or data > training.global_batch or pipeline > deepest or (axes.data and data != axes.data):
            continue
        meshes += [(tensor, pipeline, data, context, expert) for expert in _expert_sizes(model, axes.expert, data * context * tensor)]
    return meshes


def _powers_of_two(limit: int) -> list[int]:
    return [2**power for power in range(limit.bit_length()) if 2**power <= limit]


def _tensor_sizes(model: Model, cluster: Cluster) -> list[int]:
    heads = model.attention_heads if isinstance(model, Transformer) else 1
    sizes = _powers_of_two(min(cluster.accelerators_per_node, WIDEST_TENSOR))
    return [size for size in sizes if heads % size == 0 and cluster.count % size == 0]


def _pipeline_sizes(depth: int, count: int) -> list[int]:
    """Stages that divide the machine and leave the fullest stage at most a tenth above an even cut."""
    return [size for size in range(1, min(depth, DEEPEST_PIPELINE) + 1) if count % size == 0 and -(-depth // size) * size <= depth * 1.1]


def _context_sizes(seq_len: int, count: int) -> list[int]:
    return [size for size in _powers_of_two(max(1, seq_len // CONTEXT_SLICE_TOKENS)) if count % size == 0]


def _expert_sizes(model: Model, fixed: int | None, ranks: int) -> list[int]:
    if fixed:
        return [fixed] if ranks % fixed == 0 else []
    if not isinstance(model, Transformer) or model.experts is None:
        return [1]
    return [size for size in _powers_of_two(min(ranks, MOST_EXPERT_RANKS)) if model.experts.experts % size == 0 and ranks % size == 0]
