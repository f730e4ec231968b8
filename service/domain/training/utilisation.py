"""What accelerators achieve of their data sheets, as measured: the few parameters of the throughput model."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.quantities import Range


@dataclass(frozen=True, slots=True)
class PlanCalibration:
    """How published runs went against plans made of their steps alone.

    `lost_between_nodes`: time a whole run loses beyond its steps' and its failures', over theirs, on ever more nodes; a job of one node
    loses nothing. `spread`: actual over planned hours beyond the speed's own error, p50 1.
    """

    lost_between_nodes: float
    spread: Range


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What an accelerator family achieves at a precision, from measurements.

    `matmul_share`: share of the dense peak that large matrix work reaches; `routed_share`: what experts' grouped products reach of
    that. `operand_share`: part of the products' operand traffic that their arithmetic does not hide. `tile_s`: seconds that a
    product's last tiles cost, an element of its reduction, at the 16-bit rate. `attention_share`: share of the 16-bit peak that
    flash attention's kernels reach. `activation_passes`: memory traffic of norms, activations and residuals over that of reading
    and writing each once. `link_share`, `network_share`: share of the rates of the link inside a node (or pod) and of the network
    that collectives reach. `hop_s`: seconds of a collective that carries nothing, each doubling of its ranks. `overlap_share`: part
    of an exchange that hides behind work it can run beside; `tensor_overlap`: of the tensor ranks' exchanges. `layer_overhead_s`:
    the host's time to launch a layer's forward and backward; `routing_overhead_s`: a routed layer's on top; `expert_overhead_s`: on
    top of that, of every expert the device holds of it; `call_overhead_s`: an exchange's. `launch_power`: how sharply the slower of
    host and device decides. `straggler_share`: slowdown by each doubling of the nodes. `other_share`: share of the dense peak that
    networks counted by samples reach (None: as matrix work). `spread`: measured over predicted throughput,
    p10 to p90.
    """

    matmul_share: float
    attention_share: float
    routed_share: float
    operand_share: float
    tile_s: float
    activation_passes: float
    link_share: float
    network_share: float
    hop_s: float
    overlap_share: float
    tensor_overlap: float
    layer_overhead_s: float
    routing_overhead_s: float
    expert_overhead_s: float
    call_overhead_s: float
    straggler_share: float
    launch_power: float
    spread: Range
    source: str
    borrowed: bool = False
    other_share: float | None = None


class BadMeasurement(Exception):
    """A measurement that cannot be used; the text names the file or the entry, what is wrong and what would be right."""
