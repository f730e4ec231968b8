"""The search: the fastest layout that fits, the caller's own as it is, and advice that holds when it is taken."""

import re
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.training.hardware import Accelerator
from service.domain.training.model import Model
from service.domain.training.run import AuxiliaryModels, Axes, Cluster, Training
from service.engine.training.layouts import candidate_layouts
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.search.fit_advice import does_not_fit, what_would_fit
from service.engine.training.search.layout_search import choose_layout, choose_layouts
from service.engine.training.step.step_time import StepTime, step_time
from tests.unit.engine.builders import (
    A100,
    A6000,
    DEEPSEEK_V3,
    GPT_3,
    LLAMA_2_70B,
    LLAMA_3_405B,
    LLAMA_7B,
    LLAMA_65B,
    MIXTRAL,
    RESNET_50,
    TINY,
    accelerator,
    cluster,
    training,
    utilisation,
)


@pytest.mark.parametrize(
    ("model", "count"),
    [(TINY, 1), (LLAMA_7B, 8), (LLAMA_2_70B, 64), (MIXTRAL, 64), (GPT_3, 512), (LLAMA_3_405B, 1024), (DEEPSEEK_V3, 2048)],
)
def test_what_is_chosen_fits(model: Model, count: int) -> None:
    """Left to itself the search answers with a layout within the memory of the part, whose axes make up the machine."""
    choice = choose_layout(model, training(global_batch=2048), cluster(count), utilisation())
    row = choice.layouts.row(0)
    assert choice.fits
    assert choice.total_bytes <= A100.usable_memory_bytes
    assert row["tensor"] * row["pipeline"] * row["data"] * row["context"] == count


def test_nothing_that_fits_is_faster() -> None:
    """The choice has the highest rate of all candidates that leave room within the fast link, recomputed here one by one."""
    chosen, machine, shares = training(global_batch=256), cluster(64), utilisation()
    layouts = candidate_layouts(LLAMA_2_70B, chosen, machine)
    roomy = memory_use(LLAMA_2_70B, chosen, layouts).total <= chosen.footprint.filled_share * A100.usable_memory_bytes
    fits = roomy & (layouts.tensor <= machine.link_domain)
    steps = step_time(LLAMA_2_70B, chosen, machine, shares, layouts)
    choice = choose_layout(LLAMA_2_70B, chosen, machine, shares)
    assert choice.steps.batch[0] / choice.steps.total[0] == pytest.approx((steps.batch / steps.total)[fits].max())


@pytest.mark.parametrize("part", [A100, accelerator(link_gb_per_s=None)], ids=["link", "no link"])
@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (LLAMA_2_70B, {}),
        (MIXTRAL, {}),
        (RESNET_50, {"seq_len": 1}),
        (LLAMA_7B, {"method": "dpo", "auxiliary_models": AuxiliaryModels(reference=True)}),
    ],
)
def test_several_networks_at_once_are_each_alone(model: Model, changes: dict[str, Any], part: Accelerator) -> None:
    """In each network the layout taken, its times and its memory are those of the search in that network, to the last digit."""
    asked, machine, networks = training(global_batch=512, **changes), cluster(64, part), (0.0, 3.0, 50.0, 400.0)
    for network, found in zip(networks, choose_layouts(model, asked, machine, utilisation(), networks), strict=True):
        alone = choose_layout(model, asked, replace(machine, internode_gbit_per_s=network), utilisation())
        assert found.layouts.row(0) == alone.layouts.row(0)
        assert [getattr(found.steps, name).tolist() for name in StepTime.__slots__] == [
            getattr(alone.steps, name).tolist() for name in StepTime.__slots__
        ]
        assert (found.memory_bytes, found.fits) == (alone.memory_bytes, alone.fits)


