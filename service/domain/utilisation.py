"""What accelerators achieve of their data sheets, as measured: the few parameters of the throughput model."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.quantity import Range


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What an accelerator family achieves at a precision, from measurements.

    `matmul_share`: share of the dense peak that large matrix work reaches. `half_width`: matrix width (elements on one
    device) at which half of that is reached. `link_share`: share of a link's rate that collectives reach. `overlap_share`:
    part of the data-parallel exchange hidden behind the backward pass. `layer_overhead_s`: host and launch time of one
    layer's forward and backward. `spread`: measured over predicted throughput, p10 to p90, p50 near 1.
    `attention_share`: share of the 16-bit peak that attention's core reaches (None: as other matrix work).
    `activation_passes`: how often a layer's kept activations cross the memory bus in a step, for norms, residuals and the like.
    `collective_latency_s`: time of one collective that carries nothing. `straggler_share`: slowdown by each doubling of the
    nodes. `other_share`: share of the dense peak that networks counted by samples reach (None: as matrix work).
    `link_domain`: accelerators the fast link joins where that is more than a node (a rack, a pod).
    """

    matmul_share: float
    half_width: float
    link_share: float
    overlap_share: float
    layer_overhead_s: float
    spread: Range
    source: str
    borrowed: bool = False
    attention_share: float | None = None
    activation_passes: float = 0.0
    collective_latency_s: float = 0.0
    straggler_share: float = 0.0
    other_share: float | None = None
    link_domain: int = 1
