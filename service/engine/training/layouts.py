"""Parallel layouts as arrays: one position is one way to spread a model over a machine.

tensor * pipeline * data * context = count; `expert` * `expert_tensor` divides the tensor * data * context ranks of one pipeline stage.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import RECOMPUTES, Cluster, Training

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mesh = tuple[int, int, int, int, int, int]

# Where the search ends; a caller may fix more. Of the published layouts in tools/calibration/data/throughput.csv none has more than
# 16 tensor, 64 pipeline, 32 context or 64 expert ranks, 24 chunks a stage or 256 samples in a micro-batch.
WIDEST_TENSOR = 32
DEEPEST_PIPELINE = 64
MOST_CONTEXT_RANKS = 64
MOST_EXPERT_RANKS = 128
MOST_CHUNKS = 24
LARGEST_MICRO_BATCH = 256
# Tokens of a sequence that each context rank keeps at least: below, its share is smaller than what kernels need to be efficient.
CONTEXT_SLICE_TOKENS = 2048
# The fullest stage of a searched interleaving is at most this much above an even cut.
UNEVEN_SHARE = 0.1
# With more layouts than this (machines and batches with hundreds of divisors) micro-batches and chunks are powers of two.
MANY_LAYOUTS = 40_000
# The search leaves out layouts that would change the requested batch by more than this.
BATCH_ROUNDING_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Layouts:
    """Columns of equal length, or numbers (`only`).

    Attributes
    ----------
    tensor, pipeline, data, context, expert, expert_tensor : (layouts,) int array
        Ranks of each axis; each expert is cut into `expert_tensor` slices.
    virtual_pipeline : (layouts,) int array
        Chunks of each pipeline stage.
    micro_batch : (layouts,) int array
        Sequences (or samples) of one micro-batch.
    zero_stage : (layouts,) int array
        ZeRO stage, 0 to 3.
    recompute : (layouts,) int array
        Index of `RECOMPUTES`.
    """

    tensor: Ints
    pipeline: Ints
    data: Ints
    context: Ints
    expert: Ints
    expert_tensor: Ints
    virtual_pipeline: Ints
    micro_batch: Ints
    zero_stage: Ints
    recompute: Ints

    def __len__(self) -> int:
        return self.tensor.size

    def only(self) -> Layouts:
        """A single layout as numbers: arithmetic on arrays of one takes twice as long."""
        return Layouts(*(getattr(self, name)[0] for name in Layouts.__slots__))

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Layouts:
        """The layouts at these positions."""
        return Layouts(*(getattr(self, name)[chosen] for name in Layouts.__slots__))

    def row(self, index: int) -> dict[str, int]:
        """One layout as plain numbers, by column name."""
        return {name: int(getattr(self, name)[index]) for name in Layouts.__slots__}

    def named(self, index: int) -> dict[str, int | str]:
        """One layout in the contract's names."""
        row = self.row(index)
        recompute = RECOMPUTES[row.pop("recompute")]
        return {**row, "activation_recompute": recompute}

    @classmethod
    def single(cls, **columns: int) -> Layouts:
        """One layout from plain numbers; axes left out are 1, ZeRO stage and recomputation 0."""
        default = {field.name: 0 if field.name in ("zero_stage", "recompute") else 1 for field in fields(cls)}
        return cls(*(np.array([value], dtype=np.int64) for value in {**default, **columns}.values()))


def micro_batches(training: Training, layouts: Layouts) -> Floats:
    """Micro-batches of each data rank in a step: the requested batch rounded to whole ones, at least one.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return np.maximum(1.0, np.round(training.global_batch / (layouts.data * layouts.micro_batch)))


def rounded_batch(training: Training, layouts: Layouts) -> Floats:
    """Batch that the layout trains on in a step.

    Returns
    -------
    (layouts,) float array
        [sequences or samples].
    """
    return micro_batches(training, layouts) * layouts.data * layouts.micro_batch


def by_option(values: Sequence[Floats | float], chosen: Ints) -> Floats:
    """Of several values the one of each layout's option.

    Parameters
    ----------
    values : sequence of (options,) float or (layouts,) float array
        By option: numbers, or columns where they differ from layout to layout.
    chosen : int array that broadcasts to the layouts
        Index of the option.

    Returns
    -------
    float array
        Of the shape of `chosen`, or of what it and the columns broadcast to.
    """
    if not any(isinstance(value, np.ndarray) for value in values):
        return np.array(values)[chosen]
    columns = np.stack(np.broadcast_arrays(*values))
    return columns[chosen, np.arange(columns.shape[1])]


def auxiliary_layouts(trained: Model, layouts: Layouts) -> Layouts:
    """Layouts of networks that run beside the trained one: beside one without experts, a mixture's are cut as its dense layers are."""
    mixture = isinstance(trained, Transformer) and trained.experts is not None
    return layouts if mixture else replace(layouts, expert_tensor=layouts.tensor)


