"""The step model's laws: what must be slower, what must not matter, and what each method moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.domain.model import LatentAttention
from service.engine.layouts import Layouts
from service.engine.throughput import Step, step
from tests.unit.engine.builders import LLAMA_7B, cluster, training, utilisation


def seconds(model: object = LLAMA_7B, *, layout: Layouts | None = None, count: int = 8, **how: object) -> Step:
    """One step of the model on `count` accelerators, data parallel unless a layout says otherwise."""
    layouts = layout or Layouts.single(data=count)
    return step(model, training(**how), cluster(count), utilisation(), layouts)  # type: ignore[arg-type]


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
