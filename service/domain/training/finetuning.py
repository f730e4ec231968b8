"""What fine-tuning's software takes beyond the arithmetic of pre-training: the parameters of its part of the step model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from service.domain.training.utilisation import Rate


@dataclass(frozen=True, slots=True)
class FineTuningRates(Generic[Rate]):
    """Numbers, or arrays with one value for each row of measurements.

    Attributes
    ----------
    unfused_passes, fused_passes : float
        Memory traffic of norms, activations and residuals over that of pre-training's software, operation by operation and fused [1].
    adapter_passes, fused_adapter_passes : float
        Memory traffic of adapters over reading and writing each of their inputs and outputs once, likewise [1].
    adapter_launches : float
        Host time to launch an adapter over that of a layer, operation by operation [1].
    dequantisation_passes : float
        Time of dequantisation, operation by operation, over reading the 4-bit weights and writing and reading them in 16 bit [1].
    update_passes : float
        Time of PyTorch's own optimizers over reading and writing weights, gradients and states once [1].
    step_overhead_s : float
        Host time of an optimizer step outside its layers: data loader, norm of the gradients, logging [s].
    """

    unfused_passes: Rate
    fused_passes: Rate
    adapter_passes: Rate
    fused_adapter_passes: Rate
    adapter_launches: Rate
    dequantisation_passes: Rate
    update_passes: Rate
    step_overhead_s: Rate
