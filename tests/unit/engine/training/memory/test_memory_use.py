"""Memory on the fullest accelerator: laws over layouts, and the published bytes a parameter."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import OPTIMIZERS, RECOMPUTES, AuxiliaryModels, Training
from service.engine.training.layouts import Layouts, all_memory_options, memory_option_grid
from service.engine.training.memory.memory_use import key_value_bytes_per_sequence, kv_cache_bytes, memory_use
from service.engine.training.parameters import count_parameters
from tests.unit.engine.builders import DEEPSEEK_V3, LLAMA_2_70B, LLAMA_7B, MISTRAL_7B, MIXTRAL, RESNET_50, T5_11B, gpt, llama, training

NONE, SELECTIVE, FULL = range(len(RECOMPUTES))
MODELS = (LLAMA_7B, LLAMA_2_70B, MIXTRAL, DEEPSEEK_V3, gpt(48, 6144, 64))
STATES = ("weights", "gradients", "optimizer")
SIZES = st.sampled_from([1, 2, 4, 8, 64])


def parts(model: Model, chosen: Training, **columns: int) -> dict[str, float]:
    return {name: float(values[0]) for name, values in memory_use(model, chosen, Layouts.single(**columns)).parts.items()}


def total(model: Model, chosen: Training, **columns: int) -> float:
    return sum(parts(model, chosen, **columns).values())


def states(model: Model, chosen: Training, **columns: int) -> float:
    return sum(size for name, size in parts(model, chosen, **columns).items() if name in STATES)


@given(st.sampled_from([*MODELS, RESNET_50]), st.sampled_from([1, 2, 8]), st.sampled_from([1, 4, 16]), st.integers(0, 3), st.integers(0, 2))
def test_parts_add_up_to_the_total(model: Model, tensor: int, pipeline: int, zero: int, recompute: int) -> None:
    """The total is the sum of its parts, and every part is a size."""
    layouts = Layouts.single(data=8, tensor=tensor, pipeline=pipeline, zero_stage=zero, recompute=recompute)
    sizes = memory_use(model, training(), layouts)
    assert float(sizes.total[0]) == pytest.approx(sum(float(part[0]) for part in sizes.parts.values()))
    assert all(part.shape == (1,) and part[0] >= 0 for part in sizes.parts.values())


@given(st.sampled_from(MODELS), st.integers(1, 32), st.sampled_from(range(3)), st.booleans(), st.sampled_from([1, 4]))
def test_a_larger_micro_batch_takes_more(model: Model, micro_batch: int, recompute: int, flash: bool, pipeline: int) -> None:
    """Every sequence more in a micro-batch takes memory, by any recomputation and with any attention kernel."""
    chosen = training(global_batch=2**20, flash_attention=flash)
    columns = {"recompute": recompute, "pipeline": pipeline}
    one, more = (total(model, chosen, micro_batch=size, **columns) for size in (micro_batch, micro_batch + 1))
    assert one < more


@given(st.sampled_from(MODELS), st.integers(1, 64), st.sampled_from(range(3)), st.booleans(), st.sampled_from([1, 8]))
def test_a_longer_sequence_takes_more(model: Model, blocks: int, recompute: int, flash: bool, tensor: int) -> None:
    """Every 512 tokens more of a sequence take memory."""
    short, long = (training(seq_len=512 * count, flash_attention=flash) for count in (blocks, blocks + 1))
    assert total(model, short, recompute=recompute, tensor=tensor) < total(model, long, recompute=recompute, tensor=tensor)


@given(st.sampled_from([(1, 2), (2, 4), (4, 8)]), st.sampled_from(["tensor", "pipeline"]), st.sampled_from([NONE, FULL]))
def test_cutting_the_model_takes_less(sizes: tuple[int, int], axis: str, recompute: int) -> None:
    """Twice the tensor or pipeline ranks hold less each; the micro-batches in flight never eat what the stages save."""
    narrow, wide = (total(LLAMA_7B, training(), **{axis: size}, recompute=recompute) for size in sizes)
    assert wide < narrow


@given(st.sampled_from([*MODELS, RESNET_50]), SIZES, SIZES, SIZES, st.sampled_from(["bf16", "fp16", "fp8", "fp32"]))
def test_more_zero_takes_no_more_states(model: Model, data: int, context: int, expert: int, precision: Any) -> None:
    """Sharding optimizer states, then gradients, then weights over the data ranks never adds to them."""
    columns = {"data": data, "context": context, "expert": expert}
    held = [states(model, training(precision=precision), zero_stage=stage, **columns) for stage in range(4)]
    assert held == sorted(held, reverse=True)


@given(st.sampled_from(MODELS), st.booleans(), st.booleans(), st.sampled_from([1, 2, 8, 16]), st.sampled_from(["bf16", "fp8"]))
def test_more_recomputation_takes_no_more(model: Model, flash: bool, sequence_parallel: bool, size: int, precision: Any) -> None:
    """Full recomputation never needs more than selective, nor selective more than none."""
    chosen = training(flash_attention=flash, sequence_parallel=sequence_parallel, precision=precision)
    for axis in ("tensor", "pipeline"):
        kept = [total(model, chosen, **{axis: size}, recompute=policy) for policy in (NONE, SELECTIVE, FULL)]
        assert kept == sorted(kept, reverse=True)
        assert kept[FULL] < kept[NONE]


def test_context_ranks_share_a_sequence() -> None:
    """Activations and logits of a sequence divide by the ranks it is cut over; weights do not."""
    whole, cut = (parts(LLAMA_7B, training(seq_len=32_768), context=ranks) for ranks in (1, 4))
    assert cut["activations"] == whole["activations"] / 4
    assert cut["logits"] == whole["logits"] / 4
    assert cut["weights"] == whole["weights"]


@pytest.mark.parametrize("model", [LLAMA_7B, MIXTRAL, DEEPSEEK_V3, RESNET_50])
def test_each_zero_stage_takes_less(model: Model) -> None:
    """Over 64 data ranks every stage frees memory."""
    stages = [states(model, training(), data=64, zero_stage=stage) for stage in range(4)]
    assert stages == sorted(stages, reverse=True)
    assert len(set(stages)) == 4


@pytest.mark.parametrize(
    ("stage", "params", "data", "published"),
    [
        (0, 7.5e9, 64, 120),
        (1, 7.5e9, 64, 31.4),
        (2, 7.5e9, 64, 16.6),
        (3, 7.5e9, 64, 1.88),
        (1, 128e9, 1024, 513),
        (2, 128e9, 1024, 257),
        (3, 128e9, 1024, 2),
        (1, 1e12, 1024, 4011),
        (2, 1e12, 1024, 2013),
        (3, 1e12, 1024, 15.6),
    ],
)
def test_states_are_those_of_the_zero_paper(stage: int, params: float, data: int, published: float) -> None:
    """Gigabytes a device of model states, fp16 and Adam (Rajbhandari et al. 2020, arXiv 1910.02054, figure 1 and table 1)."""
    model = GenericNetwork(1.0, "sample", params=params)
    held = states(model, training(precision="fp16"), data=data, zero_stage=stage) / 1e9
    assert held == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize("data", [1, 2, 16, 512])
@pytest.mark.parametrize(("precision", "whole", "divided"), [("bf16", 6, 12), ("fp32", 8, 8)])
def test_distributed_optimizer_takes_megatrons_bytes(precision: Any, whole: float, divided: float, data: int) -> None:
    """bf16 weights and fp32 gradients: 18 bytes a parameter, 6 + 12/d sharded; fp32: 16, 8 + 8/d (Megatron Core, distributed optimizer)."""
    params = count_parameters(LLAMA_7B).total
    held = [states(LLAMA_7B, training(precision=precision), data=data, zero_stage=stage) / params for stage in (0, 1)]
    assert held == pytest.approx([whole + divided, whole + divided / data])


@pytest.mark.parametrize(("precision", "expected"), [("bf16", 16), ("fp16", 16), ("fp32", 16), ("tf32", 16), ("fp8", 17)])
def test_fully_sharded_states_are_sixteen_bytes_a_parameter(precision: Any, expected: float) -> None:
    """2 of weight, 2 of gradient, 4 of master copy, 8 of moments; fp32: 4, 4, none and 8; fp8 has one more copy."""
    held = states(LLAMA_7B, training(precision=precision), data=8, zero_stage=3) * 8 / count_parameters(LLAMA_7B).total
    assert held == pytest.approx(expected)


def test_leaner_optimizers_take_less_than_adam() -> None:
    """Eight-bit moments, factored moments, one momentum: all leave less state than Adam's two."""
    held = {name: parts(LLAMA_7B, training(optimizer=name))["optimizer"] for name in OPTIMIZERS}
    assert held["adafactor"] < held["adamw_8bit"] == held["adamw_paged_8bit"] < held["muon"] == held["sgd"] < held["adamw"]


