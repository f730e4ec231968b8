"""What the engine's tests are made of: published shapes, machines and a whole run with plain defaults, independent of the data files."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from service.domain.quantities import Range
from service.domain.serving.requirements import EngineLimits, ServingMachine, ServingRates, WeightFormat
from service.domain.training.footprint import FineTuningFootprint, Footprint
from service.domain.training.hardware import Accelerator
from service.domain.training.model import Experts, GenericNetwork, LatentAttention, Model, Transformer
from service.domain.training.reinforcement import GenerationPool, Reinforcement, ResponseLengths, RolloutRates, Rollouts
from service.domain.training.run import (
    AuxiliaryModels,
    Axes,
    Billing,
    Cluster,
    Data,
    Efficiency,
    Energy,
    Failures,
    Network,
    Overhead,
    Personnel,
    Run,
    Schedule,
    Storage,
    Training,
)
from service.domain.training.utilisation import Utilisation
from service.engine.training.flops import recomputed_flops, training_flops
from service.engine.training.rl.lengths import mean_sequence_tokens

GIB = 2**30


def accelerator(**changes: Any) -> Accelerator:
    """An A100-80GB by its data sheet, but for `changes`."""
    sheet: dict[str, Any] = {
        "name": "NVIDIA-A100-80GB-SXM",
        "vendor": "NVIDIA",
        "family": "ampere",
        "release_year": 2020,
        "memory_gb": 80,
        "usable_memory_bytes": 80.0 * GIB,
        "memory_bandwidth_gb_per_s": 2039,
        "peak_tflops": MappingProxyType({"fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0, "int8": 624.0}),
        "link": "NVLink 3",
        "link_gb_per_s": 600,
        "internode_gbit_per_s": 200,
        "accelerators_per_node": 8,
        "tdp_w": 400,
        "source": "NVIDIA A100 datasheet",
        "verified": True,
    }
    return Accelerator(**{**sheet, **changes})


A100 = accelerator()
A6000 = accelerator(
    name="NVIDIA-RTX-A6000",
    memory_gb=48,
    usable_memory_bytes=48.0 * GIB,
    memory_bandwidth_gb_per_s=768,
    peak_tflops=MappingProxyType({"bf16": 154.8}),
)
H100 = accelerator(
    name="NVIDIA-H100-80GB-SXM",
    family="hopper",
    memory_bandwidth_gb_per_s=3352,
    usable_memory_bytes=79.647 * GIB,
    peak_tflops=MappingProxyType({"bf16": 989.4, "fp8": 1978.9}),
    link_gb_per_s=900,
    internode_gbit_per_s=400,
)


def cluster(count: int = 8, part: Accelerator = A100) -> Cluster:
    return Cluster(part, count, part.accelerators_per_node, part.internode_gbit_per_s or 0.0)


def utilisation(**changes: Any) -> Utilisation:
    shares: dict[str, Any] = {
        "matmul_share": 0.7,
        "attention_share": 0.5,
        "routed_share": 0.6,
        "operand_share": 0.5,
        "tile_s": 5e-9,
        "activation_passes": 1.5,
        "routed_passes": 1.5,
        "immature_share": 0.0,
        "link_share": 0.7,
        "network_share": 0.7,
        "hop_s": 1e-5,
        "overlap_share": 0.8,
        "tensor_overlap": 0.0,
        "layer_overhead_s": 1e-4,
        "routing_overhead_s": 2e-4,
        "expert_overhead_s": 1e-5,
        "call_overhead_s": 1e-5,
        "straggler_share": 0.005,
        "launch_power": 4.0,
        "spread": Range(0.8, 1.0, 1.2),
        "source": "chosen for the tests",
    }
    return Utilisation(**{**shares, **changes})


def gpt(layers: int, hidden: int, heads: int, vocab: int = 51_200, **changes: Any) -> Transformer:
    """The GPT-3 family's shape: full heads, feed-forward of 4 h without gate, biases, learned positions, tied embeddings."""
    shape: dict[str, Any] = {
        "layers": layers,
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": heads,
        "head_dim": hidden // heads,
        "ffn_hidden_size": 4 * hidden,
        "vocab_size": vocab,
        "gated_ffn": False,
        "tied_embeddings": True,
        "biases": True,
        "max_positions": 2048,
    }
    return Transformer(**{**shape, **changes})


