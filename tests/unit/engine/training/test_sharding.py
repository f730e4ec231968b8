"""Weights of a rank and of a pipeline's stages, against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.domain.training.model import Experts, Model, Transformer
from service.domain.training.run import AuxiliaryModels
from service.engine.training.layouts import Layouts
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.parameters import count_parameters
from service.engine.training.pipeline_stages import PipelineStage, embedding_weights_per_rank, in_flight, pipeline_stages, routed_share
from service.engine.training.sharding import expert_replicas, local_adapters, local_parameters, zero_sharded, zero_shares
from tests.unit.engine.builders import FOOTPRINT, RESNET_50, training

# 12 layers of 20 elements: attention 20 x 96, a gated feed-forward of 40, tables of 1,000 and 2 norms.
DENSE = Transformer(12, 20, 4, 2, 8, 40, 1000)
LAYER = 2 * 20 * 32 + 2 * 20 * 16 + 3 * 20 * 40 + 2 * 20
TABLE = 20_000
# Eight experts of 10 elements in all layers.
MIXED = replace(DENSE, experts=Experts(8, 2, 10))
EXPERT = 3 * 20 * 10


def columns(**sizes: int) -> Layouts:
    return Layouts.single(**sizes)


def parts(model: Model, layouts: Layouts, **how: Any) -> dict[str, float]:
    return {name: float(size[0]) for name, size in memory_use(model, training(**how), layouts).parts.items()}


# Weights of a rank


def test_weights_of_a_rank_of_a_dense_model() -> None:
    """The fullest of five stages has three of twelve layers and one of the tables, all divided by two tensor ranks."""
    dense, experts = local_parameters(DENSE, columns(tensor=2, pipeline=5))
    assert dense[0] == pytest.approx((3 * LAYER + 3 / 12 * 20 + TABLE) / 2)
    assert experts[0] == 0
    whole, _ = local_parameters(DENSE, columns())
    assert whole[0] == count_parameters(DENSE).total


def test_weights_of_a_rank_of_a_mixture() -> None:
    """Of four stages each has three layers' experts, over eight expert ranks, or two of four slices."""
    for layouts, ranks in ((columns(tensor=2, pipeline=4, expert=8), 8), (columns(tensor=4, pipeline=4, expert=2, expert_tensor=4), 8)):
        assert local_parameters(MIXED, layouts)[1][0] == pytest.approx(3 * 8 * EXPERT / ranks)


def test_weights_of_other_networks_divide_evenly() -> None:
    """Over two tensor ranks and three stages."""
    dense, experts = local_parameters(RESNET_50, columns(tensor=2, pipeline=3))
    assert (dense[0], experts[0]) == (pytest.approx(25_557_032 / 6), 0)


def test_adapters_of_a_rank() -> None:
    """Rank 6 times inputs and outputs: 3 of 12 layers of attention and feed-forward on two ranks, eight experts on eight."""
    attention, ffn, expert = 2 * (20 + 32) + 2 * (20 + 16), 3 * (20 + 40), 3 * (20 + 10)
    layouts = columns(tensor=2, pipeline=4, expert=8)
    dense, experts = local_adapters(MIXED, training(method="lora", lora_rank=6, adapter_targets=("experts",)), layouts)
    assert dense[0] == pytest.approx(6 * 3 * attention / 2)
    assert experts[0] == pytest.approx(6 * 3 * 8 * expert / 8)
    assert local_adapters(DENSE, training(method="lora", lora_rank=6), layouts)[0][0] == pytest.approx(6 * 3 * (attention + ffn) / 2)


def test_zero_divides_over_replicas() -> None:
    """Shared weights over 4 x 2 data and context ranks; experts over 4 x 2 x 2 / 8 sets of ranks that hold the same."""
    for stage in range(4):
        layouts = columns(tensor=2, data=4, context=2, expert=8, zero_stage=stage)
        assert expert_replicas(layouts)[0] == 2
        for begins in (1, 2, 3):
            divided = stage >= begins
            held = zero_sharded(local_parameters(MIXED, layouts), layouts, begins)[0]
            dense, experts = local_parameters(MIXED, layouts)
            assert held == pytest.approx(dense[0] / 8 + experts[0] / 2 if divided else dense[0] + experts[0])
            shares = zero_shares(MIXED, layouts)[begins]
            assert [float(share[0]) for share in shares] == pytest.approx([1 / 2 / 8, 1 / 8 / 2] if divided else [1 / 2, 1 / 8])


def test_experts_without_replicas_stay_whole() -> None:
    """Eight parts on four ranks: no set of experts is held twice."""
    assert expert_replicas(columns(data=4, expert=8))[0] == 1


