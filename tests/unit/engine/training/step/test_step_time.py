"""The step model's laws: what must be slower, what must not matter, and what each method moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.domain.training.model import LatentAttention
from service.engine.training.layouts import Layouts
from service.engine.training.step.collectives import ExchangeTime
from service.engine.training.step.step_time import PARTS, StepTime, step_time, time_step
from service.engine.training.step.step_work import StepWork, step_work
from tests.unit.engine.builders import A100, LLAMA_7B, MIXTRAL, RESNET_50, cluster, gpt, training, utilisation


def seconds(model: object = LLAMA_7B, *, layout: Layouts | None = None, count: int = 8, **how: object) -> StepTime:
    """One step of the model on `count` accelerators, data parallel unless a layout says otherwise."""
    layouts = layout or Layouts.single(data=count)
    return step_time(model, training(**how), cluster(count), utilisation(), layouts)  # type: ignore[arg-type]


def test_qlora_is_never_faster_than_lora() -> None:
    """Its 4-bit base is unfolded in every pass over the weights."""
    lora, qlora = (seconds(method=method, lora_rank=16) for method in ("lora", "qlora"))
    assert qlora.total > lora.total
    assert qlora.memory > lora.memory


def test_lora_exchanges_its_adapters_and_not_the_frozen_base() -> None:
    """Over a slow network the exchange of a LoRA step is a small part of a full fine-tune's."""
    lora, full = (seconds(method=method, lora_rank=16) for method in ("lora", "full_finetune"))
    assert 0 < lora.network < 0.1 * full.network


def test_under_zero_3_qlora_gathers_its_base_at_four_bits() -> None:
    """The gathered base is about a quarter of LoRA's 16 bit."""
    layout = Layouts.single(data=8, zero_stage=3)
    lora, qlora = (seconds(layout=layout, method=method, lora_rank=1) for method in ("lora", "qlora"))
    assert qlora.network == pytest.approx(lora.network / 4, rel=0.15)


def test_sampling_is_not_faster_on_more_pipeline_stages() -> None:
    """A token waits for every stage: only tensor ranks read the weights together."""
    wide, deep = (Layouts.single(**{axis: 8}) for axis in ("tensor", "pipeline"))
    sampled = {name: seconds(layout=layout, method="rl", response_tokens=512).memory for name, layout in (("wide", wide), ("deep", deep))}
    assert sampled["wide"] < 0.5 * sampled["deep"]


def test_latent_attention_samples_from_a_smaller_cache() -> None:
    """Compressed keys and values are read faster than whole ones."""
    latent = replace(LLAMA_7B, latent=LatentAttention(kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128))
    whole, compressed = (seconds(model, method="rl", response_tokens=2048, global_batch=512).memory for model in (LLAMA_7B, latent))
    assert compressed < whole


def test_a_slower_input_pipeline_decides_the_step() -> None:
    """Where data come slower than the machine works, their rate is the step's."""
    found = seconds(input_tokens_per_s_per_node=100.0)
    assert found.bound_by(0) == "input"
    assert found.total == found.input


@pytest.mark.parametrize("axis", ["tensor", "pipeline", "data"])
def test_more_accelerators_never_make_a_step_of_the_same_batch_longer_in_compute(axis: str) -> None:
    """Matrix work a device falls with every axis that shares it."""
    one = seconds(layout=Layouts.single(), count=1).compute
    eight = seconds(layout=Layouts.single(**{axis: 8})).compute
    assert np.all(eight < one)


def test_a_stage_takes_as_long_as_the_slower_of_host_and_device() -> None:
    """A slow host takes its own time and no more, a quick one nothing; about as long, they wait for each other, a little above either."""
    asked = step_work(gpt(24, 1024, 16), training(), cluster(1), Layouts.single())

    def alone(overhead: float) -> float:
        return float(time_step(asked, utilisation(layer_overhead_s=overhead)).total[0] - asked.optimizer[0])

    count, device = float(asked.micro_batches[0]), alone(0.0)
    assert alone(device / count / 25 / 100) == pytest.approx(device, rel=1e-6)
    assert alone(device / count / 25 * 100) == pytest.approx(100 * device, rel=1e-6)
    # The fourth root of 1 + 1, for a power of four.
    assert alone(device / count / 25) == pytest.approx(device * 2**0.25, rel=1e-6)