def llama(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int = 32_000, **changes: Any) -> Transformer:
    """The Llama family's shape: gated feed-forward, rotary positions, no biases, separate head."""
    return Transformer(layers, hidden, heads, kv_heads, hidden // heads, ffn, vocab, **changes)


TINY = llama(4, 256, 8, 8, 704, 1000)
LLAMA_7B = llama(32, 4096, 32, 32, 11_008)
LLAMA_65B = llama(80, 8192, 64, 64, 22_016)
LLAMA_2_70B = llama(80, 8192, 64, 8, 28_672)
LLAMA_3_8B = llama(32, 4096, 32, 8, 14_336, 128_256)
LLAMA_3_405B = llama(126, 16_384, 128, 8, 53_248, 128_256)
MISTRAL_7B = llama(32, 4096, 32, 8, 14_336, sliding_window=4096)
GPT_3 = gpt(96, 12_288, 96, 50_257)
BLOOM = gpt(70, 14_336, 112, 250_880, max_positions=0)
MT_NLG = gpt(105, 20_480, 128, 51_200)
GOPHER = gpt(80, 16_384, 128, 32_000, max_positions=0)
CHINCHILLA = gpt(80, 8192, 64, 32_000, max_positions=0)
PALM = Transformer(118, 18_432, 48, 1, 256, 73_728, 256_000, tied_embeddings=True)
MIXTRAL = llama(32, 4096, 32, 8, 14_336, experts=Experts(8, 2, 14_336))
DEEPSEEK_V3 = Transformer(
    61,
    7168,
    128,
    128,
    192,
    18_432,
    129_280,
    experts=Experts(256, 8, 2048, shared_experts=1, dense_layers=3),
    latent=LatentAttention(512, 128, 64, 128, q_lora_rank=1536),
)
T5_11B = Transformer(
    24, 1024, 128, 128, 128, 65_536, 32_128, kind="encoder_decoder", gated_ffn=False, tied_embeddings=True, decoder_layers=24
)
VIT_L_16 = Transformer(24, 1024, 16, 16, 64, 4096, 1000, kind="vit", gated_ffn=False, biases=True, max_positions=197)
RESNET_50 = GenericNetwork(8.178e9, "image", params=25_557_032, activation_bytes_per_sample=44_400_000)


FOOTPRINT = Footprint(
    moment_bytes=MappingProxyType({"adamw": 8, "adamw_8bit": 2, "adamw_paged_8bit": 2, "adafactor": 0.1, "muon": 4, "sgd": 4}),
    narrow_moment_bytes=MappingProxyType({"adamw": 4, "adamw_8bit": 2, "adamw_paged_8bit": 2, "adafactor": 0.1, "muon": 2, "sgd": 2}),
    master_bytes=4,
    gradient_bytes=MappingProxyType({"fp16": 2} | dict.fromkeys(("fp32", "tf32", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8"), 4)),
    quantised_bytes=MappingProxyType({"fp8": 1, "mxfp8": 1 + 1 / 32, "int8": 1, "nvfp4": 0.5 + 1 / 16, "fp4": 0.5}),
    nf4_bytes=(4 + 0.127) / 8,
    logit_bytes=2,
    sharded_logit_bytes=6,
    offloads_checkpoints=False,
    reserve_bytes=0.6 * GIB,
    fragmentation_share=0.005,
    filled_share=0.96,
    finetuning=FineTuningFootprint(
        norm_bytes=MappingProxyType({"none": 8, "fused": 2, "fused_linear_cross_entropy": 2}),
        gated_tensors=MappingProxyType({"none": 3, "fused": 2, "fused_linear_cross_entropy": 2}),
        logit_bytes=MappingProxyType({"none": 14, "fused": 9, "fused_linear_cross_entropy": 0}),
        sharded_logit_bytes=9,
        chunk_bytes=6,
        quantised_input_bytes=3,
        sharded_input_copies=0.8,
        update_copies=MappingProxyType({"adamw": 1, "adamw_8bit": 0, "adamw_paged_8bit": 0, "adafactor": 0, "muon": 1, "sgd": 0}),
        paged=frozenset({"adamw_paged_8bit"}),
        reserve_bytes=0.6 * GIB,
        fragmentation_share=0.005,
        filled_share=0.93,
    ),
)


def training(**changes: Any) -> Training:
    plain: dict[str, Any] = {"method": "pretrain", "precision": "bf16", "optimizer": "adamw", "seq_len": 2048, "global_batch": 64}
    plain["footprint"] = FOOTPRINT
    return Training(**{**plain, **changes})


def failures(**changes: Any) -> Failures:
    plain: dict[str, Any] = {
        "mttf_hours_per_accelerator": Range(30_000, 50_000, 80_000),
        "detection_minutes": 5,
        "restart_minutes": 15,
        "checkpoint_write_minutes": 2,
        "checkpoint_interval_minutes": None,
        "checkpoint_blocking_share": 1.0,
        "preemptions_per_node_hour": 0.0,
        "spare_share": 0.0,
    }
    return Failures(**{**plain, **changes})


NEVER_FAILS = failures(mttf_hours_per_accelerator=Range.exactly(1e15), checkpoint_write_minutes=0)


def run(**changes: Any) -> Run:
    """A 7B on 100 billion tokens, eight A100 at 2 USD, with nothing beside."""
    plain: dict[str, Any] = {
        "model": LLAMA_7B,
        "data": Data(1e11, 1e11, 1),
        "training": training(),
        "cluster": cluster(),
        "efficiency": Efficiency(),
        "failures": failures(),
        "storage": Storage(0, 0, 0, 0, 20),
        "network": Network(0, 90),
        "personnel": Personnel(0, 0, 0, 90),
        "overhead": Overhead(0, 0, 0),
        "energy": Energy("world", 480, 1.1, 400, 0, None),
        "schedule": Schedule(None, None, 0, 0),
        "billing": Billing(2.0),
    }
    return Run(**{**plain, **changes})


def with_training(base: Run, **changes: Any) -> Run:
    return replace(base, training=replace(base.training, **changes))


def hardware_flops(model: Model, how: Training, recompute: int) -> float:
    """FLOPs that the machine executes for each token: the model's own and those recomputed."""
    return training_flops(model, how).total + recomputed_flops(model, how)[recompute]


SERVED = ServingRates("hopper", 0.8, 0.5, 0.6, 0.6, 2e-5, 1e-5, 1e-3, Range.exactly(1.0), Range.exactly(1.0), Range.exactly(1.0), "")
ROLLOUT_RATES = RolloutRates(
    decode_share=0.8,
    decode_host_s=0.003,
    eager_layer_s=8e-4,
    update_share=0.7,
    transfer_share=0.5,
    host_bytes_per_s=25e9,
    packed_tokens=4096,
    step_s=4.0,
    sample_s=0.001,
    spread=Range(0.8, 1.0, 1.25),
    source="chosen for the tests",
)


def reinforcement(
    prompts: int = 64, to_each: int = 16, lengths: ResponseLengths | None = None, pool: dict[str, Any] | None = None, **changes: Any
) -> Reinforcement:
    """1,024 answers of 600 tokens in the median to prompts of 128, on the accelerators that train."""
    weights = WeightFormat("bf16", 16, 2.0, 2.0, 2.0, ("bf16",), "")
    machine = ServingMachine(H100, SERVED, EngineLimits(0.6, 2e9, 1024, 8192, 64))
    sampling: dict[str, Any] = {
        "count": None,
        "share": 0.5,
        "tensor": 1,
        "pipeline": None,
        "expert": None,
        "weight_format": weights,
        "machine": machine,
    }
    plain: dict[str, Any] = {
        "rollouts": Rollouts(prompts, to_each, 128.0, lengths or ResponseLengths(600.0, 0.6, 3968.0)),
        "generation": GenerationPool(**{**sampling, **(pool or {})}),
        "mini_batch_responses": 512,
        "critic_params": 0.0,
        "asynchronous_steps": 0,
        "offload": True,
        "rates": ROLLOUT_RATES,
    }
    return Reinforcement(**{**plain, **changes})


def rl_training(rl: Reinforcement, **changes: Any) -> Training:
    """Training by one step of reinforcement learning, with a frozen reference."""
    plain: dict[str, Any] = {"auxiliary_models": AuxiliaryModels(reference=True), "axes": Axes(micro_batch=1)}
    lengths = {"seq_len": mean_sequence_tokens(rl.rollouts), "global_batch": rl.rollouts.responses}
    return training(method="rl", rl=rl, **{**lengths, **plain, **changes})
