"""Speed of fine-tuning: what its software adds to a step, and when it adds nothing."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from service.domain.training.finetuning import FineTuningRates
from service.domain.training.run import Training
from service.engine.training.adapters import adapters_of_a_layer
from service.engine.training.layouts import Layouts
from service.engine.training.step.finetuning import finetuning_work
from service.engine.training.step.step_time import step_time
from service.engine.training.step.step_work import step_work
from service.engine.training.step.workload import trained_workload
from tests.unit.engine.builders import LLAMA_7B, MIXTRAL, cluster, training, utilisation

NEUTRAL = FineTuningRates(1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0)
MEASURED = FineTuningRates(1.2, 0.8, 3.4, 1.1, 0.09, 4.3, 2.2, 0.075)
ALONE = Layouts.single(micro_batch=1, recompute=2)


def tuned(method: Any = "lora", rates: FineTuningRates[float] | None = MEASURED, **changes: Any) -> Training:
    adapters = {} if method == "full_finetune" else {"lora_rank": 16}
    return training(**{"method": method, "global_batch": 8, "kernel_fusion": "none", "finetuning": rates, **adapters, **changes})


def seconds(chosen: Training) -> float:
    return float(step_time(LLAMA_7B, chosen, cluster(1), utilisation(), ALONE).total[0])


@pytest.mark.parametrize("method", ["full_finetune", "lora", "qlora"])
def test_neutral_rates_change_nothing(method: Any) -> None:
    """With every factor at 1 and every addition at 0 a step is the one of pre-training's software."""
    added, bare = (step_work(LLAMA_7B, tuned(method, rates), cluster(1), ALONE) for rates in (NEUTRAL, None))
    for field in fields(bare):
        if isinstance(value := getattr(bare, field.name), type(bare.matmul)):
            assert getattr(added, field.name) == pytest.approx(value), field.name


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("unfused_passes", "full_finetune"),
        ("adapter_passes", "lora"),
        ("adapter_launches", "lora"),
        ("dequantisation_passes", "qlora"),
        ("update_passes", "full_finetune"),
        ("step_overhead_s", "lora"),
    ],
)
def test_each_rate_slows_the_step_that_it_is_of(name: str, method: Any) -> None:
    """Twice the figure is a longer step."""
    doubled = replace(MEASURED, **{name: 2 * getattr(MEASURED, name)})
    # Short sequences, where the host decides, show launches.
    assert seconds(tuned(method, doubled, seq_len=256)) > seconds(tuned(method, seq_len=256))


def test_fused_kernels_are_faster() -> None:
    """Fused kernels move less, launch no adapters by themselves and unpack 4-bit weights as they multiply."""
    for method in ("full_finetune", "lora", "qlora"):
        assert seconds(tuned(method, kernel_fusion="fused")) < seconds(tuned(method))


def test_short_sequences_of_a_4_bit_base_take_as_long_as_its_weights() -> None:
    """Of a few hundred tokens twice as many take at most a third longer: every pass unpacks all weights."""
    short, longer = (seconds(tuned("qlora", seq_len=size)) for size in (256, 512))
    assert longer < 4 / 3 * short


def test_adapters_move_what_goes_in_and_out() -> None:
    """Rank-free: inputs plus outputs of every adapted matrix, read and written in 16 bit, forward, again and twice backward."""
    chosen = tuned(adapter_targets=("q_proj",))
    work = finetuning_work(trained_workload(LLAMA_7B, chosen, cluster(1), ALONE))
    moved = 2 * 2 * (4096 + 4096) * 32 * chosen.seq_len * 4
    assert float(work.adapters[0]) == pytest.approx(moved / (cluster(1).accelerator.memory_bandwidth_gb_per_s * 1e9))
    assert float(work.adapters_of_a_layer[0]) == 1


def test_adapters_of_a_layer_by_target() -> None:
    """Four in attention, seven in all of a gated layer; of a mixture those of the experts that a token visits."""
    counts = {
        targets: adapters_of_a_layer(LLAMA_7B, tuned(adapter_targets=(targets,))) for targets in ("attention", "all_linear", "q_proj")
    }
    assert counts == {"attention": 4, "all_linear": 7, "q_proj": 1}
    assert adapters_of_a_layer(MIXTRAL, tuned(adapter_targets=("experts",))) == 4 + 2 * 3
    assert adapters_of_a_layer(MIXTRAL, tuned(adapter_targets=("all_linear",))) == 4