def test_fully_sharded_weights_are_gathered_where_they_are_used() -> None:
    """ZeRO 3 holds two layers, the tables and one layer's gradients in full, whatever the number of ranks; ZeRO 1 gathers no weights."""
    counts = count_parameters(LLAMA_7B)
    layer = (counts.total - counts.embedding - counts.head) / 32
    for ranks in (8, 512):
        gathered = parts(LLAMA_7B, training(global_batch=512), data=ranks, zero_stage=3)["buffers"]
        assert gathered == pytest.approx(2 * (3 * layer + counts.embedding + counts.head))
    gradients = 2 * (layer + counts.head)
    assert parts(LLAMA_7B, training(), data=8, zero_stage=2)["buffers"] == pytest.approx(4 * layer + gradients)
    assert parts(LLAMA_7B, training(), data=8, zero_stage=1)["buffers"] == pytest.approx(gradients)


def test_tensor_ranks_gather_a_product_input() -> None:
    """With sequence parallelism a product's input and its output's gradient are whole while they are multiplied; else they always were."""
    with_it, without = (parts(LLAMA_7B, training(sequence_parallel=used), tensor=8)["buffers"] for used in (True, False))
    assert with_it - without == pytest.approx(2 * 2 * 2048 * 4096)


def test_expert_ranks_divide_the_experts_alone() -> None:
    """Eight expert ranks hold an eighth of the experts and all of the rest."""
    counts = count_parameters(MIXTRAL)
    held = parts(MIXTRAL, training(), data=8, expert=8)["weights"]
    assert held == pytest.approx(2 * (counts.total - counts.expert_stored * 7 / 8))


