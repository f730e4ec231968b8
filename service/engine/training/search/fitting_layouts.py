"""Layouts that are worth timing: those near the available memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.training.model import Model, Transformer
from service.domain.training.run import TUNED, Axes, Cluster, Training
from service.engine.training.layouts import Layouts, base_layouts, memory_option_grid, with_memory_options
from service.engine.training.memory.memory_use import MemoryUse, memory_use
from service.engine.training.search.alternatives import has_several_meshes

# Layouts that need more than this multiple of the memory are not timed: they say nothing about what to change.
NEAR_MISS = 2.0


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SizedLayouts:
    """Layouts with their memory.

    Attributes
    ----------
    layouts : Layouts
        Columns of length (layouts,).
    needed : (layouts,) float array
        Memory [B].
    used : MemoryUse
        The grid that they are taken from.
    places : tuple of (layouts,) int arrays
        Their positions in the grid, one array an axis.
    capacity : float
        Memory that they may fill [B].
    """

    layouts: Layouts
    needed: Floats
    used: MemoryUse
    places: tuple[NDArray[np.int64], ...]
    capacity: float

    @property
    def some_fit(self) -> bool:
        """Whether any fits."""
        return bool((self.needed <= self.capacity).any())

    def parts(self, index: int) -> dict[str, float]:
        """Memory of one layout by part [B]."""
        return self.used.at(tuple(int(axis[index]) for axis in self.places))


def filled_share(training: Training) -> float:
    """Of the usable memory, what jobs of this method fill that can choose their layout [1]."""
    return training.footprint.finetuning.filled_share if training.method in TUNED else training.footprint.filled_share


def leanest_fusion(training: Training) -> Training:
    """The training with the fusion of kernels that takes the least memory, where the caller leaves it open."""
    if training.kernel_fusion is not None or training.method not in TUNED:
        return training
    return replace(training, kernel_fusion="fused_linear_cross_entropy")


def layouts_worth_timing(model: Model, training: Training, cluster: Cluster) -> tuple[SizedLayouts, Training, bool]:
    """Layouts worth timing, their training, and whether its kernels are fused because nothing fits otherwise. Raises InvalidRequest."""
    capacity, leaner = cluster.accelerator.usable_memory_bytes, leanest_fusion(training)
    domain = cluster.link_domain
    # A job that can choose leaves its allocator room and cuts matrices within the fast link; one that has no choice is tried to the brim,
    # then beyond the link.
    asked = [(training, filled_share(training), domain), (training, 1.0, domain), (training, 1.0, cluster.count)]
    asked += [] if leaner is training else [(leaner, 1.0, domain), (leaner, 1.0, cluster.count)]
    for each, share, widest in asked:
        weighed = _near_memory(model, each, cluster.count, share * capacity, widest)
        if weighed.some_fit:
            break
    return weighed, each, each is not training


def _near_memory(model: Model, training: Training, count: int, capacity: float, widest: int) -> SizedLayouts:
    """Layouts near the available memory, or the leanest where none is: the same in every network. Raises InvalidRequest."""
    # More recomputation and higher ZeRO stages cost time and never save any: where the machine can be divided in several ways, they are
    # tried only for layouts that do not fit without.
    check_axes(model, training)
    plain, used, needed = within_link(training, widest, _weighed(model, training, count))
    one_mesh, fits = not has_several_meshes(plain), needed <= capacity
    some_fit = bool(fits.any())
    if not some_fit and not one_mesh:
        bare = within_link(training, widest, _barest(model, training, count))
        # One that is not among the plain ones, because it makes no whole rounds of interleaving, is none that is searched.
        return _leanest(training, capacity, *((plain, used, needed) if (bare[2] <= capacity).any() else bare))
    if one_mesh:
        worth = needed <= (NEAR_MISS * capacity if some_fit else needed.min())
        row, recompute, zero_stage = np.nonzero(worth.transpose(2, 0, 1))
        places: tuple[NDArray[np.int64], ...] = recompute, zero_stage, row
    else:
        places = near_capacity(needed, capacity, np.zeros(len(plain), dtype=np.int64))
    return SizedLayouts(with_memory_options(training, plain, places), needed[places], used, places, capacity)


def near_capacity(needed: Floats, capacity: float, shape: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Positions in a grid of the layouts that fit or nearly do, without those that recompute or shard more than they have to.

    Parameters
    ----------
    needed : (recomputations, ZeRO stages, layouts) float array
        Memory [B].
    capacity : float
        Memory that they may fill [B].
    shape : (layouts,) int array
        Of several shapes that are searched together the one that the layout is of.

    Returns
    -------
    tuple of 3 (positions,) int arrays
        Indices along each axis of the grid, shape by shape, those first that fit without recomputation or sharding.
    """
    fits, worth = needed <= capacity, needed <= NEAR_MISS * capacity
    worth &= ~np.where(fits, _needlessly_lean(fits), _needlessly_lean(worth))
    row, recompute, zero_stage = np.nonzero(worth.transpose(2, 0, 1))
    # Of equally fast layouts the first is chosen.
    order = np.lexsort((~fits[0, 0, row], shape[row]))
    return recompute[order], zero_stage[order], row[order]


