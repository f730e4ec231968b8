"""A model in service: its requests, weight formats, and what serving engines reach on a machine."""

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
    """The mean request.

    Attributes
    ----------
    prompt_tokens, output_tokens : float
    cached_share : float
        Share of the prompt whose keys and values are found in a cache and not computed again [1].
    ttft_s, tpot_s : float or None
        Longest accepted time to first token and time per output token [s]; None: any.
    """

    prompt_tokens: float
    output_tokens: float
    cached_share: float = 0.0
    ttft_s: float | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Storage of weights and cache.

    Attributes
    ----------
    bits : int
        Of a weight.
    weight_bytes, kv_bytes, table_bytes : float
        Bytes of a matrix weight and of a cache element, with their scales, and of an element of embedding and head.
    arithmetic : tuple of str
        Precisions it is multiplied in as it is stored; the first that the accelerator has is used, else it is widened to 16 bit.
    """

    name: str
    bits: int
    weight_bytes: float
    kv_bytes: float
    table_bytes: float
    arithmetic: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class ServingRates:
    """What serving engines reach on a family of accelerators.

    Attributes
    ----------
    bandwidth_share, compute_share : float
        Of the memory bandwidth while reading, and of the dense peak in matrix products [1].
    routed_share : float
        Part of these rates that experts' matrices reach [1].
    link_share : float
        Of the link bandwidth [1].
    layer_s, hop_s, host_s : float
        Fixed times of a layer's kernels, of an all-reduce for each doubling of its ranks, and of a step [s].
    spread, routed_spread, many_experts_spread : Range
        Measured over predicted throughput of dense models, of mixtures of few experts and of those of many [1].
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
    many_experts_spread: Range
    source: str


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Settings of serving engines.

    Attributes
    ----------
    cache_share : float
        Share of the free memory given to the cache [1].
    reserve_bytes : float
        Memory that the engine itself holds [B].
    max_batch : float
        Sequences in flight on one group of tensor ranks.
    chunk_tokens : float
        Prompt tokens of one step.
    max_accelerators : int
        Largest replica that a search tries.
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
    achieved: ServingRates
    limits: EngineLimits


@dataclass(frozen=True, slots=True)
class Replicas:
    """Configurations of one replica.

    A dense model's groups of tensor ranks are the stages of a pipeline. A mixture's groups run attention side by side on their own
    sequences, and its experts are divided over all accelerators (as in DeepSeek-V3, arXiv 2412.19437, section 3.4).

    Attributes
    ----------
    accelerators, tensor, batch : float or (configurations,) float array
        Accelerators, tensor ranks of a group, sequences in flight.
    """

    accelerators: Amount
    tensor: Amount
    batch: Amount


@dataclass(frozen=True, slots=True)
class CompressionMethod:
    """A way to make a model cheaper to serve: quantisation or distillation.

    Attributes
    ----------
    formats : tuple of str
        Weight formats it leads to.
    tokens : float
        Tokens it takes.
    trains : bool
        Weights are trained, not only calibrated.
    teacher : bool
        A larger or unquantised model runs alongside.
    quality_loss : Range
        Loss of benchmark scores [%].
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