@pytest.mark.parametrize("size", [2, 4])
def test_expert_tensor_ranks_divide_each_expert(size: int) -> None:
    """Whole experts on eight ranks of 32, or slices of them on the ranks beside too: as many times less of the experts."""
    counts = count_parameters(MIXTRAL)
    whole, cut = (parts(MIXTRAL, training(), tensor=4, data=8, expert=8, expert_tensor=slices)["weights"] for slices in (1, size))
    assert whole - cut == pytest.approx(2 * counts.expert_stored / 8 * (1 - 1 / size))


def test_experts_are_not_sharded_below_their_own_replicas() -> None:
    """Expert ranks that take up all data ranks leave one replica of each expert: ZeRO has nothing to divide there."""
    held = parts(MIXTRAL, training(), data=8, expert=8, zero_stage=1)["optimizer"]
    assert held == pytest.approx(12 * count_parameters(MIXTRAL).total / 8)


def test_the_fullest_stage_has_the_routed_layers() -> None:
    """Dense first layers leave a middle stage with nothing but routed ones: 4 of 58 experts' layers, not 4 of 61."""
    counts = count_parameters(DEEPSEEK_V3)
    dense = counts.total - counts.embedding - counts.head - counts.expert_stored
    expected = dense * 4 / 61 + counts.expert_stored * 4 / 58 / 64
    held = parts(DEEPSEEK_V3, training(global_batch=15_360), pipeline=16, data=128, expert=64)["weights"]
    assert held == pytest.approx(2 * expected)