def layer_count(model: Model) -> int:
    """Layers that a pipeline can be cut between [1]."""
    return model.layers + model.decoder_layers if isinstance(model, Transformer) else 1


def candidate_layouts(model: Model, training: Training, cluster: Cluster) -> Layouts:
    """Every layout worth trying: the axes that the caller fixed, and for the others the sizes that divide evenly. Raises InvalidRequest."""
    return all_memory_options(training, base_layouts(model, training, cluster.count))


def base_layouts(model: Model, training: Training, count: int) -> Layouts:
    """Every layout worth trying, with the least recomputation and the lowest ZeRO stage that is searched.

    Parameters
    ----------
    model : Model
        Network.
    training : Training
        Batch and fixed axes.
    count : int
        Accelerators.

    Returns
    -------
    Layouts
        Columns of equal length.

    Raises
    ------
    InvalidRequest
        The fixed axes cannot make up the machine.
    """
    meshes = _meshes(model, training, count)
    if not meshes:
        raise InvalidRequest(_no_layout(training, count), "/training/parallelism")
    batched = _with_micro_batches(meshes, training)
    rounds = micro_batches(training, batched) % batched.pipeline == 0
    if (training.axes.virtual_pipeline or 1) > 1 and rounds.any():
        batched, rounds = batched.take(rounds), rounds[rounds]
    return _with_chunks(batched, rounds, training.axes.virtual_pipeline, layer_count(model))


def all_memory_options(training: Training, layouts: Layouts) -> Layouts:
    """Each layout with every recomputation and, within each, every ZeRO stage worth trying, fastest first."""
    shape = len(layouts), len(searched_recomputes(training)), len(searched_zero_stages(training))
    row, recompute, zero_stage = np.nonzero(np.ones(shape))
    return with_memory_options(training, layouts, (recompute, zero_stage, row))


def memory_option_grid(training: Training, layouts: Layouts) -> Layouts:
    """`all_memory_options` as columns that broadcast to a (recomputations, ZeRO stages, layouts) grid."""
    recompute, zero_stage = np.array(searched_recomputes(training)), np.array(searched_zero_stages(training))
    if len(layouts) == recompute.size == zero_stage.size == 1:
        return layouts.only()
    return replace(layouts, recompute=recompute[:, np.newaxis, np.newaxis], zero_stage=zero_stage[:, np.newaxis])


def with_memory_options(training: Training, layouts: Layouts, places: tuple[Ints, ...]) -> Layouts:
    """The layouts at positions of `memory_option_grid`.

    Parameters
    ----------
    training : Training
        Fixed recomputation and ZeRO stage.
    layouts : Layouts
        Layouts of the grid's last axis.
    places : tuple of 3 (positions,) int arrays
        Indices along each axis of the grid.

    Returns
    -------
    Layouts
        Columns of length (positions,).
    """
    recompute, zero_stage, row = places
    recomputes, zero_stages = np.array(searched_recomputes(training)), np.array(searched_zero_stages(training))
    return replace(layouts.take(row), recompute=recomputes[recompute], zero_stage=zero_stages[zero_stage])


def searched_recomputes(training: Training) -> list[int]:
    """Indices of `RECOMPUTES` worth trying, in rising order of cost."""
    return list(range(len(RECOMPUTES))) if training.axes.recompute is None else [RECOMPUTES.index(training.axes.recompute)]


def searched_zero_stages(training: Training) -> list[int]:
    """ZeRO stages worth trying, in rising order of cost. 0 never needs less memory than 1, nor less time."""
    return [1, 2, 3] if training.axes.zero_stage is None else [training.axes.zero_stage]


