"""What accelerators achieve of their data sheets, as measured: the parameters of the throughput model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from service.domain.quantities import Range

# A number, or an array with one value for each row of measurements.
Rate = TypeVar("Rate", covariant=True)  # noqa: PLC0105 - the name of what it stands for


class BadMeasurement(Exception):
    """A measurement that cannot be used; the text names the file or the entry, what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class LossTerms:
    """What the time that a whole run loses beyond its steps and failures depends on, or the coefficients of these terms.

    Attributes
    ----------
    off_node : float
        Share of a job's peers on other nodes, from 0 to 1 [1].
    scale : float
        The same, times the doublings of the machine beyond the first size that counts [1].
    age : float
        Years of the software before the newest that is measured [years].
    mixture : float
        1 for a mixture of experts [1].
    """

    off_node: float
    scale: float
    age: float
    mixture: float


@dataclass(frozen=True, slots=True)
class LossRange:
    """Where the terms of the loss are measured: beyond it they stay as at its end.

    Attributes
    ----------
    from_count, to_count : int
        Accelerators.
    first_year, last_year : int
        Years of the software.
    """

    from_count: int
    to_count: int
    first_year: int
    last_year: int


@dataclass(frozen=True, slots=True)
class PlanCalibration:
    """Accelerator-hours of published runs against plans made of their steps and failures alone.

    Attributes
    ----------
    coefficients : LossTerms
        Logarithm of the hours over those of steps and failures, for each unit of a term [1].
    measured : LossRange
        Range of the terms.
    """

    coefficients: LossTerms
    measured: LossRange


@dataclass(frozen=True)
class KernelRates(Generic[Rate]):
    """What kernels on one device achieve.

    Attributes
    ----------
    matmul_share : float
        Share of the dense peak that large matrix products reach [1].
    attention_share : float
        Share of the dense 16-bit peak that flash attention reaches [1].
    routed_share : float
        What experts' grouped products reach of `matmul_share` [1].
    operand_share : float
        Share of the products' operand traffic that their arithmetic does not hide [1].
    tile_s : float
        Time of a product's last tiles at the 16-bit rate [s per element of its reduction].
    activation_passes, routed_passes : float
        Memory traffic of norms, activations and residuals over reading and writing each once, and of what is routed to experts [1].
    immature_share : float
        Slowdown by software of the year of the accelerator's release; half of it a year later, and so on [1].
    """

    matmul_share: Rate
    attention_share: Rate
    routed_share: Rate
    operand_share: Rate
    tile_s: Rate
    activation_passes: Rate
    routed_passes: Rate
    immature_share: Rate


@dataclass(frozen=True)
class CollectiveRates(Generic[Rate]):
    """What collectives achieve on links and between nodes.

    Attributes
    ----------
    link_share, network_share : float
        Share of the data sheet's rate reached on the link inside a node (or pod) and on the network [1].
    hop_s : float
        Time of a collective without payload for each doubling of its ranks [s].
    overlap_share : float
        Share of an exchange hidden behind work that it can run beside [1].
    tensor_overlap : float
        The same for exchanges between tensor ranks [1].
    straggler_share : float
        Slowdown of the step for each doubling of the nodes [1].
    """

    link_share: Rate
    network_share: Rate
    hop_s: Rate
    overlap_share: Rate
    tensor_overlap: Rate
    straggler_share: Rate


@dataclass(frozen=True)
class HostOverheads(Generic[Rate]):
    """Time that the host takes to launch kernels.

    Attributes
    ----------
    layer_overhead_s : float
        Launch of a layer's forward and backward [s].
    routing_overhead_s : float
        The same for the routing of a layer with experts, in addition [s].
    expert_overhead_s : float
        The same for each expert that the device holds, in addition [s].
    call_overhead_s : float
        Launch of one exchange [s].
    launch_power : float
        Exponent of the power mean that joins the times of host and device [1]; infinite is their maximum.
    """

    layer_overhead_s: Rate
    routing_overhead_s: Rate
    expert_overhead_s: Rate
    call_overhead_s: Rate
    launch_power: Rate


@dataclass(frozen=True)
class AchievedRates(KernelRates[Rate], CollectiveRates[Rate], HostOverheads[Rate]):
    """Everything that is achieved of the data sheets' rates: numbers of one machine, or arrays with one value for each row."""


@dataclass(frozen=True)
class Utilisation(AchievedRates[float]):
    """What an accelerator family achieves at a precision, from measurements.

    Attributes
    ----------
    spread : Range
        Measured over predicted throughput [1].
    source : str
        Publications that it is fitted to.
    borrowed : bool
        Whether it was measured on another part, family or precision.
    other_share : float, optional
        Share of the dense peak that networks counted by samples reach [1]; None: `matmul_share`.
    measured_over_modelled : float
        Speed of a measured step over that modelled for it: every step of the same model is faster by as much [1].
    layout_loss : float
        Logarithm of the speed in the fastest layout that is found over that in the layouts that teams run, for a job whose peers are all
        on other nodes [1]; 0 where no layout is searched.
    """

    spread: Range
    source: str
    borrowed: bool = False
    other_share: float | None = None
    measured_over_modelled: float = 1.0
    layout_loss: float = 0.0