def test_the_answer_says_what_the_caller_fixed() -> None:
    """Fixed axes come back as they were, in the contract's names."""
    axes = Axes(tensor=4, pipeline=2, data=8, context=1, micro_batch=2, zero_stage=1, recompute="full")
    named = choose_layout(LLAMA_7B, training(axes=axes), cluster(64), utilisation()).layouts.named(0)
    assert named == {
        "tensor": 4,
        "pipeline": 2,
        "data": 8,
        "context": 1,
        "expert": 1,
        "expert_tensor": 1,
        "virtual_pipeline": named["virtual_pipeline"],
        "micro_batch": 2,
        "zero_stage": 1,
        "activation_recompute": "full",
    }


@pytest.mark.parametrize(
    ("model", "axes", "pointer", "words"),
    [
        (LLAMA_7B, Axes(tensor=3), "tensor", "32 attention heads do not divide by tensor 3"),
        (LLAMA_7B, Axes(pipeline=64), "pipeline", "more stages than the model's 32 layers"),
        (LLAMA_7B, Axes(pipeline=8, virtual_pipeline=8), "virtual_pipeline", "more chunks than the model's 32 layers"),
        (LLAMA_7B, Axes(virtual_pipeline=33), "virtual_pipeline", "more chunks"),
        (LLAMA_7B, Axes(expert=2), "expert", "needs a mixture of experts"),
        (MIXTRAL, Axes(expert=3), "expert", "8 experts do not divide by expert 3"),
        (LLAMA_7B, Axes(expert_tensor=2), "expert_tensor", "needs a mixture of experts"),
        (MIXTRAL, Axes(expert_tensor=3), "expert_tensor", "experts of width 14336 do not divide by expert_tensor 3"),
        (LLAMA_7B, Axes(context=3), "context", "2048 does not divide by context 3"),
    ],
)
def test_axes_that_cannot_cut_the_model_are_refused(model: Model, axes: Axes, pointer: str, words: str) -> None:
    """Heads, layers, chunks, experts and sequences that do not divide are refused with a pointer to the axis."""
    with pytest.raises(InvalidRequest, match=words) as refused:
        choose_layout(model, training(axes=axes), cluster(64), utilisation())
    assert refused.value.pointer == f"/training/parallelism/{pointer}"


def test_a_product_that_is_not_the_count_is_refused() -> None:
    """tensor 8 x pipeline 8 on 32 accelerators points at the layout."""
    with pytest.raises(InvalidRequest, match="must be the 32 accelerators") as refused:
        choose_layout(LLAMA_7B, training(axes=Axes(tensor=8, pipeline=8)), cluster(32), utilisation())
    assert refused.value.pointer == "/training/parallelism"


def test_a_layout_that_does_not_fit_is_told_as_it_is() -> None:
    """The caller's own layout is answered with its memory and `fits` false, and what would fit leaves it open again."""
    axes = Axes(tensor=1, pipeline=1, data=8, context=1, zero_stage=0, recompute="none", micro_batch=8)
    chosen = training(axes=axes)
    choice = choose_layout(LLAMA_7B, chosen, cluster(8), utilisation())
    assert not choice.fits
    assert choice.total_bytes > A100.usable_memory_bytes
    assert "leave parallelism" in what_would_fit(LLAMA_7B, chosen, cluster(8))[0]
    assert choose_layout(LLAMA_7B, replace(chosen, axes=Axes()), cluster(8), utilisation()).fits


def followed(chosen: Training, machine: Cluster, advice: str) -> tuple[Training, Cluster]:
    """The request again, with the count and the batch that the advice names."""
    count = re.search(r"(\d+) of these accelerators hold it", advice)
    batch = re.search(r"with a batch of (\d+) sequences", advice)
    assert count is not None, advice
    return replace(chosen, global_batch=int(batch[1]) if batch else chosen.global_batch), replace(machine, count=int(count[1]))


