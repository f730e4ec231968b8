"""Memory of fine-tuning: laws over its settings, and the bytes a parameter, an element and an entry of the vocabulary as measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.model import Model
from service.domain.training.run import KERNEL_FUSIONS, RECOMPUTES, TUNED, Training
from service.engine.training.layouts import Layouts
from service.engine.training.memory.finetuning import layer_activations
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.parameters import count_parameters
from tests.unit.engine.builders import LLAMA_2_70B, LLAMA_7B, MISTRAL_7B, MIXTRAL, T5_11B, gpt, training

NONE, SELECTIVE, FULL = range(len(RECOMPUTES))
MODELS = (LLAMA_7B, LLAMA_2_70B, MISTRAL_7B, MIXTRAL, T5_11B, gpt(24, 2048, 16))
METHODS = st.sampled_from(TUNED)
FUSIONS = st.sampled_from(KERNEL_FUSIONS)


def tuned(method: Any, **changes: Any) -> Training:
    adapters = {} if method == "full_finetune" else {"lora_rank": 16}
    return training(**{"method": method, "global_batch": 2, "kernel_fusion": "none", "decoder_seq_len": 512, **adapters, **changes})


def parts(model: Model, chosen: Training, **columns: int) -> dict[str, float]:
    return {name: float(size[0]) for name, size in memory_use(model, chosen, Layouts.single(**columns)).parts.items()}


def allocated(model: Model, chosen: Training, **columns: int) -> float:
    """Bytes of the program's tensors."""
    return sum(size for name, size in parts(model, chosen, **columns).items() if name != "reserve")


@given(st.sampled_from(MODELS), METHODS, FUSIONS, st.integers(1, 8), st.sampled_from([1, 2, 8]), st.integers(0, 3), st.integers(0, 2))
def test_parts_add_up_to_the_total(model: Model, method: Any, fusion: Any, batch: int, data: int, zero: int, recompute: int) -> None:
    """The total is the sum of the parts of one moment, and each is a size."""
    layouts = Layouts.single(data=data, micro_batch=batch, zero_stage=zero, recompute=recompute)
    sizes = memory_use(model, tuned(method, kernel_fusion=fusion), layouts)
    assert float(sizes.total[0]) == pytest.approx(sum(float(part[0]) for part in sizes.parts.values()))
    assert all(part[0] >= 0 for part in sizes.parts.values())


@given(st.sampled_from(MODELS), METHODS, st.integers(1, 8), st.sampled_from([1, 4]), st.integers(0, 3))
def test_more_recomputation_takes_no_more(model: Model, method: Any, batch: int, data: int, zero: int) -> None:
    """Full recomputation never needs more than selective, nor selective more than none."""
    chosen = tuned(method)
    held = [allocated(model, chosen, data=data, micro_batch=batch, zero_stage=zero, recompute=way) for way in (NONE, SELECTIVE, FULL)]
    assert held == sorted(held, reverse=True)


@given(st.sampled_from(MODELS), METHODS, st.integers(1, 8), st.integers(0, 2))
def test_fused_kernels_take_no_more(model: Model, method: Any, batch: int, recompute: int) -> None:
    """Fused kernels hold no more than single operations, and a loss without whole logits no more than they."""
    held = [allocated(model, tuned(method, kernel_fusion=way), micro_batch=batch, recompute=recompute) for way in KERNEL_FUSIONS]
    assert held == sorted(held, reverse=True)


@given(st.sampled_from(MODELS), METHODS, st.integers(1, 7), st.sampled_from([0, 3]), st.integers(0, 2))
def test_a_larger_micro_batch_takes_no_less(model: Model, method: Any, batch: int, zero: int, recompute: int) -> None:
    """Where the update is the fullest moment the micro-batch does not show; it never saves."""
    columns = {"data": 2, "zero_stage": zero, "recompute": recompute}
    one, more = (allocated(model, tuned(method, global_batch=64), micro_batch=size, **columns) for size in (batch, batch + 1))
    assert one <= more


@pytest.mark.parametrize(("states", "ranks", "bytes_each"), [("bf16", 1, 10), ("bf16", 2, 10), ("fp32", 2, 20), ("fp32", 4, 20)])
def test_full_fine_tuning_peaks_at_the_update(states: Any, ranks: int, bytes_each: int) -> None:
    """10 bytes a parameter in bf16, 20 in fp32: 72.4 and 36.2 GB of Mistral 7B on 1 to 4 GPUs (fms-acceleration's benchmarks)."""
    chosen = tuned("full_finetune", states_dtype=states, seq_len=4096)
    held = allocated(MISTRAL_7B, chosen, data=ranks, zero_stage=3 if ranks > 1 else 0, recompute=FULL)
    assert held == pytest.approx(bytes_each * count_parameters(MISTRAL_7B).total / ranks)