def test_routed_layers_are_launched_besides() -> None:
    """The host's time for a mixture's layers is the dense layers', the routing on top, and the one expert that a device holds."""
    asked = step_work(MIXTRAL, training(), cluster(8), Layouts.single(data=8, expert=8))
    slow = utilisation(layer_overhead_s=10.0, routing_overhead_s=20.0, expert_overhead_s=5.0)
    found = time_step(asked, slow)
    assert found.total == pytest.approx(8 * 33 * 35.0, rel=1e-2)
    assert found.bound_by(0) == "launch"


def test_the_largest_part_is_what_binds() -> None:
    """Each part is named where it is made to be the largest."""
    part = replace(A100, memory_bandwidth_gb_per_s=10)
    machine = cluster(8, part)
    assert step_time(LLAMA_7B, training(), machine, utilisation(), Layouts.single(data=8)).bound_by(0) == "memory"
    assert seconds().bound_by(0) == "compute"
    assert seconds(layout=Layouts.single(pipeline=8), global_batch=2).bound_by(0) == "pipeline"
    slow = replace(cluster(8), accelerator=replace(A100, link_gb_per_s=1))
    assert step_time(LLAMA_7B, training(), slow, utilisation(), Layouts.single(tensor=8)).bound_by(0) == "network"


def test_stragglers_slow_what_devices_do_together() -> None:
    """Each doubling of the nodes costs its share of compute, not of the optimizer, which nobody waits for."""
    layout = Layouts.single(data=64)
    asked = step_work(LLAMA_7B, training(), cluster(64), layout)
    steady, slow = (time_step(asked, utilisation(straggler_share=share, layer_overhead_s=0.0)) for share in (0.0, 0.05))
    assert slow.compute == pytest.approx(1.15 * steady.compute)
    assert slow.network == pytest.approx(1.15 * steady.network)
    assert slow.memory - asked.optimizer == pytest.approx(1.15 * (steady.memory - asked.optimizer))


def test_hidden_tensor_exchanges_cost_what_is_left_of_them() -> None:
    """With half of them hidden half is left; data ranks' exchanges are not theirs."""
    layout = Layouts.single(tensor=8)
    asked = step_work(LLAMA_7B, training(), cluster(8), layout)
    plain, half, all_of_it = (time_step(asked, utilisation(tensor_overlap=share)).network for share in (0.0, 0.5, 1.0))
    assert half == pytest.approx(plain / 2)
    assert all_of_it == 0


def test_networks_counted_by_samples_have_their_own_share() -> None:
    """ResNet-50's step goes by `other_share`, a transformer's never does; without one it goes by the matmul share."""
    given, absent = utilisation(other_share=0.1), utilisation()
    for model, seq_len, ratio in ((RESNET_50, 1, 7.0), (LLAMA_7B, 2048, 1.0)):
        with_share, without = (
            step_time(model, training(seq_len=seq_len), cluster(1), achieved, Layouts.single()).compute for achieved in (given, absent)
        )
        assert with_share == pytest.approx(ratio * without)


def test_zero_hides_its_exchanges_behind_the_work_beside_them() -> None:
    """Of a quick network's exchange only the part that never overlaps is left from stage 1 on; without ZeRO all of it."""
    layouts = [Layouts.single(data=8, zero_stage=stage) for stage in range(4)]
    asked = [step_work(LLAMA_7B, training(global_batch=64), cluster(8), layout) for layout in layouts]
    achieved = utilisation(overlap_share=0.8, link_share=1.0, hop_s=0.0)
    found = [float(time_step(one, achieved).network[0]) for one in asked]
    whole = [float(one.gradient.intra_s[0]) for one in asked]
    assert found == pytest.approx([whole[0], *(0.2 * one for one in whole[1:])])