def test_tables_of_a_rank() -> None:
    """Both without a pipeline, else the larger of the two; a tied one once."""
    positions = replace(DENSE, max_positions=500)
    counts = count_parameters(positions)
    assert embedding_weights_per_rank(counts, columns(tensor=2))[0] == (30_000 + 20_000) / 2
    assert embedding_weights_per_rank(counts, columns(tensor=2, pipeline=2))[0] == 30_000 / 2
    tied = count_parameters(replace(positions, tied_embeddings=True))
    assert embedding_weights_per_rank(tied, columns())[0] == 30_000


# Stages


def both_ends(model: Transformer, **sizes: int) -> tuple[PipelineStage, PipelineStage]:
    return pipeline_stages(model, count_parameters(model), training(global_batch=64), columns(**sizes))


def test_stages_that_divide_hold_equal_layers_and_a_table_each() -> None:
    """Four stages of three layers: four micro-batches in flight on the first, one on the last."""
    front, last = both_ends(DENSE, pipeline=4)
    assert (float(front.layers[0]), float(last.layers[0])) == (3, 3)
    assert (float(front.in_flight_layers[0]), float(last.in_flight_layers[0])) == (12, 3)
    assert float(front.tables[0]) == TABLE
    assert float(last.tables) == TABLE
    assert float(front.dense[0]) == pytest.approx(3 * LAYER + 3 / 12 * 20 + TABLE)


def test_layers_that_do_not_divide_leave_the_last_stage_short_then_the_first() -> None:
    """12 layers in 5 stages of three: three to spare, so that the second stage, of four in flight and no table, stands for the first."""
    front, last = both_ends(DENSE, pipeline=5)
    assert (float(front.layers[0]), float(last.layers[0])) == (3, 2)
    assert float(front.in_flight_layers[0]) == 3 * 4
    assert float(front.tables[0]) == 0
    one_short, _ = both_ends(replace(DENSE, layers=14), pipeline=5)
    assert float(one_short.in_flight_layers[0]) == 3 * 5
    assert float(one_short.tables[0]) == TABLE


def test_a_single_stage_holds_both_tables() -> None:
    """And all layers of the one micro-batch."""
    front, last = both_ends(DENSE)
    assert float(front.tables[0]) == 2 * TABLE
    assert float(front.dense[0]) == count_parameters(DENSE).total
    assert float(front.head[0]) == 1
    assert float(last.in_flight_layers[0]) == 12


def test_decoder_layers_are_at_the_end_of_the_pipeline() -> None:
    """Of 6 + 6 layers in four stages the last has three of the decoder and the first none; of 2 + 10 it has one, in flight four times."""
    front, last = both_ends(replace(DENSE, kind="encoder_decoder", layers=6, decoder_layers=6), pipeline=4)
    assert (float(front.decoder[0]), float(last.decoder[0])) == (0, 3)
    front, last = both_ends(replace(DENSE, kind="encoder_decoder", layers=2, decoder_layers=10), pipeline=4)
    assert (float(front.decoder[0]), float(last.decoder[0])) == (4, 3)
    front, last = both_ends(replace(DENSE, kind="encoder_decoder", layers=10, decoder_layers=2), pipeline=4)
    assert (float(front.decoder[0]), float(last.decoder[0])) == (0, 2)


@pytest.mark.parametrize(("chunks", "later", "expected"), [(1, 4, 4), (1, 1, 1), (2, 4, 5.5), (2, 1, 2.5), (3, 4, 5)])
def test_micro_batches_in_flight(chunks: int, later: int, expected: float) -> None:
    """On four stages p - rank, or 2 (p - rank) - 1 + (v - 1) p of a v-th each: 4 (1 + 3 / 8) and 4 (1 + 3 / 12) on the first."""
    layouts = columns(pipeline=4, virtual_pipeline=chunks)
    assert in_flight(layouts.pipeline.astype(float), layouts.virtual_pipeline.astype(float), later)[0] == pytest.approx(expected)


def test_a_stages_share_of_routed_layers() -> None:
    """Three of twelve; where every second layer routes, two of six at most; all of two where only two do; none without experts."""
    layers = columns(pipeline=4).pipeline * 0.75
    assert routed_share(MIXED, layers)[0] == 3 / 12
    assert routed_share(replace(DENSE, experts=Experts(8, 2, 10, moe_every=2)), layers)[0] == 2 / 6
    assert routed_share(replace(DENSE, experts=Experts(8, 2, 10, dense_layers=10)), layers)[0] == 1
    assert routed_share(replace(DENSE, experts=Experts(8, 2, 10, dense_layers=12)), layers)[0] == 0
    assert routed_share(DENSE, layers)[0] == 0


# Memory of adapters, buffers and caches