def test_eight_bit_optimizers_update_in_place() -> None:
    """bf16 weights and gradients and two moments of a byte each: 6 bytes a parameter, with one layer's activations at the end."""
    chosen = tuned("full_finetune", states_dtype="bf16", optimizer="adamw_8bit", global_batch=1)
    sizes = parts(LLAMA_7B, chosen, recompute=FULL)
    assert sum(sizes[name] for name in ("weights", "gradients", "optimizer")) == pytest.approx(6 * count_parameters(LLAMA_7B).total)
    assert sizes["logits"] == 0


@pytest.mark.parametrize(("method", "measured_gb"), [("lora", (26.70, 38.74)), ("qlora", (16.37, 28.41))])
def test_mistral_adapters_peak_with_the_logits(method: Any, measured_gb: tuple[float, float]) -> None:
    """Mistral 7B with adapters on attention, four and eight sequences of 4,096 (fms-acceleration's a100_80gb.csv)."""
    chosen = tuned(method, adapter_targets=("attention",), seq_len=4096)
    held = [allocated(MISTRAL_7B, replace(chosen, global_batch=size), micro_batch=size, recompute=FULL) / 1e9 for size in (4, 8)]
    assert held == pytest.approx(measured_gb, rel=0.03)


def test_frozen_products_keep_no_inputs() -> None:
    """Adapters on query and value leave the feed-forward's inputs out; on the down-projection its inner width is kept; 4 bits keep all."""
    lora, more, quantised, full = (
        layer_activations(LLAMA_7B, chosen)[1][NONE]
        for chosen in (
            tuned("lora", adapter_targets=("q_proj", "v_proj")),
            tuned("lora", adapter_targets=("q_proj", "v_proj", "down_proj")),
            tuned("qlora", adapter_targets=("q_proj", "v_proj")),
            tuned("full_finetune"),
        )
    )
    assert more - lora == 2 * LLAMA_7B.ffn_hidden_size
    assert quantised - lora == 3 * (LLAMA_7B.hidden_size + LLAMA_7B.ffn_hidden_size)
    assert full == more


def test_gradients_wait_where_micro_batches_add_up() -> None:
    """The logits' moment has the gradients of the micro-batches before it, and none in the first."""
    # In bf16 with a long sequence the forward pass's end is the fullest.
    chosen = tuned("full_finetune", states_dtype="bf16", seq_len=65536, global_batch=1)
    first, later = (parts(LLAMA_7B, replace(chosen, global_batch=size), recompute=FULL)["gradients"] for size in (1, 2))
    assert (first, later) == (0, pytest.approx(2 * count_parameters(LLAMA_7B).total))


def test_eight_bit_bases_need_no_wide_copy() -> None:
    """A frozen fp8 base is there by rows and by columns; a 16-bit one once."""
    weights = {
        precision: parts(LLAMA_7B, tuned("lora", precision=precision, lora_rank=0))["weights"] for precision in ("bf16", "fp8", "nvfp4")
    }
    number = count_parameters(LLAMA_7B).total
    assert weights == pytest.approx({"bf16": 2 * number, "fp8": 2 * number, "nvfp4": 2 * 0.5625 * number})


def test_sharded_bases_are_gathered_as_they_are_stored() -> None:
    """FSDP gathers a 4-bit layer in 4 bits: its buffers are a fraction of a 16-bit layer's."""
    lora, qlora = (
        parts(LLAMA_2_70B, tuned(method, adapter_targets=("attention",)), data=8, zero_stage=3, recompute=FULL)["buffers"]
        for method in ("lora", "qlora")
    )
    counts = count_parameters(LLAMA_2_70B)
    tables = counts.embedding + counts.head
    layer = (counts.total - tables) / LLAMA_2_70B.layers
    assert lora == pytest.approx(2 * (tables + 2 * layer))
    widest = LLAMA_2_70B.hidden_size * LLAMA_2_70B.ffn_hidden_size
    assert qlora == pytest.approx(2 * tables + 2 * (4 + 0.127) / 8 * layer + 2 * widest)


def test_paged_moments_are_no_need_of_the_device() -> None:
    """Two bytes a trained parameter less than the same moments on the device, and no less traffic in the update."""
    held = {
        optimizer: parts(LLAMA_7B, tuned("full_finetune", states_dtype="bf16", optimizer=optimizer), recompute=FULL)["optimizer"]
        for optimizer in ("adamw_8bit", "adamw_paged_8bit")
    }
    assert held == {"adamw_8bit": pytest.approx(2 * count_parameters(LLAMA_7B).total), "adamw_paged_8bit": 0}