def test_a_step_names_all_of_its_parts() -> None:
    """The parts that can bind are the step's columns, input and batch apart."""
    assert {*PARTS, "input", "batch"} == set(StepTime.__slots__)


def chosen_work(**changes: float) -> StepWork:
    """One layout whose parts are numbers of their own; exchanges take so long within a node, twice as long beyond, with a thousand hops."""
    sizes = {
        "matmul": 3.0, "routed": 0.6, "attention": 1.0, "head": 0.35, "operands": 0.4, "reductions": 1e8, "traffic": 0.2,
        "routed_traffic": 0.12, "scores": 0.15, "head_traffic": 0.1, "layers": 4000.0, "routed_layers": 1000.0, "held_experts":
        20_000.0, "calls": 5000.0, "tensor": 0.07, "context": 0.21, "expert": 0.03, "overlapped": 0.02, "stage": 0.05, "gradient":
        1.4, "optimizer": 0.25, "generation": 0.5, "bubble_stages": 1.5, "micro_batches": 8.0, "hidden_batches": 0.25,
        "spared": 0.0, "doublings": 3.0, "immaturity": 0.5, "input": 2.0, "batch": 64.0,
    }  # fmt: skip
    columns = {name: np.array([size]) for name, size in (sizes | changes).items()}
    for name in ("tensor", "context", "expert", "overlapped", "stage", "gradient"):
        columns[name] = ExchangeTime(columns[name], 2 * columns[name], np.array([1000.0]))  # type: ignore[assignment]
    return StepWork(**columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("attention", [1.0, 0.01])
@pytest.mark.parametrize("gradient", [1.4, 40.0])
def test_the_parts_of_a_step_by_hand(attention: float, gradient: float) -> None:
    """Shares of the peak, of links and of the network, what overlaps, stragglers of three doublings, and a host that hardly matters."""
    found = time_step(chosen_work(attention=attention, gradient=gradient), utilisation(tensor_overlap=0.25, launch_power=1.0))
    slower = 1 + 0.005 * 3

    def exchanged(size: float) -> float:
        return size / 0.7 + 2 * size / 0.7 + 1e-5 * 1000

    core = attention / 0.5
    compute = slower * ((3.0 + 0.6 / 0.6) / 0.7 + 0.5 * 0.4 + 5e-9 * 1e8 + core)
    traffic = slower * (1.5 * 0.2 + 1.5 * 0.12 + 0.15)
    ring = exchanged(0.21)
    beside = exchanged(0.02)
    # Both exchanges of experts and stages have their hops.
    exchange = slower * (exchanged(0.03) + exchanged(0.05) + 0.2 * beside + ring - 0.8 * min(ring, core) + 0.75 * exchanged(0.07))
    head, loss = slower * 0.35 / 0.7, slower * 1.5 * 0.1
    host = 1e-4 * 4000 + 2e-4 * 1000 + 1e-5 * 20_000 + 1e-5 * 5000
    layers = compute + traffic + exchange
    # With a power of 1 a device waits for its host as long as that takes.
    last = layers + head + loss + host
    reduction = slower * exchanged(gradient)
    assert found.compute[0] == pytest.approx(8 * (compute + head))
    assert found.memory[0] == pytest.approx(8 * (traffic + loss) + 0.25 + 0.5)
    assert found.launch[0] == pytest.approx(8 * host)
    assert found.network[0] == pytest.approx(8 * exchange + reduction - 0.8 * min(reduction, 0.25 * last))
    assert found.pipeline[0] == pytest.approx(1.5 * (layers + host))
    assert (found.input[0], found.batch[0]) == (2.0, 64.0)


def test_a_last_stage_with_fewer_layers_makes_room_for_the_head() -> None:
    """The head counts by what it takes beyond the layers that the last stage does without, and no less than nothing."""
    whole, short, none = (time_step(chosen_work(spared=share, layers=0.0), utilisation(launch_power=8.0)) for share in (0.0, 0.02, 0.5))
    body = 8 * (chosen_body := whole.pipeline[0] / 1.5)
    beyond = [one.compute[0] + one.memory[0] - none.compute[0] - none.memory[0] for one in (whole, short)]
    assert beyond[0] - beyond[1] == pytest.approx(0.02 * body, rel=1e-3)
    assert none.pipeline[0] == pytest.approx(1.5 * chosen_body)


@pytest.mark.parametrize("attention", [1.0, 60.0])
def test_a_second_of_arithmetic_hides_a_second_of_exchanges(attention: float) -> None:
    """Attention that hides the context ring does not hide the exchanges of experts or stages as well."""
    work = chosen_work(attention=attention, context=10.0, overlapped=50.0, head=0.0, hidden_batches=0.0)
    hidden, exposed = (time_step(work, utilisation(overlap_share=share)) for share in (1.0, 0.0))
    assert exposed.network - hidden.network == pytest.approx(hidden.compute)


def test_links_and_network_have_their_own_shares() -> None:
    """Halving what the network achieves doubles what goes beyond the node; attention hides four fifths of the context ring."""
    one, half = (time_step(chosen_work(gradient=0.0), utilisation(network_share=share, tensor_overlap=1.0)) for share in (0.8, 0.4))
    beyond = 2 * (0.03 + 0.05 + (1 - 0.8) * (0.21 + 0.02))
    assert half.network[0] - one.network[0] == pytest.approx(8 * 1.015 * beyond / 0.8)


def test_software_of_an_accelerators_first_years_is_slower() -> None:
    """Half of the first year's slowdown a year after the release: of arithmetic and memory traffic, and not of the optimizer."""
    new, mature = (time_step(chosen_work(immaturity=young), utilisation(immature_share=0.2)) for young in (0.5, 0.0))
    assert new.compute == pytest.approx(1.1 * mature.compute)
    assert new.memory - 0.75 == pytest.approx(1.1 * (mature.memory - 0.75))


def test_a_device_and_host_of_equal_length_wait_for_each_other() -> None:
    """With a power of 4 the root of the fourth of two."""
    achieved = utilisation(
        layer_overhead_s=1.0, routing_overhead_s=0.0, expert_overhead_s=0.0, call_overhead_s=0.0, straggler_share=0.0, matmul_share=1.0
    )
    nothing = dict.fromkeys(
        (
            "routed",
            "attention",
            "head",
            "operands",
            "reductions",
            "traffic",
            "routed_traffic",
            "scores",
            "head_traffic",
            "optimizer",
            "generation",
        ),
        0.0,
    )
    work = chosen_work(**nothing, layers=3.0)
    still = ExchangeTime(np.zeros(1), np.zeros(1), np.zeros(1))
    work = replace(work, tensor=still, context=still, expert=still, overlapped=still, stage=still, gradient=still)
    assert time_step(work, achieved).launch[0] == pytest.approx(8 * 3.0 * (2**0.25 - 1))


@pytest.mark.parametrize(("zero_stage", "calls"), [(0, 2), (1, 2), (2, 1 + 8), (3, 3 * 8 * 32)])
def test_hops_of_the_gradients_exchange(zero_stage: int, calls: int) -> None:
    """Reduce-scatter and gather of eight ranks, each of three doublings; every micro-batch's, or three for each of 32 layers in each."""
    layouts = Layouts.single(data=8, zero_stage=zero_stage)
    found = step_work(LLAMA_7B, training(global_batch=64), cluster(8), layouts).gradient
    assert found.hops[0] == 3 * calls


def test_a_steps_batch_is_all_ranks_micro_batches() -> None:
    """100 sequences in micro-batches of four on eight ranks: three of them, 96 sequences."""
    found = step_work(LLAMA_7B, training(global_batch=100), cluster(8), Layouts.single(data=8, micro_batch=4))
    assert (found.micro_batches[0], found.batch[0]) == (3, 96)