@pytest.mark.parametrize(
    ("model", "machine", "batch"),
    [
        (LLAMA_7B, cluster(1), 1),
        (LLAMA_7B, cluster(1, A6000), 64),
        (LLAMA_2_70B, cluster(4), 64),
        (GPT_3, cluster(8), 4),
        (LLAMA_3_405B, cluster(16), 16),
        (DEEPSEEK_V3, cluster(8), 64),
        (MIXTRAL, cluster(3), 8),
    ],
)
def test_advice_holds_when_it_is_taken(model: Model, machine: Cluster, batch: int) -> None:
    """Asking again with the count that the refusal names is answered with a layout that fits, and half of it does not."""
    chosen = training(global_batch=batch, method="full_finetune")
    choice = choose_layout(model, chosen, machine, utilisation())
    assert not choice.fits
    refusal = does_not_fit(model, chosen, machine, choice)
    larger, bigger = followed(chosen, machine, refusal.message)
    assert choose_layout(model, larger, bigger, utilisation()).fits
    assert not choose_layout(model, larger, replace(bigger, count=bigger.count // 2), utilisation()).fits
    assert (type(refusal), refusal.pointer) == (DoesNotFit, "/hardware")
    assert "qlora" in refusal.message


def test_leaner_trainings_are_named_where_they_fit() -> None:
    """A lower rank, 8-bit states and a quantised base, each tried as it is said; what does not fit either is not named."""
    wide = training(method="lora", lora_rank=512, global_batch=1)
    assert "lora_rank 16 on this machine" in what_would_fit(LLAMA_2_70B, wide, cluster(2))
    assert choose_layout(LLAMA_2_70B, replace(wide, lora_rank=16), cluster(2), utilisation()).fits
    whole = training(method="full_finetune", global_batch=1)
    advice = " ".join(what_would_fit(LLAMA_2_70B, whole, cluster(1)))
    assert 'method "qlora" on this machine' in advice
    assert 'method "lora" on this machine' not in advice
    assert not choose_layout(LLAMA_2_70B, replace(whole, method="lora", lora_rank=16), cluster(1), utilisation()).fits
    assert choose_layout(LLAMA_2_70B, replace(whole, method="qlora", lora_rank=16), cluster(1), utilisation()).fits


def test_the_memory_that_would_do_does() -> None:
    """As many accelerators of the size the refusal names do hold the model."""
    machine, chosen = cluster(8), training(global_batch=8)
    advice = " ".join(what_would_fit(GPT_3, chosen, machine))
    found = re.search(r"8 accelerators with at least (\d+) GB each", advice)
    assert found is not None, advice
    roomy = accelerator(name="roomy", usable_memory_bytes=float(found[1]) * 1e9)
    assert choose_layout(GPT_3, chosen, cluster(8, roomy), utilisation()).fits


def test_a_sequence_that_no_machine_holds_is_told_so() -> None:
    """Where doubling the machine never helps, the advice is memory and not a count."""
    tiny = accelerator(name="tiny", usable_memory_bytes=7e8)
    advice = what_would_fit(LLAMA_65B, training(), cluster(2, tiny))
    assert advice[0].startswith("no machine that was tried, up to 131,072")


@pytest.mark.parametrize("changes", [{"method": "lora", "lora_rank": 16}, {"method": "qlora", "lora_rank": 64}])
def test_adapters_train_on_machines_that_full_training_does_not_fit(changes: dict[str, Any]) -> None:
    """A 7B that does not fit one accelerator in full fine-tuning fits there with adapters."""
    full = choose_layout(LLAMA_7B, training(method="full_finetune", global_batch=1), cluster(1), utilisation())
    adapters = choose_layout(LLAMA_7B, training(global_batch=1, **changes), cluster(1), utilisation())
    assert (full.fits, adapters.fits) == (False, True)


def test_sharding_that_needs_more_than_it_saves_is_not_taken_for_the_leanest() -> None:
    """Of frozen 4-bit weights ZeRO 3 gathers more than it shares out: stage 1 fits where it would not, and tells what is missing."""
    adapters = {"method": "qlora", "lora_rank": 16, "adapter_targets": ("experts",), "kernel_fusion": "none"}
    asked = training(**adapters, global_batch=512, axes=Axes(pipeline=8, recompute="full"))
    for capacity, fits in ((3.4e9, True), (3.1e9, False)):
        choice = choose_layout(MIXTRAL, asked, cluster(16, accelerator(usable_memory_bytes=capacity)), utilisation())
        assert (choice.fits, choice.layouts.row(0)["zero_stage"]) == (fits, 1)
        assert choice.total_bytes == pytest.approx(3.3e9, rel=0.02)


def test_the_leanest_keeps_the_micro_batch_that_is_stated() -> None:
    """GPT-3 does not fit on eight accelerators: what is missing is told of four sequences at a time, which need more than one."""
    lean, stated = (
        choose_layout(GPT_3, training(global_batch=64, axes=Axes(micro_batch=size)), cluster(8), utilisation()) for size in (None, 4)
    )
    assert (lean.fits, stated.fits) == (False, False)
    assert (lean.layouts.row(0)["micro_batch"], stated.layouts.row(0)["micro_batch"]) == (1, 4)
    assert stated.total_bytes > lean.total_bytes


def test_of_equally_fast_layouts_one_without_savings_is_taken() -> None:
    """Where the data pipeline bounds them all, nothing is recomputed or sharded for nothing."""
    choice = choose_layout(LLAMA_7B, training(global_batch=512, input_tokens_per_s_per_node=1000), cluster(64), utilisation())
    row = choice.layouts.named(0)
    assert choice.steps.bound_by(0) == "input"
    assert (row["activation_recompute"], row["zero_stage"]) == ("none", 1)


def test_other_networks_find_their_batch() -> None:
    """A CNN on eight accelerators takes a layout of data ranks that holds its activations."""
    choice = choose_layout(RESNET_50, training(seq_len=1, global_batch=2048), cluster(8), utilisation())
    assert choice.fits
    assert choice.layouts.row(0)["data"] == 8


def test_what_does_not_fit_is_told_in_gigabytes() -> None:
    """The leanest layout's need beside the 85.9 GB of an A100."""
    choice = choose_layout(LLAMA_65B, training(), cluster(1), utilisation())
    assert not choice.fits
    told = does_not_fit(LLAMA_65B, training(), cluster(1), choice)
    expected = f"needs {choice.total_bytes / 1e9:,.1f} GB on an accelerator of 85.9 GB usable"
    assert expected in str(told)


def test_matrices_are_cut_within_the_fast_link() -> None:
    """Two nodes of 8 cut no matrix in 16 by themselves; where only that fits they do, and a stated 16 stays."""
    alone = choose_layout(LLAMA_3_405B, training(global_batch=2048), cluster(1024), utilisation())
    assert alone.layouts.row(0)["tensor"] <= 8
    only_tensor = training(global_batch=64, axes=Axes(pipeline=1, context=1, zero_stage=0))
    forced = choose_layout(LLAMA_2_70B, only_tensor, cluster(64), utilisation())
    assert forced.fits
    assert forced.layouts.row(0)["tensor"] > 8
    stated = choose_layout(LLAMA_3_405B, training(global_batch=2048, axes=Axes(tensor=16)), cluster(1024), utilisation())
    assert (stated.fits, stated.layouts.row(0)["tensor"]) == (True, 16)


@pytest.mark.parametrize("spare", [1.0, 0.98, 1.001])
def test_what_fits_only_to_the_brim_is_taken(spare: float) -> None:
    """A stated layout fits up to the last byte; the room that a search leaves refuses nothing."""
    stated = training(global_batch=8, axes=Axes(tensor=1, pipeline=1, context=1, data=8, micro_batch=1, zero_stage=1, recompute="none"))
    needed = choose_layout(LLAMA_7B, stated, cluster(8, accelerator(usable_memory_bytes=1e12)), utilisation()).total_bytes
    choice = choose_layout(LLAMA_7B, stated, cluster(8, accelerator(usable_memory_bytes=needed / spare)), utilisation())
    assert choice.fits == (spare <= 1)


def test_a_faster_layout_that_leaves_too_little_room_is_named() -> None:
    """It fits, and says why it is not taken."""
    asked = training(global_batch=64, axes=Axes(tensor=1, pipeline=1, context=1, micro_batch=1))
    ample = choose_layout(LLAMA_7B, asked, cluster(8, accelerator(usable_memory_bytes=1e12)), utilisation())
    tight = choose_layout(LLAMA_7B, asked, cluster(8, accelerator(usable_memory_bytes=1.01 * ample.total_bytes)), utilisation())
    assert tight.fits
    assert tight.layouts.row(0) != ample.layouts.row(0)
    fuller = tight.alternatives[0]
    assert (fuller.fits, fuller.slower_by < 0) == (True, True)
    assert "free, less than teams do" in fuller.why


def test_fine_tuning_that_can_choose_leaves_its_allocator_room() -> None:
    """Where less recomputation would fill the memory to the brim it recomputes; where nothing else fits it fills the memory."""
    asked = training(method="lora", lora_rank=16, global_batch=1, kernel_fusion="none", axes=Axes(micro_batch=1))
    brim = choose_layout(LLAMA_7B, asked, cluster(1, accelerator(usable_memory_bytes=1e12)), utilisation()).total_bytes
    full = choose_layout(LLAMA_7B, replace(asked, axes=Axes(micro_batch=1, recompute="full")), cluster(1), utilisation()).total_bytes
    for capacity, recomputed in ((1.1 * brim, False), (1.01 * brim, True), (1.01 * full, True)):
        choice = choose_layout(LLAMA_7B, asked, cluster(1, accelerator(usable_memory_bytes=capacity)), utilisation())
        assert (choice.fits, choice.layouts.row(0)["recompute"] > 0) == (True, recomputed)


def test_a_fused_loss_is_taken_where_nothing_else_fits() -> None:
    """Left open, the loss that never holds the logits comes last; stated, each operation alone stays and does not fit."""
    long = training(method="qlora", lora_rank=16, seq_len=32_768, global_batch=1, axes=Axes(recompute="full"))
    plain = choose_layout(LLAMA_7B, replace(long, kernel_fusion="none"), cluster(1), utilisation()).total_bytes
    small = cluster(1, accelerator(usable_memory_bytes=0.8 * plain))
    chosen, stated = (choose_layout(LLAMA_7B, replace(long, kernel_fusion=way), small, utilisation()) for way in (None, "none"))
    assert (chosen.fits, chosen.fused) == (True, True)
    assert not stated.fits
    assert not choose_layout(LLAMA_7B, long, cluster(1), utilisation()).fused


def test_advice_names_states_and_kernels_that_would_fit() -> None:
    """Full fine-tuning in bf16 where fp32 states are too much; a loss that never holds the logits where each operation is stated."""
    whole = training(method="full_finetune", global_batch=1, kernel_fusion="none")
    assert any('states_dtype "bf16"' in way for way in what_would_fit(LLAMA_7B, whole, cluster(1, accelerator(usable_memory_bytes=75e9))))
    long = training(method="qlora", lora_rank=16, seq_len=32_768, global_batch=1, kernel_fusion="none")
    needed = choose_layout(LLAMA_7B, replace(long, axes=Axes(recompute="full")), cluster(1), utilisation()).total_bytes
    advice = what_would_fit(LLAMA_7B, long, cluster(1, accelerator(usable_memory_bytes=0.8 * needed)))
    assert any('kernel_fusion "fused_linear_cross_entropy" on this machine' in way for way in advice)