def test_the_cache_of_a_70b_is_a_third_of_a_megabyte_a_token() -> None:
    """2 x 8 KV heads x 128 x 80 layers x 2 bytes: 327,680 bytes, an eighth of what full heads would take."""
    assert key_value_bytes_per_sequence(LLAMA_2_70B, 1) == 327_680
    assert key_value_bytes_per_sequence(replace(LLAMA_2_70B, kv_heads=64), 1) == 8 * 327_680


def test_a_latent_cache_is_compressed() -> None:
    """Sampling caches 576 elements a token and layer (DeepSeek-V2, table 1)."""
    assert key_value_bytes_per_sequence(DEEPSEEK_V3, 1) == 2 * 61 * (512 + 64)


def test_a_window_caches_its_own_tokens() -> None:
    """Past the window the cache grows no more."""
    assert key_value_bytes_per_sequence(MISTRAL_7B, 32_768) == key_value_bytes_per_sequence(MISTRAL_7B, 4096)


def test_key_value_heads_divide_and_latent_ones_do_not() -> None:
    """Eight tensor ranks hold an eighth of eight heads' cache, all of one head's, and all of a latent one."""
    chosen = training(method="rl")
    for model, share in ((LLAMA_2_70B, 8), (replace(LLAMA_2_70B, kv_heads=1), 1), (DEEPSEEK_V3, 1)):
        alone, cut = (float(kv_cache_bytes(model, chosen, Layouts.single(tensor=ranks))[0]) for ranks in (1, 8))
        assert alone / cut == share


def test_sampling_takes_its_cache() -> None:
    """An RL step has a cache among its parts, other methods have none."""
    assert parts(LLAMA_7B, training(method="rl"))["kv_cache"] == key_value_bytes_per_sequence(LLAMA_7B, 2048)
    assert "kv_cache" not in parts(LLAMA_7B, training())


def test_qlora_quantises_the_layers_and_not_the_tables() -> None:
    """Four bits and a little for the layers' matrices, sixteen for embedding and head (Dettmers et al. 2023, section 3)."""
    model = llama(32, 4096, 32, 8, 14_336, 128_256)
    counts = count_parameters(model)
    tables = counts.embedding + counts.head
    weights = parts(model, training(method="qlora", lora_rank=0))["weights"]
    assert weights == pytest.approx((4 + 0.127) / 8 * (counts.total - tables) + 2 * tables)


def test_adapters_train_where_the_base_rests() -> None:
    """LoRA holds the base in 16 bit without gradients or states; 16 bytes a parameter are the adapters' alone."""
    sizes = parts(LLAMA_7B, training(method="lora", lora_rank=16))
    assert sizes["gradients"] == pytest.approx(2 * 39_976_960)
    assert sizes["optimizer"] == pytest.approx(12 * 39_976_960)
    assert sizes["weights"] == pytest.approx(2 * (count_parameters(LLAMA_7B).total + 39_976_960))


def test_expert_adapters_go_where_their_experts_go() -> None:
    """Adapters of the experts divide over expert ranks as the experts do."""
    chosen = training(method="lora", lora_rank=16, adapter_targets=("experts",))
    alone, spread = (parts(MIXTRAL, chosen, data=8, expert=ranks)["gradients"] for ranks in (1, 8))
    experts = 8 * 16 * 32 * 3 * (4096 + 14_336) * 2
    assert alone - spread == pytest.approx(experts * 7 / 8)


def test_helpers_take_their_weights() -> None:
    """A teacher, a reward model and a reference are held in 16 bit, cut as the trained model is; a teacher has logits besides."""
    plain = parts(LLAMA_7B, training())
    taught = parts(LLAMA_7B, training(method="distill", auxiliary_models=AuxiliaryModels(teacher=MIXTRAL)), tensor=2)
    referred = parts(MIXTRAL, training(method="dpo", auxiliary_models=AuxiliaryModels(reference=True)), data=8, expert=8)
    assert plain["auxiliary_models"] == 0
    assert taught["auxiliary_models"] == pytest.approx(count_parameters(MIXTRAL).total)
    assert taught["logits"] == pytest.approx(plain["logits"])
    assert referred["auxiliary_models"] == pytest.approx(referred["weights"])