def _with_micro_batches(meshes: list[Mesh], training: Training) -> Layouts:
    """Each mesh with each micro-batch that keeps the requested batch, or with all of them where none does."""
    fixed, batch = training.axes.micro_batch, training.global_batch
    sizes = _not_too_many([(fixed,) if fixed else _micro_batch_sizes(-(-batch // data)) for _, _, data, *_ in meshes])
    repeated = np.repeat(np.array(meshes, dtype=np.int64).T, list(map(len, sizes)), axis=1)
    tensor, pipeline, data, context, expert, expert_tensor = repeated
    micro_batch = np.fromiter(itertools.chain.from_iterable(sizes), dtype=np.int64)
    one = np.ones(len(tensor), dtype=np.int64)
    stage, recompute = one * searched_zero_stages(training)[0], one * searched_recomputes(training)[0]
    layouts = Layouts(tensor, pipeline, data, context, expert, expert_tensor, one, micro_batch, stage, recompute)
    kept = np.abs(rounded_batch(training, layouts) / batch - 1) <= BATCH_ROUNDING_SHARE
    return layouts.take(kept) if kept.any() and not kept.all() else layouts


def _no_layout(training: Training, count: int) -> str:
    named = {name: value for name in ("tensor", "pipeline", "data", "context") if (value := getattr(training.axes, name))}
    fixed = ", ".join(f"{name} {value}" for name, value in named.items()) or "none fixed"
    return (
        f"tensor x pipeline x data x context must be the {count} accelerators ({fixed}), with no more data ranks than "
        f"the {training.global_batch} sequences of a step, and a pipeline above 1 where virtual_pipeline is; change the axes, the count or"
        " global_batch_tokens"
    )


def _with_chunks(layouts: Layouts, rounds: NDArray[np.bool_], fixed: int | None, depth: int) -> Layouts:
    """Each layout with each number of chunks worth trying; the product of layouts and chunks is one column."""
    # Interleaving takes micro-batches in whole rounds of the stages (Narayanan et al. 2021, arXiv 2104.04473, section 2.2).
    if fixed:
        return replace(layouts, virtual_pipeline=np.full(len(layouts), fixed))
    by_pipeline = {pipeline: _virtual_sizes(depth, pipeline) for pipeline in set(layouts.pipeline.tolist())}
    pairs = zip(layouts.pipeline.tolist(), rounds.tolist(), strict=True)
    sizes = _not_too_many([by_pipeline[pipeline] if whole else (1,) for pipeline, whole in pairs])
    repeated = layouts.take(np.repeat(np.arange(len(layouts)), list(map(len, sizes))))
    return replace(repeated, virtual_pipeline=np.fromiter(itertools.chain.from_iterable(sizes), dtype=np.int64))


def _not_too_many(sizes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sizes of each layout, or powers of two alone (and a size that has no alternative) where they make too many layouts."""
    if sum(map(len, sizes)) <= MANY_LAYOUTS:
        return sizes
    return [_powers_of_two(each) for each in sizes]


@lru_cache(maxsize=4096)
def _powers_of_two(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in sizes if size.bit_count() == 1) or sizes[:1]


@lru_cache(maxsize=4096)
def _micro_batch_sizes(share: int) -> tuple[int, ...]:
    """Divisors of a rank's share of the batch, and powers of two, for a share with few divisors."""
    sizes = range(1, min(share, LARGEST_MICRO_BATCH) + 1)
    return tuple(size for size in sizes if share % size == 0 or size.bit_count() == 1)


@lru_cache(maxsize=4096)
def _virtual_sizes(depth: int, pipeline: int) -> tuple[int, ...]:
    """Chunks of a stage worth trying: 1, and the fewest of each size in whole layers that are nearly even."""
    # Embedding and head may be chunks of their own.
    deepest = min(MOST_CHUNKS, (depth + 2) // pipeline) if pipeline > 1 else 1
    layers = [-(-depth // (pipeline * chunks)) for chunks in range(1, deepest + 1)]
    # The fullest stage is at most a tenth above an even cut (Llama 3.1 405B: 126 layers in 16 stages of 8).
    nearly_even = depth * (1 + UNEVEN_SHARE) / pipeline
    further = [
        chunks for chunks in range(2, deepest + 1) if layers[chunks - 1] < layers[chunks - 2] and layers[chunks - 1] * chunks <= nearly_even
    ]
    return (1, *further)


def _meshes(model: Model, training: Training, count: int) -> list[Mesh]:
    """(tensor, pipeline, data, context, expert, expert_tensor) whose product is the machine and that the model and the batch allow."""
    axes = training.axes
    if isinstance(model, GenericNetwork):
        axes = replace(axes, tensor=axes.tensor or 1, pipeline=axes.pipeline or 1, context=axes.context or 1)
    tensors = [axes.tensor] if axes.tensor else _tensor_sizes(model, count)
    pipelines = [axes.pipeline] if axes.pipeline else _divisors(count, min(layer_count(model), DEEPEST_PIPELINE))
    contexts = [axes.context] if axes.context else _context_sizes(training.seq_len, count)
    chunks = axes.virtual_pipeline or 1
    if chunks > 1 and not training.axes.pipeline:
        pipelines = [size for size in pipelines if size > 1]
    # Embedding and head may be chunks of their own.
    deepest = (layer_count(model) + (2 if chunks > 1 else 0)) // chunks if isinstance(model, Transformer) else count
    experts = model.experts.experts if isinstance(model, Transformer) and model.experts else 1
    meshes: list[Mesh] = []
    for tensor, pipeline, context in itertools.product(tensors, pipelines, contexts):
        data, rest = divmod(count, tensor * pipeline * context)
        if rest or not data or data > training.global_batch or pipeline > deepest or (axes.data and data != axes.data):
            continue
        sizes = _expert_meshes(experts, axes.expert, axes.expert_tensor, tensor, data * context * tensor)
        meshes += [(tensor, pipeline, data, context, *size) for size in sizes]
    return meshes


def _divisors(number: int, limit: int) -> list[int]:
    return [size for size in range(1, min(number, limit) + 1) if number % size == 0]


def _tensor_sizes(model: Model, count: int) -> list[int]:
    heads = model.attention_heads if isinstance(model, Transformer) else 1
    return _divisors(math.gcd(heads, count), WIDEST_TENSOR)


def _context_sizes(seq_len: int, count: int) -> list[int]:
    sizes = _divisors(math.gcd(seq_len, count), max(1, min(seq_len // CONTEXT_SLICE_TOKENS, MOST_CONTEXT_RANKS)))
    return [size for size in sizes if size.bit_count() == 1]


@lru_cache(maxsize=4096)
def _expert_meshes(experts: int, fixed: int | None, slices: int | None, tensor: int, ranks: int) -> tuple[tuple[int, int], ...]:
    """(expert, expert_tensor) worth trying: whole experts, and experts cut as the dense layers are."""
    # Frameworks offer these two: Megatron Core takes `tensor` where nothing is stated, its recipes for narrow experts 1. Where as many
    # ranks can hold whole experts slices save nothing: they are tried only where there are too few experts for that, or where the caller
    # fixes how many ranks the experts have.
    if experts == 1:
        return tuple((size, slices or 1) for size in _expert_sizes(experts, fixed, ranks))
    whole = [(size, 1) for size in _expert_sizes(experts, fixed, ranks)] if slices in (None, 1) else []
    cut = slices or tensor
    if cut == 1 or ranks % cut:
        return tuple(whole)
    sliced = [(size, cut) for size in _expert_sizes(experts, fixed, ranks // cut) if slices or fixed or experts % (size * cut)]
    return (*whole, *sliced)


@lru_cache(maxsize=4096)
def _expert_sizes(experts: int, fixed: int | None, ranks: int) -> tuple[int, ...]:
    if fixed:
        return (fixed,) if ranks % fixed == 0 else ()
    sizes = _divisors(math.gcd(experts, ranks), MOST_EXPERT_RANKS)
    # The largest up to each power of two: sizes between them differ little, and some numbers of experts have dozens of divisors.
    return tuple(size for size, larger in itertools.pairwise([*sizes, 2 * MOST_EXPERT_RANKS]) if size.bit_length() < larger.bit_length())