def within_link(training: Training, widest: int, weighed: tuple[Layouts, MemoryUse, Floats]) -> tuple[Layouts, MemoryUse, Floats]:
    """The same, with layouts that are cut wider than that, and were not asked for, beyond any memory."""
    layouts, used, needed = weighed
    axes = training.axes
    wide = [column > widest for column, asked in ((layouts.tensor, axes.tensor), (layouts.expert_tensor, axes.expert_tensor)) if not asked]
    beyond = np.any(wide, axis=0) if wide else np.False_
    return (layouts, used, np.where(beyond, np.inf, needed)) if beyond.any() else weighed


def _leanest(training: Training, capacity: float, layouts: Layouts, used: MemoryUse, needed: Floats) -> SizedLayouts:
    """Layouts that need the least memory."""
    places = np.nonzero(needed <= needed.min())
    return SizedLayouts(with_memory_options(training, layouts, places), needed[places], used, places, capacity)


# Memory is the same on every accelerator: a comparison of several asks for it repeatedly.
@lru_cache(maxsize=4)
def _weighed(model: Model, training: Training, count: int) -> tuple[Layouts, MemoryUse, Floats]:
    """`base_layouts`, and their memory with every recomputation and ZeRO stage, as a grid."""
    return with_every_saving(model, training, base_layouts(model, training, count))


@lru_cache(maxsize=4)
def _barest(model: Model, training: Training, count: int) -> tuple[Layouts, MemoryUse, Floats]:
    """Every mesh with one sequence at a time and full stages, where these are not stated, as `_weighed`."""
    axes = training.axes
    bare = replace(training, axes=replace(axes, micro_batch=axes.micro_batch or 1, virtual_pipeline=axes.virtual_pipeline or 1))
    return with_every_saving(model, training, base_layouts(model, bare, count))


def with_every_saving(model: Model, training: Training, layouts: Layouts) -> tuple[Layouts, MemoryUse, Floats]:
    """The layouts, and their memory with every recomputation and ZeRO stage, as a grid."""
    grid = memory_option_grid(training, layouts)
    used = memory_use(model, training, grid)
    return layouts, used, np.broadcast_to(used.total, (grid.recompute.size, grid.zero_stage.size, len(layouts)))


def _needlessly_lean(enough: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Layouts of a grid that recompute or shard more than one that is lean `enough` and otherwise the same."""
    so_far = enough.copy()
    for at in range(1, so_far.shape[0]):
        so_far[at] |= so_far[at - 1]
    for at in range(1, so_far.shape[1]):
        so_far[:, at] |= so_far[:, at - 1]
    needless = np.zeros_like(so_far)
    needless[1:] |= so_far[:-1]
    needless[:, 1:] |= so_far[:, :-1]
    return needless


def check_axes(model: Model, training: Training) -> None:
    """Raise InvalidRequest where a fixed axis cannot divide this model."""
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
    # In a pipeline embedding and head may be chunks of their own (Llama 3, arXiv 2407.21783, section 3.3.2: 126 layers in 16 x 8).
    most_chunks = depth + 2 if axes.pipeline and axes.pipeline > 1 else depth
    if axes.virtual_pipeline and axes.virtual_pipeline * (axes.pipeline or 1) > most_chunks:
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
    _check_expert_slices(model, axes)


def _check_expert_slices(model: Transformer, axes: Axes) -> None:
    """Raise InvalidRequest where experts cannot be cut into the stated slices."""
    slices, pointer = axes.expert_tensor or 1, "/training/parallelism/expert_tensor"
    if slices > 1 and model.experts is None:
        raise InvalidRequest("expert tensor parallelism needs a mixture of experts; leave it out or set it to 1", pointer)
    if model.experts and model.experts.ffn_hidden_size % slices:
        raise InvalidRequest(
            f"experts of width {model.experts.ffn_hidden_size} do not divide by expert_tensor {slices}; take a divisor", pointer
        )