def test_memory_of_adapters_on_experts() -> None:
    """16-bit base and adapters, 2 bytes of gradients and 12 of states for each adapter weight; experts over eight ranks."""
    attention, expert = 2 * (20 + 32) + 2 * (20 + 16), 3 * (20 + 10)
    adapters = 12 * (6 * attention + 6 * 8 * expert / 8)
    base = count_parameters(MIXED).total - 12 * 8 * EXPERT * 7 / 8
    found = parts(MIXED, columns(data=8, expert=8), method="lora", lora_rank=6, adapter_targets=("experts",))
    assert found["weights"] == pytest.approx(2 * (base + adapters))
    assert found["gradients"] == pytest.approx(2 * adapters)
    assert found["optimizer"] == pytest.approx(12 * adapters)
    # QLoRA quantises all but the two tables and halves nothing else; experts lie on the same ranks.
    quantised = parts(MIXED, columns(data=8, expert=8), method="qlora", lora_rank=6, adapter_targets=("experts",))
    assert quantised["weights"] == pytest.approx(FOOTPRINT.nf4_bytes * (base - 2 * TABLE) + 2 * 2 * TABLE + 2 * adapters)


def test_memory_of_adapters_on_tensor_and_zero_ranks() -> None:
    """LoRA's frozen weights and adapters are divided over two tensor ranks, and from ZeRO 3 on over four data ranks too."""
    whole = count_parameters(DENSE).total
    split = parts(DENSE, columns(tensor=2, data=4), method="qlora", lora_rank=6, adapter_targets=("experts",))["weights"]
    alone = parts(DENSE, columns(), method="qlora", lora_rank=6, adapter_targets=("experts",))["weights"]
    assert split == pytest.approx(alone / 2)
    sharded = parts(DENSE, columns(tensor=2, data=4, zero_stage=3), method="lora", lora_rank=6, adapter_targets=("experts",))["weights"]
    adapters = 12 * 6 * (2 * (20 + 32) + 2 * (20 + 16) + 3 * (20 + 40))
    assert sharded == pytest.approx(2 * (whole + adapters) / 8)


def test_buffers_of_a_mixture() -> None:
    """ZeRO 2: fp32 gradients of a layer, its dense part on two tensor ranks and eight experts on four; 16-bit ones of head, layer and an
    expert; two gathered tensors."""
    router = 20 * 8
    dense = 2 * 20 * 32 + 2 * 20 * 16 + router + 2 * 20 + 20 / 12
    layer = dense / 2 + 8 * EXPERT / 4
    gathered = 2 / 2 * 2 * 2 * 20 * 2048
    layouts = columns(tensor=2, data=4, context=2, expert=4, micro_batch=2, zero_stage=2)
    assert parts(MIXED, layouts)["buffers"] == pytest.approx(4 * layer + 2 * (dense / 2 + EXPERT + TABLE / 2) + gathered)
    # ZeRO 3: two layers' 16-bit weights, a layer's 16-bit gradients, and both tables gathered.
    full = replace(layouts, zero_stage=layouts.zero_stage + 1)
    assert parts(MIXED, full)["buffers"] == pytest.approx(6 * layer + gathered + 2 * 2 * TABLE / 2)
    some = replace(DENSE, experts=Experts(8, 2, 10, dense_layers=6))
    dense = 2 * 20 * 32 + 2 * 20 * 16 + (router + 3 * 20 * 40) / 2 + 2 * 20 + 20 / 12
    assert parts(some, layouts)["buffers"] == pytest.approx(
        4 * (dense / 2 + 8 * EXPERT / 4) + 2 * (dense / 2 + EXPERT + TABLE / 2) + gathered
    )


def test_memory_of_other_networks() -> None:
    """Activations of each sample in the width of its elements; frozen parts in 16 bits over tensor ranks and stages."""
    frozen = replace(RESNET_50, frozen_params=1e6)
    found = parts(frozen, columns(tensor=2, pipeline=2, micro_batch=8), seq_len=1)
    assert found["activations"] == pytest.approx(8 * 44_400_000)
    assert found["auxiliary_models"] == pytest.approx(2 * 1e6 / 4)
    assert parts(frozen, columns(micro_batch=8), seq_len=1, precision="fp32")["activations"] == pytest.approx(2 * 8 * 44_400_000)
    assert parts(replace(RESNET_50, activation_bytes_per_sample=None), columns(), seq_len=1)["activations"] == 0


def test_helpers_are_divided_as_the_model_is() -> None:
    """A teacher's 16-bit weights on two tensor ranks of two stages: half of the layers and a table."""
    helpers = AuxiliaryModels(teacher=DENSE)
    found = parts(DENSE, columns(tensor=2, pipeline=2), method="distill", auxiliary_models=helpers)
    assert found["auxiliary_models"] == pytest.approx(2 * (6 * LAYER + 10 + TABLE) / 2)
