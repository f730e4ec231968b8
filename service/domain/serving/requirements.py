"""A model in service: what is asked of it, how its numbers are stored, and what engines reach of a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain.quantities import Range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from service.domain.training.hardware import Accelerator

    Amount = float | NDArray[np.float64]
    """A figure, or an array of them: one for each configuration, or a column of one for each model size."""


@dataclass(frozen=True, slots=True)
class MeanRequest:
    """The mean request. `cached_share`: part of the prompt whose keys and values are found in a cache and not computed again.

    `ttft_s` and `tpot_s`: longest time to the first token and between output tokens [s] that is accepted, None where any is.
    """

    prompt_tokens: float
    output_tokens: float
    cached_share: float = 0.0
    ttft_s: float | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How weights and cache are stored: bytes of a matrix weight and of a cache element with their scales, and of a table's element.

    `arithmetic`: the precisions of the peak that it may be multiplied in, the first that the accelerator has is taken. `bits` of a weight.
    """

    name: str
    bits: int
    weight_bytes: float
    kv_bytes: float
    table_bytes: float
    arithmetic: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class AchievedRates:
    """What serving engines reach on a family of accelerators.

    `bandwidth_share` of the memory's bandwidth while reading weights and cache; `compute_share` of the dense peak in matrix products;
    `routed_share`: part of these rates that experts' matrices reach; `link_share` of the link's bandwidth. Fixed times [s]: `layer_s` of
    a layer's kernels, `hop_s` of an all-reduce for each doubling of its ranks, `host_s` of a step. `spread`: measured over predicted
    throughput; `routed_spread` that of mixtures of experts.
    """

    family: str
    bandwidth_share: float
    compute_share: float
    routed_share: float
    link_share: float
    layer_s: float
    hop_s: float
    host_s: float
    spread: Range
    routed_spread: Range
    source: str


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What engines are run with: share of the free memory given to the cache, bytes held beside, and their batching limits.

    `max_batch`: sequences at once on one group of tensor ranks; `chunk_tokens`: prompt tokens that one step may hold;
    `max_accelerators` of a replica that a search tries.
    """

    cache_share: float
    reserve_bytes: float
    max_batch: float
    chunk_tokens: float
    max_accelerators: int


@dataclass(frozen=True, slots=True)
class ServingMachine:
    """An accelerator with what serving engines reach on it."""

    accelerator: Accelerator
    achieved: AchievedRates
    limits: EngineLimits


@dataclass(frozen=True, slots=True)
class Replicas:
    """Configurations of one replica, one element each: accelerators, tensor ranks of a group, and sequences in flight.

    A dense model's groups are the stages of a pipeline. A mixture's groups run attention side by side on their own sequences, and its
    experts are divided over all accelerators (as in DeepSeek-V3, arXiv 2412.19437, section 3.4).
    """

    accelerators: Amount
    tensor: Amount
    batch: Amount


@dataclass(frozen=True, slots=True)
class CompressionMethod:
    """A way to make a model cheaper to serve. `formats` it leads to; `tokens` it takes; `quality_loss` in per cent of benchmark scores.

    `trains`: weights are trained, not only calibrated; `teacher`: a larger or unquantised model runs beside.
    """

    name: str
    title: str
    formats: tuple[str, ...]
    tokens: float
    trains: bool
    teacher: bool
    quality_loss: Range
    risk: str
    source: str