def test_a_networks_frozen_parts_are_held_too() -> None:
    """A diffusion model keeps its text encoder beside it: 2 bytes a frozen weight."""
    model = GenericNetwork(1e12, "image", params=1e9, frozen_params=4.7e9)
    assert parts(model, training(seq_len=1))["auxiliary_models"] == 9.4e9


def test_the_reserve_is_the_footprints() -> None:
    """What a device holds before the first tensor, and a share of all the rest."""
    sizes = parts(LLAMA_7B, training())
    rest = sum(size for name, size in sizes.items() if name != "reserve")
    assert sizes["reserve"] == pytest.approx(0.6 * 2**30 + 0.005 * rest)


def test_full_precision_activations_are_twice_as_wide() -> None:
    """An fp32 run keeps 4-byte activations where a bf16 run keeps 2-byte ones, of any network."""
    for model in (LLAMA_7B, RESNET_50):
        wide, narrow = (parts(model, training(precision=precision))["activations"] for precision in ("fp32", "bf16"))
        assert wide == 2 * narrow


def test_layouts_are_counted_one_by_one() -> None:
    """A layout among others takes what it takes alone."""
    alone = [Layouts.single(tensor=2, pipeline=size, data=4, recompute=policy) for size in (1, 2, 4, 5) for policy in (NONE, FULL)]
    together = Layouts(*(np.concatenate([getattr(one, name) for one in alone]) for name in Layouts.__slots__))
    for model in (LLAMA_2_70B, T5_11B):
        chosen = training(seq_len=512, decoder_seq_len=114)
        assert memory_use(model, chosen, together).total == pytest.approx([memory_use(model, chosen, one).total[0] for one in alone])


@pytest.mark.parametrize(
    ("model", "method"),
    [(LLAMA_2_70B, "lora"), (LLAMA_2_70B, "rl"), (MIXTRAL, "pretrain"), (MIXTRAL, "lora"), (T5_11B, "pretrain"), (RESNET_50, "pretrain")],
)
def test_a_grid_of_savings_is_counted_as_its_layouts(model: Model, method: str) -> None:
    """All recomputations and ZeRO stages at once take what each layout takes alone, in sum and by part."""
    chosen = training(method=method, lora_rank=16, seq_len=4096, decoder_seq_len=512)
    plain = Layouts(
        *(
            np.array(column)
            for column in ([1, 2, 2], [1, 2, 4], [8, 4, 2], [1, 1, 2], [1, 1, 2], [1, 2, 1], [1, 1, 2], [1, 4, 2], [1] * 3, [0] * 3)
        )
    )
    grid, together = memory_use(model, chosen, memory_option_grid(chosen, plain)), all_memory_options(chosen, plain)
    one_by_one = memory_use(model, chosen, together)
    totals = np.broadcast_to(grid.total, (3, 3, 3)).transpose(2, 0, 1).ravel()
    assert totals == pytest.approx(one_by_one.total, rel=1e-12)
    for place in range(len(together)):
        row, recompute, zero_stage = np.unravel_index(place, (3, 3, 3))
        alone = {name: float(np.broadcast_to(size, len(together))[place]) for name, size in one_by_one.parts.items()}
        assert grid.at((int(recompute), int(zero_stage), int(row))) == pytest.approx(alone, rel=1e-12)


def test_a_single_layout_is_counted_in_numbers_too() -> None:
    """Numbers in place of columns of one give the same bytes."""
    one = Layouts.single(tensor=2, pipeline=4, data=4, virtual_pipeline=2, recompute=FULL, zero_stage=1)
    assert float(memory_use(MIXTRAL, training(), one.only()).total) == pytest.approx(
        memory_use(MIXTRAL, training(), one).total[0], rel=1e-12
    )
