"""A step measured by the caller: its speed, and how far it is from the model's, which a plan of other size or layout carries over."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import GenericNetwork
from service.domain.training.run import Efficiency, MeasuredOn, Run, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.flops import TrainingFlops, training_flops
from service.engine.training.search.layout_search import LayoutChoice, choose_layout
from service.engine.training.step.workload import peak_flops


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A measured step beside the modelled one.

    Attributes
    ----------
    measured, modelled : float
        Throughput of one accelerator [tokens (or samples) per s].
    choice : LayoutChoice
        Its layout: stated, or the fastest that fits.
    """

    measured: float
    modelled: float
    choice: LayoutChoice

    @property
    def ratio(self) -> float:
        """Measured over modelled throughput [1]."""
        return self.measured / self.modelled


def measured_tokens_per_s(efficiency: Efficiency, accelerator: Accelerator, precision: Precision, flops: TrainingFlops) -> float:
    """Throughput of one accelerator at a stated efficiency.

    Parameters
    ----------
    efficiency : Efficiency
        One figure.
    accelerator : Accelerator
        Data sheet.
    precision : str
        Precision of the products.
    flops : TrainingFlops
        Arithmetic of one token.

    Returns
    -------
    float
        [tokens (or samples) per s].

    Raises
    ------
    InvalidRequest
        More than the dense peak.
    """
    peak = peak_flops(accelerator, precision)
    if efficiency.tokens_per_s_per_accelerator is not None:
        rate, field = efficiency.tokens_per_s_per_accelerator, "tokens_per_s_per_accelerator"
    elif efficiency.tflops_per_accelerator is not None:
        rate, field = efficiency.tflops_per_accelerator * 1e12 / flops.total, "tflops_per_accelerator"
    else:
        rate, field = (efficiency.mfu or 0.0) * peak / flops.total, "mfu"
    mfu = rate * flops.total / peak
    if mfu > 1 + 1e-9:
        raise InvalidRequest(
            f"that is {mfu:.0%} of the dense {precision} peak of {accelerator.name}"
            f" ({peak / 1e12:g} TFLOP/s); state a rate an accelerator, without sparsity and without recomputation",
            f"/efficiency/{field}",
        )
    return rate


def model_measured_step(run: Run, measured_on: MeasuredOn, utilisation: Utilisation) -> MeasuredStep:
    """The step that the caller measured, and what is modelled for it.

    What differs between two machines or layouts of one model is modelled; what the caller's software does better or worse than the model
    says stays in the ratio.

    Parameters
    ----------
    run : Run
        The plan, with the measured figure as its efficiency.
    measured_on : MeasuredOn
        Where that was measured, on the plan's kind of accelerator.
    utilisation : Utilisation
        What the accelerator achieves.

    Returns
    -------
    MeasuredStep
        [tokens (or samples) per s per accelerator].

    Raises
    ------
    InvalidRequest
        The layout cannot make up the count or divide the model; the figure is above the peak.
    """
    training, cluster = training_there(run, measured_on), replace(run.cluster, count=measured_on.count)
    rate = measured_tokens_per_s(run.efficiency, cluster.accelerator, training.precision, training_flops(run.model, training))
    # Without the range, which is the plan's: one search serves plans of all sizes.
    choice = choose_layout(run.model, training, cluster, replace(utilisation, spread=Range.exactly(1.0)))
    modelled = float(choice.steps.batch[0]) * training.seq_len / float(choice.steps.total[0]) / cluster.count
    return MeasuredStep(rate, modelled, choice)


def training_there(run: Run, measured_on: MeasuredOn) -> Training:
    """How the measured step trained: as the plan does, but for what is stated of it.

    Parameters
    ----------
    run : Run
        The plan.
    measured_on : MeasuredOn
        What differed.

    Returns
    -------
    Training
        With the mesh stated there, else with the plan's, whose data ranks follow from the count.
    """
    training, own = run.training, measured_on.axes
    plan = training.axes
    mesh = own if measured_on.own_mesh else plan if measured_on.count == run.cluster.count else replace(plan, data=None)
    axes = replace(
        mesh,
        micro_batch=own.micro_batch or plan.micro_batch,
        zero_stage=plan.zero_stage if own.zero_stage is None else own.zero_stage,
        recompute=own.recompute or plan.recompute,
    )
    sampled = isinstance(run.model, GenericNetwork)
    seq_len = training.seq_len if sampled else measured_on.seq_len or training.seq_len
    tokens = measured_on.global_batch_tokens or training.global_batch * training.seq_len
    return replace(training, axes=axes, seq_len=seq_len, global_batch=max(1, round(tokens / seq_len)))
